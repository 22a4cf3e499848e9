// SPDX-License-Identifier: Apache-2.0
//
// Numbers of every element type as the bits that they have in memory, and what the element-wise
// opcodes of the tile IR do to them, written without LLVM, vectors or speed. Pure, any thread.
#ifndef PHOBOS_COMPILER_INTERPRETER_NUMBER_H_
#define PHOBOS_COMPILER_INTERPRETER_NUMBER_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::interpreter {

// Low bits: the element's; signed integers sign-extended, all else zero-extended.
using Bits = int64_t;

// A float of the type is m * 2^e: m an integer of so many binary digits, e from least to greatest.
struct FloatFormat {
  int digits;
  int least;
  int greatest;
};
// REQUIRES: dtype is a float.
FloatFormat FormatOf(ir::DType dtype);

// A float of any type as a long double, exactly; REQUIRES: dtype is a float.
long double ToReal(ir::DType dtype, Bits bits);
// The nearest float of the type. `sticky` is the sign of what `value` lacks to be exact, in the
// direction of growing magnitude: it decides ties.
Bits FromReal(ir::DType dtype, long double value, int sticky = 0);
// An integer or bool of the type, wrapped.
Bits FromInteger(ir::DType dtype, __int128 value);
__int128 ToInteger(ir::DType dtype, Bits bits);
bool IsNan(ir::DType dtype, Bits bits);

// a * b + sum, floats with one rounding; all three are of `dtype`, a float or an integer type.
Bits MultiplyAdd(ir::DType dtype, Bits a, Bits b, Bits sum);
// An f32 rounded to nearest even to the numbers that `precision` leaves.
Bits RoundTo(ir::Precision precision, Bits f32);
// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3").
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The result of an element-wise op for operands of `dtype` (of kSelect: its arms). Built-ins of
// limited accuracy are within one unit in the last place. Nothing: no such operation on the type.
std::optional<Bits> Apply(const ir::Op& op, ir::DType dtype, const std::vector<Bits>& operands);

}  // namespace phobos::compiler::interpreter

#endif  // PHOBOS_COMPILER_INTERPRETER_NUMBER_H_
