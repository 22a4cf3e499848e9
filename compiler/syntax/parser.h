// SPDX-License-Identifier: Apache-2.0
//
// Text to syntax tree, by recursive descent with a depth limit, so that no input can exhaust the stack. The first error
// ends the parse. Pure, any thread.
#ifndef PHOBOS_COMPILER_SYNTAX_PARSER_H_
#define PHOBOS_COMPILER_SYNTAX_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler {

// Parses all kernels, ph.fn functions and module constants of a file. What else stands at module level is skipped, to the
// end of its block, whatever it is. `source` must outlive the call only. Errors: Source::Error's InvalidArgument.
absl::StatusOr<ast::Module> Parse(const Source& source);

// Parses one expression that stands alone: the text inside @ph.constraint("..."). `source` is that text as a file of its
// own; the caller maps the place back.
absl::StatusOr<ast::ExprPtr> ParseExpression(const Source& source);

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_SYNTAX_PARSER_H_
