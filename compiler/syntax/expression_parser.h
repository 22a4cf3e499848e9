// SPDX-License-Identifier: Apache-2.0
//
// Expressions, by precedence climbing. Bounds both its own recursion and the height of the trees
// that it makes, so that neither reading nor walking one can exhaust a stack. Private to syntax/.
// One thread.
#ifndef PHOBOS_COMPILER_SYNTAX_EXPRESSION_PARSER_H_
#define PHOBOS_COMPILER_SYNTAX_EXPRESSION_PARSER_H_

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/token_stream.h"

namespace phobos::compiler {

class ExpressionParser {
 public:
  // `tokens` must outlive the parser, and is left behind what was read.
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // One expression without a bare comma.
  absl::StatusOr<ast::ExprPtr> Expression();

  // One expression, or several with commas between them: a Tuple.
  absl::StatusOr<ast::ExprPtr> ExpressionList();

  // The arguments of a call, the opening parenthesis taken already. The values of keywords named in
  // `opaque` are skipped and null: they are Python's.
  absl::Status Arguments(const std::vector<std::string_view>& opaque,
                         std::vector<ast::ExprPtr>* positional,
                         std::vector<ast::KeywordArgument>* keyword);

 private:
  // A tree and its height.
  struct Tree {
    std::unique_ptr<ast::Expr> expr;
    int height = 0;
  };
  class Nesting;

  template <typename Node>
  absl::StatusOr<Tree> Make(Node node, Span span, int height) const;

  absl::StatusOr<Tree> Full();
  absl::StatusOr<Tree> FullList();
  absl::StatusOr<Tree> Operators(int minimum);
  absl::StatusOr<Tree> Comparison(Tree first);
  absl::StatusOr<Tree> Prefix(int minimum);
  absl::StatusOr<Tree> Power();
  absl::StatusOr<Tree> Primary();
  absl::StatusOr<Tree> MemberOf(Tree base);
  absl::StatusOr<Tree> CallOf(Tree callee);
  absl::StatusOr<Tree> IndexOf(Tree base);
  absl::StatusOr<ast::Subscript> OneSubscript(int* height);
  absl::Status SliceAfterColon(ast::Subscript* subscript, int* height);
  absl::StatusOr<Tree> Atom();
  absl::StatusOr<Tree> NameOrWord();
  absl::StatusOr<Tree> LanguageNameAt(size_t alias_tokens);
  absl::StatusOr<Tree> Strings();
  absl::StatusOr<Tree> Parenthesized();
  absl::StatusOr<Tree> ListDisplay();
  absl::Status ArgumentsOf(const std::vector<std::string_view>& opaque,
                           std::vector<ast::ExprPtr>* positional,
                           std::vector<ast::KeywordArgument>* keyword, int* height);
  absl::Status KeywordValue(const std::vector<std::string_view>& opaque,
                            ast::KeywordArgument* argument, int* height);
  void SkipHostExpression();
  absl::Status RefuseOperator() const;
  absl::Status RefuseComprehension() const;
  bool AtExpressionStart() const;

  TokenStream& tokens_;
  int depth_ = 0;
};

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_SYNTAX_EXPRESSION_PARSER_H_
