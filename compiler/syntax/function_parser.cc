// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/function_parser.h"

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/syntax/parser.h"

namespace phobos::compiler {
namespace {

// Blocks inside blocks, and `elif`s of one `if`, which nest as well.
constexpr int kMaxBlockDepth = 100;

struct Refusal {
  std::string_view word;
  std::string_view problem;
  std::string_view remedy;
};

// Statements of Python that the language does not have.
constexpr Refusal kRefusals[] = {
    {"try", "'try' is outside the language", "nothing in a kernel raises; remove it"},
    {"raise", "'raise' is outside the language",
     "state what must hold with ph.assume(...) at the top of the body, or ph.assert_(...) over "
     "constants"},
    {"with", "'with' is outside the language", "remove it; nothing in a kernel needs closing"},
    {"import", "a kernel cannot import",
     "import at the top of the file; a kernel uses the language and the file's ph.fn functions"},
    {"from", "a kernel cannot import",
     "import at the top of the file; a kernel uses the language and the file's ph.fn functions"},
    {"global", "'global' is outside the language",
     "pass values as parameters; a literal at module level is a constant here"},
    {"nonlocal", "'nonlocal' is outside the language", "assign to a variable declared with ph.var"},
    {"assert", "'assert' is outside the language",
     "write ph.assert_(condition, \"text\") over constants, or ph.assume(condition) over extents"},
    {"del", "'del' is outside the language", "a name ends with its block; remove it"},
    {"yield", "'yield' is outside the language", "store results to a tensor: out[i] = value"},
    {"await", "'await' is outside the language",
     "a kernel runs from its first line to its last; remove it"},
    {"async", "'async' is outside the language",
     "a kernel runs from its first line to its last; remove it"},
    {"def", "a function inside a kernel is outside the language",
     "move it to the top of the file, under @ph.fn"},
    {"class", "a class inside a kernel is outside the language",
     "use names for single values, tiles for many"},
    {"except", "'except' is outside the language", "nothing in a kernel raises; remove it"},
    {"finally", "'finally' is outside the language", "nothing in a kernel raises; remove it"},
    {"elif", "this 'elif' belongs to no 'if'", "indent it like its 'if', right after that block"},
    {"else", "this 'else' belongs to no 'if'", "indent it like its 'if', right after that block"},
    {"lambda", "a lambda is outside the language", "define a function with @ph.fn and call it"},
};

// The operator of "+=" and the like.
std::optional<ast::BinaryOp> AugmentedAt(const TokenStream& tokens) {
  if (tokens.kind() != TokenKind::kOperator || tokens.Text().back() != '=') return std::nullopt;
  const std::string_view sign = tokens.Text().substr(0, tokens.Text().size() - 1);
  for (const ast::BinaryForm& form : ast::kBinaryForms) {
    if (form.sign == sign) return form.op;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<ast::Function> FunctionParser::Function() {
  ast::Function function;
  const int32_t begin = tokens_.Peek().span.begin;
  while (tokens_.Is("@")) RETURN_IF_ERROR(OneDecorator(&function));
  RETURN_IF_ERROR(Header(&function));
  ASSIGN_OR_RETURN(function.body, Suite("after the function's signature"));
  DropDocstring(&function.body);
  function.span = tokens_.SpanFrom(begin);
  return function;
}

absl::Status FunctionParser::OneDecorator(ast::Function* function) {
  const Source& source = tokens_.source();
  ast::Decorator decorator;
  const int32_t begin = tokens_.Take().span.begin;
  const size_t alias_tokens = tokens_.LanguageTokens();
  if (alias_tokens == 0) {
    while (!tokens_.AtLineEnd() && !tokens_.Is("(")) tokens_.Take();
    return source.Error(tokens_.SpanFrom(begin),
                        "a decorator that is not the language's stands on this function",
                        "a kernel and a ph.fn take the language's decorators alone; wrap the call "
                        "in a function of the host program");
  }
  for (size_t i = 0; i < alias_tokens; ++i) tokens_.Take();
  while (tokens_.TakeIf(".")) {
    if (tokens_.kind() != TokenKind::kName)
      return tokens_.Unexpected("a decorator's name", "write for example .kernel");
    Append(&decorator.name, decorator.name.empty() ? "" : ".", tokens_.Text());
    tokens_.Take();
  }
  if (decorator.name.empty())
    return tokens_.Unexpected("'.' and a decorator's name", "write for example .kernel");
  if (tokens_.TakeIf("(")) {
    decorator.is_call = true;
    // Values that only Python uses.
    static const std::vector<std::string_view> kOfTheHost = {"reference", "rtol", "atol",
                                                             "flush_l2"};
    RETURN_IF_ERROR(expressions_.Arguments(
        decorator.name == "kernel" ? kOfTheHost : std::vector<std::string_view>(),
        &decorator.positional, &decorator.keyword));
  }
  decorator.span = tokens_.SpanFrom(begin);
  if (tokens_.kind() != TokenKind::kNewline) {
    return tokens_.Unexpected("the end of the line after the decorator",
                              "write one decorator a line");
  }
  tokens_.Take();
  function->is_kernel |= decorator.name == "kernel";
  function->decorators.push_back(std::move(decorator));
  return absl::OkStatus();
}

absl::StatusOr<std::string> FunctionParser::NewName(std::string_view what) {
  const Token token = tokens_.Peek();
  const std::string_view text = tokens_.Text();
  if (token.kind != TokenKind::kName) {
    return tokens_.Unexpected(what, "write a name");
  }
  if (IsKeyword(text)) {
    return tokens_.source().Error(
        token.span, Concat("'", text, "' is a word of Python, not a name"), "choose another name");
  }
  if (tokens_.IsAlias(text)) {
    return tokens_.source().Error(token.span,
                                  Concat("'", text, "' is the language's name in this file"),
                                  "choose another name");
  }
  tokens_.Take();
  return std::string(text);
}

absl::Status FunctionParser::Header(ast::Function* function) {
  const Source& source = tokens_.source();
  if (tokens_.IsWord("async") || tokens_.IsWord("class")) {
    return source.Error(tokens_.Peek().span,
                        Concat("the language's decorators cannot stand on '", tokens_.Text(), "'"),
                        "write a plain function: def name(...):");
  }
  if (!tokens_.IsWord("def"))
    return tokens_.Unexpected("'def' after the decorators", "write def name(...):");
  tokens_.Take();
  function->name_span = tokens_.Peek().span;
  ASSIGN_OR_RETURN(function->name, NewName("the function's name"));
  if (tokens_.Is("[")) {
    return source.Error(tokens_.Peek().span, "type parameters are outside the language",
                        "name extents in the annotations: x: ph.tensor[ph.f32][N]");
  }
  RETURN_IF_ERROR(tokens_.Expect("(", "after the function's name"));
  RETURN_IF_ERROR(Parameters(function));
  if (tokens_.Is("->")) {
    const int32_t begin = tokens_.Take().span.begin;
    ASSIGN_OR_RETURN(const ast::ExprPtr result, expressions_.Expression());
    if (function->is_kernel && !std::holds_alternative<ast::NoneLiteral>(result->node)) {
      return source.Error(tokens_.SpanFrom(begin), "a kernel returns nothing",
                          "remove the '->', and store results to a tensor parameter");
    }
  }
  return absl::OkStatus();
}

absl::Status FunctionParser::Parameters(ast::Function* function) {
  const Source& source = tokens_.source();
  while (!tokens_.TakeIf(")")) {
    if (tokens_.Is("*") || tokens_.Is("**") || tokens_.Is("/")) {
      return source.Error(
          tokens_.Peek().span,
          Concat("'", tokens_.Text(), "' among the parameters is outside the language"),
          "write each parameter by its name");
    }
    ast::Parameter parameter;
    parameter.name_span = tokens_.Peek().span;
    ASSIGN_OR_RETURN(parameter.name, NewName("a parameter's name"));
    if (tokens_.TakeIf(":")) {
      ASSIGN_OR_RETURN(parameter.annotation, Annotation());
    }
    if (tokens_.Is("=")) {
      return source.Error(tokens_.Peek().span, "a parameter has no default value in the language",
                          "remove it, and pass the value at every call");
    }
    function->parameters.push_back(std::move(parameter));
    if (!tokens_.TakeIf(",") && !tokens_.Is(")")) {
      return tokens_.Unexpected("',' or ')' after the parameter",
                                "separate parameters with commas");
    }
  }
  return absl::OkStatus();
}

// Python also takes an annotation in quotes.
absl::StatusOr<ast::ExprPtr> FunctionParser::Annotation() {
  if (tokens_.kind() != TokenKind::kString) return expressions_.Expression();
  const int32_t begin = tokens_.Peek().span.begin;
  while (tokens_.kind() == TokenKind::kString) tokens_.Take();
  return ParseQuotedExpression(tokens_.source(), tokens_.SpanFrom(begin), tokens_.aliases());
}

// A string alone at the top says something to people only.
void FunctionParser::DropDocstring(ast::Block* body) {
  if (body->empty()) return;
  const auto* first = std::get_if<ast::ExprStmt>(&body->front().node);
  if (first == nullptr || !std::holds_alternative<ast::StringLiteral>(first->value->node)) return;
  body->erase(body->begin());
}

absl::StatusOr<ast::Block> FunctionParser::Suite(std::string_view after) {
  ast::Block block;
  RETURN_IF_ERROR(tokens_.Expect(":", after));
  if (++depth_ > kMaxBlockDepth) {
    return tokens_.source().Error(tokens_.Peek().span, "the blocks are nested too deeply",
                                  "move the inner ones to a ph.fn");
  }
  if (tokens_.kind() != TokenKind::kNewline) {
    RETURN_IF_ERROR(SimpleStatements(&block));
  } else {
    tokens_.Take();
    if (tokens_.kind() != TokenKind::kIndent) {
      return tokens_.Unexpected(Concat("an indented block ", after),
                                "indent its lines, or write pass");
    }
    tokens_.Take();
    while (tokens_.kind() != TokenKind::kDedent && tokens_.kind() != TokenKind::kEnd) {
      RETURN_IF_ERROR(StatementLine(&block));
    }
    if (tokens_.kind() == TokenKind::kDedent) tokens_.Take();
  }
  --depth_;
  return block;
}

absl::Status FunctionParser::StatementLine(ast::Block* block) {
  absl::StatusOr<ast::Stmt> statement = absl::UnknownError("");
  if (tokens_.kind() == TokenKind::kIndent) {
    return tokens_.source().Error(tokens_.Peek().span,
                                  "this line is indented more than the block it stands in",
                                  "indent it like the line before it");
  }
  if (tokens_.IsWord("for")) {
    statement = ForStatement();
  } else if (tokens_.IsWord("while")) {
    statement = WhileStatement();
  } else if (tokens_.IsWord("if")) {
    statement = IfStatement();
  } else {
    return SimpleStatements(block);
  }
  RETURN_IF_ERROR(statement.status());
  block->push_back(*std::move(statement));
  return absl::OkStatus();
}

absl::Status FunctionParser::SimpleStatements(ast::Block* block) {
  while (true) {
    ASSIGN_OR_RETURN(ast::Stmt statement, SimpleStatement());
    block->push_back(std::move(statement));
    if (tokens_.TakeIf(";")) {
      if (!tokens_.AtLineEnd()) continue;
    } else if (!tokens_.AtLineEnd()) {
      return tokens_.Unexpected("the end of the statement", "write one statement a line");
    }
    tokens_.Take();
    return absl::OkStatus();
  }
}

absl::Status FunctionParser::RefuseStatement() const {
  const Source& source = tokens_.source();
  const Span span = tokens_.Peek().span;
  if (tokens_.Is("@")) {
    return source.Error(span, "a decorator inside a kernel is outside the language",
                        "move the function to the top of the file");
  }
  for (const Refusal& refusal : kRefusals) {
    if (tokens_.IsWord(refusal.word)) return source.Error(span, refusal.problem, refusal.remedy);
  }
  // Words that are names to the tokenizer, and statements only where another name or value follows.
  const bool value_follows = tokens_.kind(1) == TokenKind::kName ||
                             tokens_.kind(1) == TokenKind::kInt ||
                             tokens_.kind(1) == TokenKind::kString;
  if (tokens_.IsWord("match") && value_follows && !tokens_.IsWord("if", 1)) {
    return source.Error(span, "'match' is outside the language", "write if, elif and else");
  }
  if (tokens_.IsWord("type") && tokens_.kind(1) == TokenKind::kName) {
    return source.Error(span, "'type' is outside the language", "write the type where it is used");
  }
  if (tokens_.IsWord("print") && value_follows) {
    return source.Error(span, "'print' is a function", "write ph.print(...)");
  }
  for (const std::string_view compound : {"for", "while", "if"}) {
    if (tokens_.IsWord(compound)) {
      return source.Error(span,
                          Concat("'", compound, "' cannot follow another statement on its line"),
                          "put it in a line of its own");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ast::Stmt> FunctionParser::SimpleStatement() {
  const Token token = tokens_.Peek();
  RETURN_IF_ERROR(RefuseStatement());
  const auto one_word = [&](auto node) {
    tokens_.Take();
    return ast::Stmt{std::move(node), token.span};
  };
  if (tokens_.IsWord("break")) return one_word(ast::Break{});
  if (tokens_.IsWord("continue")) return one_word(ast::Continue{});
  if (tokens_.IsWord("pass")) return one_word(ast::Pass{});
  if (!tokens_.IsWord("return")) return ExpressionStatement();
  tokens_.Take();
  ast::Return result;
  if (!tokens_.AtStatementEnd()) {
    ASSIGN_OR_RETURN(result.value, expressions_.ExpressionList());
  }
  return ast::Stmt{std::move(result), tokens_.SpanFrom(token.span.begin)};
}

absl::StatusOr<ast::Stmt> FunctionParser::ExpressionStatement() {
  const int32_t begin = tokens_.Peek().span.begin;
  ASSIGN_OR_RETURN(ast::ExprPtr first, expressions_.ExpressionList());
  absl::StatusOr<ast::Stmt> statement = absl::UnknownError("");
  if (tokens_.Is(":")) {
    statement = Declaration(std::move(first));
  } else if (tokens_.Is("=") || AugmentedAt(tokens_).has_value()) {
    statement = Assignment(std::move(first));
  } else if (tokens_.Is("@=")) {
    return tokens_.source().Error(tokens_.Peek().span, "'@=' is no operator of the language",
                                  "write x = ph.dot(x, y)");
  } else {
    statement = ast::Stmt{ast::ExprStmt{std::move(first)}, {}};
  }
  RETURN_IF_ERROR(statement.status());
  statement->span = tokens_.SpanFrom(begin);
  return statement;
}

absl::StatusOr<ast::Stmt> FunctionParser::Declaration(ast::ExprPtr target) {
  const Source& source = tokens_.source();
  const auto* name = std::get_if<ast::Name>(&target->node);
  if (name == nullptr) {
    return source.Error(target->span, "only a name can be declared", "write: name: ph.let = value");
  }
  if (tokens_.IsAlias(name->id)) {
    return source.Error(target->span,
                        Concat("'", name->id, "' is the language's name in this file"),
                        "choose another name");
  }
  ast::Declare declare;
  declare.name = name->id;
  declare.name_span = target->span;
  tokens_.Take();  // ':'
  ASSIGN_OR_RETURN(declare.annotation, Annotation());
  if (tokens_.TakeIf("=")) {
    ASSIGN_OR_RETURN(declare.value, expressions_.ExpressionList());
    if (tokens_.Is("=")) {
      return source.Error(tokens_.Peek().span, "one statement binds one name",
                          "write a statement for each");
    }
  }
  return ast::Stmt{std::move(declare), {}};
}

absl::Status FunctionParser::CheckTarget(const ast::Expr& target, bool is_augmented) const {
  const Source& source = tokens_.source();
  if (std::holds_alternative<ast::Name>(target.node) ||
      std::holds_alternative<ast::Index>(target.node)) {
    return absl::OkStatus();
  }
  const auto* tuple = std::get_if<ast::Tuple>(&target.node);
  if (tuple == nullptr || is_augmented || tuple->elements.empty()) {
    return source.Error(target.span, "nothing can be assigned to this",
                        "assign to a variable or to a tensor: A[i] = value");
  }
  for (const ast::ExprPtr& element : tuple->elements) {
    if (std::holds_alternative<ast::Name>(element->node)) continue;
    return source.Error(element->span, "only names can stand on the left of a tuple assignment",
                        "bind names first, then store them: a, b = f(x)");
  }
  return absl::OkStatus();
}

absl::StatusOr<ast::Stmt> FunctionParser::Assignment(ast::ExprPtr target) {
  ast::Assign assign;
  const std::optional<ast::BinaryOp> op = AugmentedAt(tokens_);
  assign.is_augmented = op.has_value();
  assign.op = op.value_or(ast::BinaryOp::kAdd);
  RETURN_IF_ERROR(CheckTarget(*target, assign.is_augmented));
  tokens_.Take();
  assign.target = std::move(target);
  ASSIGN_OR_RETURN(assign.value, expressions_.ExpressionList());
  if (tokens_.Is("=")) {
    return tokens_.source().Error(tokens_.Peek().span, "one statement assigns once",
                                  "write a statement for each target");
  }
  return ast::Stmt{std::move(assign), {}};
}

absl::Status FunctionParser::RefuseLoopElse() const {
  if (!tokens_.IsWord("else")) return absl::OkStatus();
  return tokens_.source().Error(tokens_.Peek().span, "a loop has no 'else' in the language",
                                "keep a flag: done: ph.var = False, and test it after the loop");
}

absl::StatusOr<ast::Stmt> FunctionParser::ForStatement() {
  const int32_t begin = tokens_.Take().span.begin;
  ast::For loop;
  if (tokens_.Is("(") || tokens_.Is(",", 1)) {
    return tokens_.source().Error(tokens_.Peek().span, "a loop of the language has one variable",
                                  "write: for i in ph.range(n):");
  }
  loop.name_span = tokens_.Peek().span;
  ASSIGN_OR_RETURN(loop.name, NewName("the loop's variable"));
  if (!tokens_.IsWord("in"))
    return tokens_.Unexpected("'in' after the loop's variable", "write: for i in ph.range(n):");
  tokens_.Take();
  ASSIGN_OR_RETURN(loop.iterable, expressions_.ExpressionList());
  const int32_t end = tokens_.SpanFrom(begin).end;
  ASSIGN_OR_RETURN(loop.body, Suite("after the loop's range"));
  RETURN_IF_ERROR(RefuseLoopElse());
  return ast::Stmt{std::move(loop), {begin, end}};
}

absl::StatusOr<ast::Stmt> FunctionParser::WhileStatement() {
  const int32_t begin = tokens_.Take().span.begin;
  ast::While loop;
  ASSIGN_OR_RETURN(loop.condition, expressions_.Expression());
  const int32_t end = tokens_.SpanFrom(begin).end;
  ASSIGN_OR_RETURN(loop.body, Suite("after the condition"));
  RETURN_IF_ERROR(RefuseLoopElse());
  return ast::Stmt{std::move(loop), {begin, end}};
}

absl::StatusOr<ast::Stmt> FunctionParser::IfStatement() {
  const int32_t begin = tokens_.Take().span.begin;  // 'if' or 'elif'
  if (++depth_ > kMaxBlockDepth) {
    return tokens_.source().Error(tokens_.SpanFrom(begin), "the blocks are nested too deeply",
                                  "move the inner ones to a ph.fn");
  }
  ast::If branch;
  ASSIGN_OR_RETURN(branch.condition, expressions_.Expression());
  const int32_t end = tokens_.SpanFrom(begin).end;
  ASSIGN_OR_RETURN(branch.then, Suite("after the condition"));
  if (tokens_.IsWord("elif")) {
    ASSIGN_OR_RETURN(ast::Stmt next, IfStatement());
    branch.otherwise.push_back(std::move(next));
  } else if (tokens_.IsWord("else")) {
    tokens_.Take();
    ASSIGN_OR_RETURN(branch.otherwise, Suite("after 'else'"));
  }
  --depth_;
  return ast::Stmt{std::move(branch), {begin, end}};
}

}  // namespace phobos::compiler
