// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/expression_parser.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "base/concat.h"
#include "base/status_macros.h"

namespace phobos::compiler {
namespace {

constexpr int kMaxDepth = 200;
constexpr int kMaxHeight = 400;

using ast::Precedence;

// '**' is no operator here: it binds tighter on one side than on the other.
std::optional<ast::BinaryForm> BinaryOperatorAt(const TokenStream& tokens) {
  const bool is_word = tokens.kind() == TokenKind::kName;
  if (!is_word && tokens.kind() != TokenKind::kOperator) return std::nullopt;
  const std::string_view text = tokens.Text();
  for (const ast::BinaryForm& form : ast::kBinaryForms) {
    if (form.sign == text && form.op != ast::BinaryOp::kPow) return form;
  }
  return std::nullopt;
}

std::optional<ast::CompareOp> CompareOpAt(const TokenStream& tokens) {
  for (size_t i = 0; i < std::size(ast::kCompareSigns); ++i) {
    if (tokens.Is(ast::kCompareSigns[i])) return static_cast<ast::CompareOp>(i);
  }
  return std::nullopt;
}

}  // namespace

// Counts one level of recursion for as long as it lives.
class ExpressionParser::Nesting {
 public:
  explicit Nesting(ExpressionParser& parser) : parser_(parser) { ++parser_.depth_; }
  ~Nesting() { --parser_.depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

  absl::Status status() const {
    if (parser_.depth_ <= kMaxDepth) return absl::OkStatus();
    return parser_.tokens_.source().Error(parser_.tokens_.Peek().span,
                                          "the expression is nested too deeply",
                                          "give parts of it names with let");
  }

 private:
  ExpressionParser& parser_;
};

template <typename Node>
absl::StatusOr<ExpressionParser::Tree> ExpressionParser::Make(Node node, Span span,
                                                              int height) const {
  if (height > kMaxHeight) {
    return tokens_.source().Error({span.end, span.end}, "the expression has too many operations",
                                  "give parts of it names with let");
  }
  auto expr = std::make_unique<ast::Expr>();
  expr->node = std::move(node);
  expr->span = span;
  return Tree{std::move(expr), height};
}

absl::StatusOr<ast::ExprPtr> ExpressionParser::Expression() {
  ASSIGN_OR_RETURN(Tree tree, Full());
  return std::move(tree.expr);
}

absl::StatusOr<ast::ExprPtr> ExpressionParser::ExpressionList() {
  ASSIGN_OR_RETURN(Tree tree, FullList());
  return std::move(tree.expr);
}

absl::Status ExpressionParser::Arguments(const std::vector<std::string_view>& opaque,
                                         std::vector<ast::ExprPtr>* positional,
                                         std::vector<ast::KeywordArgument>* keyword) {
  int height = 0;
  return ArgumentsOf(opaque, positional, keyword, &height);
}

bool ExpressionParser::AtExpressionStart() const {
  if (tokens_.AtStatementEnd()) return false;
  return !tokens_.Is(")") && !tokens_.Is("]") && !tokens_.Is("}") && !tokens_.Is("=") &&
         !tokens_.Is(":");
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::FullList() {
  const int32_t begin = tokens_.Peek().span.begin;
  ASSIGN_OR_RETURN(Tree first, Full());
  if (!tokens_.Is(",")) return first;
  ast::Tuple tuple;
  int height = first.height;
  tuple.elements.push_back(std::move(first.expr));
  while (tokens_.TakeIf(",")) {
    if (!AtExpressionStart()) break;
    ASSIGN_OR_RETURN(Tree next, Full());
    height = std::max(height, next.height);
    tuple.elements.push_back(std::move(next.expr));
  }
  return Make(std::move(tuple), tokens_.SpanFrom(begin), height + 1);
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::Full() {
  const Nesting nesting(*this);
  RETURN_IF_ERROR(nesting.status());
  const Source& source = tokens_.source();
  if (tokens_.IsWord("lambda")) {
    return source.Error(tokens_.Peek().span, "a lambda is outside the language",
                        "define a function with @ph.fn and call it");
  }
  if (tokens_.Is("*") || tokens_.Is("**")) {
    return source.Error(tokens_.Peek().span, "unpacking with a star is outside the language",
                        "write each value on its own");
  }
  const int32_t begin = tokens_.Peek().span.begin;
  ASSIGN_OR_RETURN(Tree then, Operators(Precedence::kOr));
  if (tokens_.Is(":=")) {
    return source.Error(tokens_.Peek().span, "':=' is outside the language",
                        "bind the name first, in a line of its own: name: ph.let = ...");
  }
  if (!tokens_.IsWord("if")) return then;
  tokens_.Take();
  ASSIGN_OR_RETURN(Tree condition, Operators(Precedence::kOr));
  if (!tokens_.IsWord("else")) {
    return tokens_.Unexpected("'else' after the condition", "write: a if condition else b");
  }
  tokens_.Take();
  ASSIGN_OR_RETURN(Tree otherwise, Full());
  const int height = std::max({then.height, condition.height, otherwise.height}) + 1;
  return Make(
      ast::Conditional{std::move(condition.expr), std::move(then.expr), std::move(otherwise.expr)},
      tokens_.SpanFrom(begin), height);
}

absl::Status ExpressionParser::RefuseOperator() const {
  const Source& source = tokens_.source();
  const Span span = tokens_.Peek().span;
  if (tokens_.Is("@")) {
    return source.Error(span, "'@' is no operator of the language", "write ph.dot(a, b)");
  }
  if ((tokens_.Is("&") && tokens_.Is("&", 1)) || (tokens_.Is("|") && tokens_.Is("|", 1))) {
    return source.Error(
        {span.begin, tokens_.Peek(1).span.end},
        Concat("'", tokens_.Text(), tokens_.Text(), "' is no operator of the language"),
        tokens_.Is("&") ? "write and" : "write or");
  }
  if (tokens_.IsWord("is")) {
    return source.Error(span, "'is' is outside the language", "compare values with == or !=");
  }
  const bool is_membership =
      tokens_.IsWord("in") || (tokens_.IsWord("not") && tokens_.IsWord("in", 1));
  if (is_membership) {
    return source.Error(span, "'in' is no operator of the language",
                        "compare with each value: x == 1 or x == 2");
  }
  return absl::OkStatus();
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::Operators(int minimum) {
  const int32_t begin = tokens_.Peek().span.begin;
  ASSIGN_OR_RETURN(Tree left, Prefix(minimum));
  while (true) {
    RETURN_IF_ERROR(RefuseOperator());
    if (CompareOpAt(tokens_).has_value()) {
      if (minimum > Precedence::kComparison) return left;
      ASSIGN_OR_RETURN(left, Comparison(std::move(left)));
      continue;
    }
    const std::optional<ast::BinaryForm> op = BinaryOperatorAt(tokens_);
    if (!op.has_value() || op->precedence < minimum) return left;
    tokens_.Take();
    ASSIGN_OR_RETURN(Tree right, Operators(op->precedence + 1));
    const int height = std::max(left.height, right.height) + 1;
    ASSIGN_OR_RETURN(left, Make(ast::Binary{op->op, std::move(left.expr), std::move(right.expr)},
                                tokens_.SpanFrom(begin), height));
  }
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::Comparison(Tree first) {
  const int32_t begin = first.expr->span.begin;
  ast::Compare compare;
  int height = first.height;
  compare.operands.push_back(std::move(first.expr));
  while (const std::optional<ast::CompareOp> op = CompareOpAt(tokens_)) {
    tokens_.Take();
    ASSIGN_OR_RETURN(Tree next, Operators(Precedence::kBitOr));
    height = std::max(height, next.height);
    compare.ops.push_back(*op);
    compare.operands.push_back(std::move(next.expr));
  }
  return Make(std::move(compare), tokens_.SpanFrom(begin), height + 1);
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::Prefix(int minimum) {
  const Nesting nesting(*this);
  RETURN_IF_ERROR(nesting.status());
  const Token token = tokens_.Peek();
  std::optional<ast::UnaryOp> op;
  int operand = Precedence::kSign;
  if (tokens_.IsWord("not")) {
    if (minimum > Precedence::kNot) {
      return tokens_.source().Error(token.span, "'not' binds weaker than what stands before it",
                                    "put it in parentheses: (not x)");
    }
    op = ast::UnaryOp::kNot;
    operand = Precedence::kNot;
  } else if (tokens_.Is("-")) {
    op = ast::UnaryOp::kNegate;
  } else if (tokens_.Is("+")) {
    op = ast::UnaryOp::kPlus;
  } else if (tokens_.Is("~")) {
    op = ast::UnaryOp::kInvert;
  }
  if (!op.has_value()) return Power();
  tokens_.Take();
  ASSIGN_OR_RETURN(Tree tree, operand == Precedence::kNot ? Operators(Precedence::kNot)
                                                          : Prefix(Precedence::kSign));
  const int height = tree.height + 1;
  return Make(ast::Unary{*op, std::move(tree.expr)}, tokens_.SpanFrom(token.span.begin), height);
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::Power() {
  const int32_t begin = tokens_.Peek().span.begin;
  ASSIGN_OR_RETURN(Tree base, Primary());
  if (!tokens_.TakeIf("**")) return base;
  ASSIGN_OR_RETURN(Tree exponent, Prefix(Precedence::kSign));
  const int height = std::max(base.height, exponent.height) + 1;
  return Make(ast::Binary{ast::BinaryOp::kPow, std::move(base.expr), std::move(exponent.expr)},
              tokens_.SpanFrom(begin), height);
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::Primary() {
  ASSIGN_OR_RETURN(Tree tree, Atom());
  while (true) {
    if (tokens_.Is(".")) {
      ASSIGN_OR_RETURN(tree, MemberOf(std::move(tree)));
    } else if (tokens_.Is("(")) {
      ASSIGN_OR_RETURN(tree, CallOf(std::move(tree)));
    } else if (tokens_.Is("[")) {
      ASSIGN_OR_RETURN(tree, IndexOf(std::move(tree)));
    } else {
      return tree;
    }
  }
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::MemberOf(Tree base) {
  const int32_t begin = base.expr->span.begin;
  tokens_.Take();
  if (tokens_.kind() != TokenKind::kName || IsKeyword(tokens_.Text())) {
    return tokens_.Unexpected("a name after '.'", "write the name of the member");
  }
  std::string name(tokens_.Text());
  tokens_.Take();
  return Make(ast::Attribute{std::move(base.expr), std::move(name)}, tokens_.SpanFrom(begin),
              base.height + 1);
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::CallOf(Tree callee) {
  const int32_t begin = callee.expr->span.begin;
  tokens_.Take();
  ast::Call call;
  int height = callee.height;
  call.callee = std::move(callee.expr);
  RETURN_IF_ERROR(ArgumentsOf({}, &call.positional, &call.keyword, &height));
  return Make(std::move(call), tokens_.SpanFrom(begin), height + 1);
}

absl::Status ExpressionParser::RefuseComprehension() const {
  if (!tokens_.IsWord("for") && !tokens_.IsWord("async")) return absl::OkStatus();
  return tokens_.source().Error(tokens_.Peek().span, "a comprehension is outside the language",
                                "write the values out, or a loop: for i in ph.range(n): ...");
}

absl::Status ExpressionParser::ArgumentsOf(const std::vector<std::string_view>& opaque,
                                           std::vector<ast::ExprPtr>* positional,
                                           std::vector<ast::KeywordArgument>* keyword,
                                           int* height) {
  while (!tokens_.TakeIf(")")) {
    if (tokens_.kind() == TokenKind::kName && tokens_.Is("=", 1)) {
      ast::KeywordArgument argument;
      RETURN_IF_ERROR(KeywordValue(opaque, &argument, height));
      for (const ast::KeywordArgument& other : *keyword) {
        if (other.name != argument.name) continue;
        return tokens_.source().Error(argument.name_span,
                                      Concat("'", argument.name, "=' is given twice"),
                                      "keep one of them");
      }
      keyword->push_back(std::move(argument));
    } else {
      const Span span = tokens_.Peek().span;
      ASSIGN_OR_RETURN(Tree tree, Full());
      RETURN_IF_ERROR(RefuseComprehension());
      if (!keyword->empty()) {
        return tokens_.source().Error(span, "a positional argument follows a keyword argument",
                                      "put it before the keywords, or give it its name");
      }
      *height = std::max(*height, tree.height);
      positional->push_back(std::move(tree.expr));
    }
    if (!tokens_.TakeIf(",") && !tokens_.Is(")")) {
      return tokens_.Unexpected("',' or ')' after the argument", "separate arguments with commas");
    }
  }
  return absl::OkStatus();
}

absl::Status ExpressionParser::KeywordValue(const std::vector<std::string_view>& opaque,
                                            ast::KeywordArgument* argument, int* height) {
  argument->name = tokens_.Text();
  argument->name_span = tokens_.Take().span;
  if (IsKeyword(argument->name)) {
    return tokens_.source().Error(argument->name_span,
                                  Concat("'", argument->name, "' is a word of Python"),
                                  "write the name of an argument");
  }
  tokens_.Take();  // '='
  if (std::find(opaque.begin(), opaque.end(), argument->name) != opaque.end()) {
    SkipHostExpression();
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Tree tree, Full());
  RETURN_IF_ERROR(RefuseComprehension());
  *height = std::max(*height, tree.height);
  argument->value = std::move(tree.expr);
  return absl::OkStatus();
}

// To the comma or parenthesis that ends an argument. The commas of a lambda's parameters end
// nothing.
void ExpressionParser::SkipHostExpression() {
  int brackets = 0;
  int lambdas = 0;
  while (tokens_.kind() != TokenKind::kEnd) {
    const bool opens = tokens_.Is("(") || tokens_.Is("[") || tokens_.Is("{");
    const bool closes = tokens_.Is(")") || tokens_.Is("]") || tokens_.Is("}");
    if (brackets == 0) {
      if (closes || (lambdas == 0 && tokens_.Is(","))) return;
      if (tokens_.IsWord("lambda")) ++lambdas;
      if (tokens_.Is(":") && lambdas > 0) --lambdas;
    }
    brackets += opens ? 1 : closes ? -1 : 0;
    tokens_.Take();
  }
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::IndexOf(Tree base) {
  const int32_t begin = base.expr->span.begin;
  const Span bracket = tokens_.Take().span;
  ast::Index index;
  int height = base.height;
  index.base = std::move(base.expr);
  if (tokens_.Is("]")) {
    return tokens_.source().Error({bracket.begin, tokens_.Peek().span.end},
                                  "a subscript is missing",
                                  "write one subscript for each dimension");
  }
  while (!tokens_.TakeIf("]")) {
    ASSIGN_OR_RETURN(ast::Subscript subscript, OneSubscript(&height));
    index.subscripts.push_back(std::move(subscript));
    if (!tokens_.TakeIf(",") && !tokens_.Is("]")) {
      return tokens_.Unexpected("',' or ']' after the subscript",
                                "separate subscripts with commas");
    }
  }
  return Make(std::move(index), tokens_.SpanFrom(begin), height + 1);
}

absl::StatusOr<ast::Subscript> ExpressionParser::OneSubscript(int* height) {
  ast::Subscript subscript;
  const int32_t begin = tokens_.Peek().span.begin;
  if (tokens_.Is("...")) {
    return tokens_.source().Error(tokens_.Peek().span, "'...' is no subscript",
                                  "write one subscript for each dimension: A[i, :]");
  }
  if (!tokens_.Is(":")) {
    ASSIGN_OR_RETURN(Tree first, Full());
    RETURN_IF_ERROR(RefuseComprehension());
    *height = std::max(*height, first.height);
    if (std::holds_alternative<ast::NoneLiteral>(first.expr->node)) {
      subscript.kind = ast::Subscript::Kind::kNewAxis;
    } else {
      subscript.first = std::move(first.expr);
    }
  }
  if (tokens_.TakeIf(":")) RETURN_IF_ERROR(SliceAfterColon(&subscript, height));
  subscript.span = tokens_.SpanFrom(begin);
  return subscript;
}

// A '+' right after the colon makes what follows it a length.
absl::Status ExpressionParser::SliceAfterColon(ast::Subscript* subscript, int* height) {
  if (subscript->kind == ast::Subscript::Kind::kNewAxis) {
    return tokens_.source().Error(tokens_.SpanFrom(tokens_.Peek().span.begin),
                                  "a slice does not start at None",
                                  "write where it starts: A[0:n]");
  }
  subscript->kind = ast::Subscript::Kind::kSlice;
  const Token plus = tokens_.Peek();
  if (tokens_.TakeIf("+")) {
    if (subscript->first == nullptr) {
      return tokens_.source().Error(plus.span, "this slice has a length but no start",
                                    "write where it starts: A[0:+n]");
    }
    subscript->kind = ast::Subscript::Kind::kLengthSlice;
  }
  if (!tokens_.Is("]") && !tokens_.Is(",") && !tokens_.Is(":")) {
    ASSIGN_OR_RETURN(Tree second, Full());
    *height = std::max(*height, second.height);
    subscript->second = std::move(second.expr);
  } else if (subscript->kind == ast::Subscript::Kind::kLengthSlice) {
    return tokens_.Unexpected("the length of the slice", "write how many elements: A[i:+n]");
  }
  if (tokens_.Is(":")) {
    return tokens_.source().Error(tokens_.Peek().span, "a slice has no step in the language",
                                  "gather with an index tile instead: A[i + 2 * ph.iota(n)]");
  }
  return absl::OkStatus();
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::Atom() {
  const Token token = tokens_.Peek();
  const Source& source = tokens_.source();
  switch (token.kind) {
    case TokenKind::kName:
      return NameOrWord();
    case TokenKind::kInt: {
      ASSIGN_OR_RETURN(const uint64_t value, DecodeInt(source, token));
      tokens_.Take();
      return Make(ast::IntLiteral{value}, token.span, 1);
    }
    case TokenKind::kFloat:
      tokens_.Take();
      return Make(ast::FloatLiteral{DecodeFloat(source, token)}, token.span, 1);
    case TokenKind::kComplex:
      return source.Error(token.span, "the language has no complex numbers",
                          "keep the real and the imaginary part apart");
    case TokenKind::kString:
    case TokenKind::kBytes:
    case TokenKind::kFormatString:
      return Strings();
    default:
      break;
  }
  if (tokens_.Is("(")) return Parenthesized();
  if (tokens_.Is("[")) return ListDisplay();
  if (tokens_.Is("{")) {
    return source.Error(token.span, "the language has no sets and no dicts",
                        "use names for single values, tiles for many");
  }
  if (tokens_.Is("...")) {
    return source.Error(token.span, "'...' has no value in the language",
                        "write the value, or pass as a statement");
  }
  return tokens_.Unexpected("an expression", "write a value here");
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::NameOrWord() {
  const Token token = tokens_.Peek();
  const std::string_view text = tokens_.Text();
  const Source& source = tokens_.source();
  if (const size_t count = tokens_.LanguageTokens(); count > 0) return LanguageNameAt(count);
  if (!IsKeyword(text)) {
    tokens_.Take();
    return Make(ast::Name{std::string(text)}, token.span, 1);
  }
  if (text == "True" || text == "False") {
    tokens_.Take();
    return Make(ast::BoolLiteral{text == "True"}, token.span, 1);
  }
  if (text == "None") {
    tokens_.Take();
    return Make(ast::NoneLiteral{}, token.span, 1);
  }
  if (text == "await" || text == "yield" || text == "async") {
    return source.Error(token.span, Concat("'", text, "' is outside the language"),
                        "a kernel runs from its first line to its last; remove it");
  }
  return tokens_.Unexpected("an expression", "write a value here");
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::LanguageNameAt(size_t alias_tokens) {
  const int32_t begin = tokens_.Peek().span.begin;
  for (size_t i = 0; i < alias_tokens; ++i) tokens_.Take();
  ast::LanguageName name;
  while (tokens_.Is(".") && tokens_.kind(1) == TokenKind::kName) {
    tokens_.Take();
    name.path.emplace_back(tokens_.Text());
    tokens_.Take();
  }
  if (!name.path.empty()) return Make(std::move(name), tokens_.SpanFrom(begin), 1);
  const Span span = tokens_.SpanFrom(begin);
  return tokens_.source().Error(
      span, Concat("'", tokens_.source().text(span), "' is the language itself, no value"),
      Concat("write one of its names: ", tokens_.source().text(span), ".exp"));
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::Strings() {
  const Token first = tokens_.Peek();
  const Source& source = tokens_.source();
  std::string value;
  while (true) {
    const Token token = tokens_.Peek();
    if (token.kind == TokenKind::kFormatString) {
      return source.Error(token.span, "a format string is outside the language",
                          "write plain text; ph.print takes the values as arguments");
    }
    if (token.kind == TokenKind::kBytes) {
      return source.Error(token.span, "the language has no bytes",
                          "write a plain string, without b");
    }
    if (token.kind != TokenKind::kString) break;
    ASSIGN_OR_RETURN(const std::string piece, DecodeString(source, token));
    value += piece;
    tokens_.Take();
  }
  return Make(ast::StringLiteral{std::move(value)}, tokens_.SpanFrom(first.span.begin), 1);
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::Parenthesized() {
  const int32_t begin = tokens_.Take().span.begin;
  if (tokens_.TakeIf(")")) return Make(ast::Tuple{}, tokens_.SpanFrom(begin), 1);
  ASSIGN_OR_RETURN(Tree tree, FullList());
  RETURN_IF_ERROR(RefuseComprehension());
  RETURN_IF_ERROR(tokens_.Expect(")", "to close the parenthesis"));
  tree.expr->span = tokens_.SpanFrom(begin);
  return tree;
}

absl::StatusOr<ExpressionParser::Tree> ExpressionParser::ListDisplay() {
  const int32_t begin = tokens_.Take().span.begin;
  ast::List list;
  int height = 0;
  while (!tokens_.TakeIf("]")) {
    ASSIGN_OR_RETURN(Tree tree, Full());
    RETURN_IF_ERROR(RefuseComprehension());
    height = std::max(height, tree.height);
    list.elements.push_back(std::move(tree.expr));
    if (!tokens_.TakeIf(",") && !tokens_.Is("]")) {
      return tokens_.Unexpected("',' or ']' in the list", "separate elements with commas");
    }
  }
  return Make(std::move(list), tokens_.SpanFrom(begin), height + 1);
}

}  // namespace phobos::compiler
