// SPDX-License-Identifier: Apache-2.0
//
// How far a float is from what it should be. Pure, any thread.
#ifndef PHOBOS_TESTS_COMPILER_CODEGEN_COMPILED_ULP_H_
#define PHOBOS_TESTS_COMPILER_CODEGEN_COMPILED_ULP_H_

#include "compiler/interpreter/number.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::testing {

// How many values of the type lie between: the error of `got` in units in the last place of
// `want`, where `want` is more exact than the type. Infinite where only one is infinite or NaN.
double UlpError(ir::DType dtype, interpreter::Bits got, long double want);

}  // namespace phobos::compiler::testing

#endif  // PHOBOS_TESTS_COMPILER_CODEGEN_COMPILED_ULP_H_
