// SPDX-License-Identifier: Apache-2.0
//
// A function of the tile IR as a user would write it: one statement an op, in the language that
// compiler/sema lowers. For tests; pure, any thread.
#ifndef PHOBOS_TESTS_COMPILER_CODEGEN_RANDOM_SOURCE_TEXT_H_
#define PHOBOS_TESTS_COMPILER_CODEGEN_RANDOM_SOURCE_TEXT_H_

#include <string>

#include "compiler/ir/ir.h"

namespace phobos::compiler::testing {

// A file with one kernel, which does what `function` does. Constants are written as variables, so
// that nothing of it is computed or refused before it runs. REQUIRES: the function passes
// ir::Verify, no pass has seen it, it has no reshape, transpose or reduction, and
// no two of its parameters and extents share a name.
std::string SourceOf(const ir::Function& function);

}  // namespace phobos::compiler::testing

#endif  // PHOBOS_TESTS_COMPILER_CODEGEN_RANDOM_SOURCE_TEXT_H_
