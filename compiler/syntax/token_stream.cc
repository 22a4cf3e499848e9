// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/token_stream.h"

#include <algorithm>
#include <iterator>

#include "base/concat.h"

namespace phobos::compiler {

Span TokenStream::SpanFrom(int32_t begin) const {
  const int32_t end = position_ > 0 ? tokens_[position_ - 1].span.end : begin;
  return {begin, std::max(begin, end)};
}

size_t TokenStream::LanguageTokens() const {
  if (kind() != TokenKind::kName) return 0;
  for (const std::string& alias : aliases_) {
    size_t count = 0;
    std::string_view rest = alias;
    while (true) {
      const size_t dot = rest.find('.');
      if (!IsWord(rest.substr(0, dot), count)) break;
      ++count;
      if (dot == std::string_view::npos) return count;
      if (!Is(".", count)) break;
      ++count;
      rest.remove_prefix(dot + 1);
    }
  }
  return 0;
}

bool TokenStream::IsAlias(std::string_view name) const {
  return std::any_of(aliases_.begin(), aliases_.end(), [&](const std::string& alias) {
    return std::string_view(alias).substr(0, alias.find('.')) == name;
  });
}

absl::Status TokenStream::Expect(std::string_view op, std::string_view where) {
  if (TakeIf(op)) return absl::OkStatus();
  return Unexpected(Concat("'", op, "' ", where), Concat("write '", op, "' here"));
}

absl::Status TokenStream::Unexpected(std::string_view wanted, std::string_view remedy) const {
  const Token& token = Peek();
  std::string found;
  switch (token.kind) {
    case TokenKind::kBad:
      return DescribeBadToken(source_, token);
    case TokenKind::kEnd:
      found = end_;
      break;
    case TokenKind::kNewline:
      found = "the end of the line";
      break;
    case TokenKind::kIndent:
      found = "an indented line";
      break;
    case TokenKind::kDedent:
      found = "the end of the block";
      break;
    case TokenKind::kString:
    case TokenKind::kBytes:
    case TokenKind::kFormatString:
      found = "a string";
      break;
    default:
      found = Concat("'", Text(), "'");
  }
  return source_.Error(token.span, Concat("expected ", wanted, ", found ", found), remedy);
}

bool IsKeyword(std::string_view word) {
  // Sorted.
  static constexpr std::string_view kKeywords[] = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  return std::binary_search(std::begin(kKeywords), std::end(kKeywords), word);
}

}  // namespace phobos::compiler
