// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "compiler/syntax/function_parser.h"
#include "compiler/syntax/host_code.h"
#include "compiler/syntax/lexer/lexer.h"
#include "compiler/syntax/lexer/string_scanner.h"
#include "compiler/syntax/token_stream.h"

namespace phobos::compiler {
namespace {

// What the decorators from the cursor on are, without reading their arguments.
struct DecoratorSurvey {
  bool has_language = false;
  bool is_kernel = false;
  size_t end = 0;  // the token behind them: 'def', 'class'
};

// ph.on_tune may decorate a function of the host program: it registers a callback.
DecoratorSurvey Survey(TokenStream& tokens) {
  DecoratorSurvey survey;
  const size_t begin = tokens.position();
  while (tokens.Is("@")) {
    tokens.Take();
    const size_t count = tokens.LanguageTokens();
    survey.is_kernel |= count > 0 && tokens.Is(".", count) && tokens.IsWord("kernel", count + 1);
    for (size_t i = 0; i < count; ++i) tokens.Take();
    survey.has_language |= count > 0 && !(tokens.Is(".") && tokens.IsWord("on_tune", 1));
    while (!tokens.AtLineEnd()) tokens.Take();
    tokens.Take();
  }
  survey.end = tokens.position();
  tokens.set_position(begin);
  return survey;
}

// Steps over a function that could not be read, whatever stands under its decorators.
ast::BrokenFunction SkipBroken(const DecoratorSurvey& survey, int32_t begin, absl::Status error,
                               TokenStream& tokens, HostCode& host) {
  tokens.set_position(survey.end);
  const size_t name = tokens.IsWord("async") ? 2 : 1;
  ast::BrokenFunction broken;
  if (tokens.kind(name) == TokenKind::kName) broken.name = tokens.Text(name);
  broken.begin = begin;
  broken.is_kernel = survey.is_kernel;
  broken.error = std::move(error);
  if (tokens.kind() != TokenKind::kEnd) host.SkipStatement();
  return broken;
}

}  // namespace

absl::StatusOr<ast::Module> Parse(const Source& source) {
  ASSIGN_OR_RETURN(const std::vector<Token> lexed, Lex(source));
  ast::Module module;
  TokenStream tokens(source, lexed, module.aliases);
  HostCode host(tokens, module.aliases);
  host.FindImports();
  while (tokens.kind() != TokenKind::kEnd) {
    if (!tokens.Is("@")) {
      host.SkipStatement();
      continue;
    }
    const DecoratorSurvey survey = Survey(tokens);
    if (!survey.has_language) {
      tokens.set_position(survey.end);
      host.SkipStatement();
      continue;
    }
    const int32_t begin = tokens.Peek().span.begin;
    absl::StatusOr<ast::Function> function = FunctionParser(tokens).Function();
    if (!function.ok()) {
      module.broken.push_back(SkipBroken(survey, begin, function.status(), tokens, host));
      continue;
    }
    host.NoteFunction(function->name, function->name_span);
    module.functions.push_back(*std::move(function));
  }
  host.Finish(&module);
  return module;
}

absl::StatusOr<ast::ExprPtr> ParseQuotedExpression(const Source& source, Span span,
                                                   const std::vector<std::string>& aliases) {
  const std::string_view literal = source.text(span);
  const std::optional<StringPrefix> prefix = PrefixAt(literal, 0);
  const bool is_plain = prefix.has_value() && !prefix->is_format && !prefix->is_bytes &&
                        SkipString(literal, 0, *prefix).offset == literal.size() &&
                        literal.find('\\') == std::string_view::npos;
  if (!is_plain) {
    return source.Error(span, "this expression in a string is not one plain string",
                        "write it in one pair of quotes, without escapes");
  }
  const std::string_view quoted = literal.substr(prefix->length);
  const bool is_triple = quoted.size() >= 6 && quoted[1] == quoted[0] && quoted[2] == quoted[0];
  const int32_t quotes = is_triple ? 3 : 1;
  const Span inside = {span.begin + static_cast<int32_t>(prefix->length) + quotes,
                       span.end - quotes};
  ASSIGN_OR_RETURN(const std::vector<Token> lexed, LexExpression(source, inside));
  TokenStream tokens(source, lexed, aliases, "the end of the string");
  if (tokens.kind() == TokenKind::kEnd) {
    return source.Error(span, "this string holds no expression",
                        "write for example \"BLOCK % 32 == 0\"");
  }
  ASSIGN_OR_RETURN(ast::ExprPtr expr, ExpressionParser(tokens).Expression());
  if (tokens.kind() != TokenKind::kEnd) {
    return tokens.Unexpected("the end of the expression", "write one expression in the string");
  }
  return expr;
}

}  // namespace phobos::compiler
