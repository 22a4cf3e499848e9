// SPDX-License-Identifier: Apache-2.0
//
// Decorators, signatures and statements: one function under @ph.kernel or @ph.fn, from its first
// decorator to the end of its body. Private to syntax/. One thread.
#ifndef PHOBOS_COMPILER_SYNTAX_FUNCTION_PARSER_H_
#define PHOBOS_COMPILER_SYNTAX_FUNCTION_PARSER_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/expression_parser.h"
#include "compiler/syntax/token_stream.h"

namespace phobos::compiler {

class FunctionParser {
 public:
  // `tokens` must outlive the parser.
  explicit FunctionParser(TokenStream& tokens) : tokens_(tokens), expressions_(tokens) {}

  // REQUIRES: the next token is the '@' of the function's first decorator. Errors: Source::Error.
  absl::StatusOr<ast::Function> Function();

 private:
  absl::Status OneDecorator(ast::Function* function);
  absl::Status Header(ast::Function* function);
  absl::Status Parameters(ast::Function* function);
  absl::StatusOr<ast::ExprPtr> Annotation();
  absl::StatusOr<std::string> NewName(std::string_view what);

  absl::StatusOr<ast::Block> Suite(std::string_view after);
  absl::Status StatementLine(ast::Block* block);
  absl::Status SimpleStatements(ast::Block* block);
  absl::StatusOr<ast::Stmt> SimpleStatement();
  absl::StatusOr<ast::Stmt> ExpressionStatement();
  absl::StatusOr<ast::Stmt> Declaration(ast::ExprPtr target);
  absl::StatusOr<ast::Stmt> Assignment(ast::ExprPtr target);
  absl::Status CheckTarget(const ast::Expr& target, bool is_augmented) const;
  absl::StatusOr<ast::Stmt> ForStatement();
  absl::StatusOr<ast::Stmt> WhileStatement();
  absl::StatusOr<ast::Stmt> IfStatement();
  absl::Status RefuseLoopElse() const;
  absl::Status RefuseStatement() const;
  void DropDocstring(ast::Block* body);

  TokenStream& tokens_;
  ExpressionParser expressions_;
  int depth_ = 0;  // of blocks
};

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_SYNTAX_FUNCTION_PARSER_H_
