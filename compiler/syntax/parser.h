// SPDX-License-Identifier: Apache-2.0
//
// Text to syntax tree, by recursive descent with a depth limit, so that no input can exhaust the
// stack. The first error in a kernel or ph.fn ends the reading of that one. Pure, any thread.
#ifndef PHOBOS_COMPILER_SYNTAX_PARSER_H_
#define PHOBOS_COMPILER_SYNTAX_PARSER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler {

// Parses all kernels, ph.fn functions and module constants of a file. What else stands at module
// level is skipped, to the end of its block, whatever it is. `source` must outlive the call only.
// Errors: Source::Error's InvalidArgument, where the text cannot be taken into tokens; what is
// wrong in one function is in Module::broken.
absl::StatusOr<ast::Module> Parse(const Source& source);

// Parses the expression that a string of `source` holds, for example inside @ph.constraint("...");
// `span` is the string's, with its quotes, and the places of the tree are places of `source`.
// `aliases` are ast::Module's. The string must be one plain literal without escapes, so that each
// place in it is a place in the file; else an error says so.
absl::StatusOr<ast::ExprPtr> ParseQuotedExpression(const Source& source, Span span,
                                                   const std::vector<std::string>& aliases);

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_SYNTAX_PARSER_H_
