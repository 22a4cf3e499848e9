// SPDX-License-Identifier: Apache-2.0
//
// Numbers of every element type for the reference interpreter, each as the bits it has in memory,
// and plain scalar arithmetic on them: what the tile IR's opcodes mean, written once more without
// LLVM, vectors or speed. Pure, any thread.
#ifndef PHOBOS_TESTS_COMPILER_CODEGEN_NUMBER_H_
#define PHOBOS_TESTS_COMPILER_CODEGEN_NUMBER_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::testing {

// Low bits: the element's; signed integers sign-extended, all else zero-extended.
using Bits = int64_t;

// A float of any type as a long double, exactly; REQUIRES: dtype is a float.
long double ToReal(ir::DType dtype, Bits bits);
// The nearest float of the type. `sticky` is the sign of what `value` lacks to be exact, in the
// direction of growing magnitude: it decides ties.
Bits FromReal(ir::DType dtype, long double value, int sticky = 0);
// An integer or bool of the type, wrapped.
Bits FromInteger(ir::DType dtype, __int128 value);
__int128 ToInteger(ir::DType dtype, Bits bits);
bool IsNan(ir::DType dtype, Bits bits);

// The result of an element-wise op other than a built-in of limited accuracy (kExp to kSigmoid but
// kSqrt), for operands of `dtype` (of kSelect: its arms).
Bits Apply(const ir::Op& op, ir::DType dtype, const std::vector<Bits>& operands);

// How many values of the type lie between: the error of `got` in units in the last place of
// `want`, where `want` is more exact than the type. Infinite where only one is infinite or NaN.
double UlpError(ir::DType dtype, Bits got, long double want);

}  // namespace phobos::compiler::testing

#endif  // PHOBOS_TESTS_COMPILER_CODEGEN_NUMBER_H_
