// SPDX-License-Identifier: Apache-2.0
//
// The value of an expression of constants, computed exactly and not yet of any type: it takes the
// type of what it meets. Integers are wide, floats are double. Pure, any thread.
#ifndef PHOBOS_COMPILER_SEMA_VALUE_LITERAL_H_
#define PHOBOS_COMPILER_SEMA_VALUE_LITERAL_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/syntax/ast.h"

namespace phobos::compiler::sema {

using WideInt = __int128;

// Integers beyond +-2^120 are refused where they arise, so that sums and shifts of two never
// overflow.
inline constexpr WideInt kWideLimit = WideInt{1} << 120;

using Literal = std::variant<bool, WideInt, double, std::string>;

// What is wrong and what to write instead, still without a place in the source.
struct Problem {
  std::string what;
  std::string remedy;
};

inline bool IsBool(const Literal& l) { return std::holds_alternative<bool>(l); }
inline bool IsFloat(const Literal& l) { return std::holds_alternative<double>(l); }
inline bool IsString(const Literal& l) { return std::holds_alternative<std::string>(l); }

// The integer of an int or bool literal.
std::optional<WideInt> AsWide(const Literal& literal);
// The number of an int, bool or float literal as a double. REQUIRES: not a string.
double AsDouble(const Literal& literal);
// Python's truth: not 0, not the empty string.
bool IsTrue(const Literal& literal);

std::string ToString(WideInt value);
std::string ToString(const Literal& literal);  // as it is written: 256, 0.5, True, "tf32"

// Each gives nothing and fills *problem when the language forbids it or a number leaves the limit.
std::optional<Literal> Fold(ast::UnaryOp op, const Literal& operand, Problem* problem);
// REQUIRES: op is neither kAnd nor kOr.
std::optional<Literal> Fold(ast::BinaryOp op, const Literal& left, const Literal& right,
                            Problem* problem);
std::optional<bool> Fold(ast::CompareOp op, const Literal& left, const Literal& right,
                         Problem* problem);
// An element-wise built-in, by its opcode: floats in double; kAbs, kMinimum, kMaximum, kFloor,
// kCeil, kRound keep ints. REQUIRES: the operands are as many as the opcode has, and no strings.
std::optional<Literal> Fold(ir::Opcode opcode, const std::vector<Literal>& operands,
                            Problem* problem);

// The type that a literal has alone: i32 (i64 if needed), f32, bool. Nothing and a problem for an
// int beyond i64, and for a string.
std::optional<ir::DType> TypeAlone(const Literal& literal, Problem* problem);

// A literal meets a type: an int must lie in its range, a float meeting an int type converts as
// ph.cast does, a finite number must stay finite.
std::optional<ir::ConstantValue> Convert(const Literal& literal, ir::DType dtype, Problem* problem);

// As ph.cast: ints wrap, floats saturate; never fails. REQUIRES: not a string.
ir::ConstantValue CastTo(const Literal& literal, ir::DType dtype);

// `value` rounded to nearest even in a float type, ints wrapped to an int type's width.
double RoundTo(ir::DType float_type, double value);
int64_t WrapTo(ir::DType int_type, WideInt value);

WideInt SmallestOf(ir::DType int_type);
WideInt LargestOf(ir::DType int_type);
double LargestFinite(ir::DType float_type);
double Epsilon(ir::DType float_type);  // the distance from 1 to the next larger number

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_VALUE_LITERAL_H_
