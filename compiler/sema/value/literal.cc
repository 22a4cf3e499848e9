// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/value/literal.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/floor_division.h"

namespace phobos::compiler::sema {
namespace {

using ast::BinaryOp;
using ast::CompareOp;
using ir::Opcode;

std::optional<Literal> TooLarge(Problem* problem) {
  *problem = {"this constant is too large", "constants are computed exactly, within +-2^120"};
  return std::nullopt;
}

std::optional<Literal> Wide(WideInt value, Problem* problem) {
  if (value > kWideLimit || value < -kWideLimit) return TooLarge(problem);
  return Literal(value);
}

WideInt Magnitude(WideInt value) { return value < 0 ? -value : value; }

std::optional<Literal> Multiply(WideInt a, WideInt b, Problem* problem) {
  if (a != 0 && Magnitude(b) > kWideLimit / Magnitude(a)) return TooLarge(problem);
  return Literal(a * b);
}

std::optional<Literal> Power(WideInt base, WideInt exponent, Problem* problem) {
  Literal result = WideInt{1};
  // 0, 1 and -1 to any power stay small; anything else leaves the limit within 120 steps.
  if (Magnitude(base) <= 1) exponent = exponent == 0 ? 0 : 2 - exponent % 2;
  for (WideInt i = 0; i < exponent; ++i) {
    std::optional<Literal> next = Multiply(std::get<WideInt>(result), base, problem);
    if (!next.has_value()) return std::nullopt;
    result = *std::move(next);
  }
  return result;
}

std::optional<Literal> Shift(BinaryOp op, WideInt value, WideInt by, Problem* problem) {
  if (by < 0) {
    *problem = {"a shift by a negative number", "shift the other way by a positive one"};
    return std::nullopt;
  }
  if (op == BinaryOp::kShiftRight)
    return Literal(value >> static_cast<int>(std::min(by, WideInt{126})));
  if (value == 0) return Literal(value);
  if (by > 120) return TooLarge(problem);
  return Multiply(value, WideInt{1} << static_cast<int>(by), problem);
}

std::optional<Literal> FoldInts(BinaryOp op, WideInt a, WideInt b, Problem* problem) {
  switch (op) {
    case BinaryOp::kAdd:
      return Wide(a + b, problem);
    case BinaryOp::kSub:
      return Wide(a - b, problem);
    case BinaryOp::kMul:
      return Multiply(a, b, problem);
    case BinaryOp::kFloorDiv:
      return Literal(FloorDivide(a, b));
    case BinaryOp::kMod:
      return Literal(FloorModulo(a, b));
    case BinaryOp::kPow:
      return Power(a, b, problem);
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
      return Shift(op, a, b, problem);
    case BinaryOp::kBitAnd:
      return Literal(a & b);
    case BinaryOp::kBitOr:
      return Literal(a | b);
    case BinaryOp::kBitXor:
      return Literal(a ^ b);
    default:
      *problem = {"/ divides floats, and both sides are integers",
                  "write // for integer division, or make one side a float"};
      return std::nullopt;
  }
}

std::optional<Literal> FoldFloats(BinaryOp op, double a, double b, Problem* problem) {
  switch (op) {
    case BinaryOp::kAdd:
      return Literal(a + b);
    case BinaryOp::kSub:
      return Literal(a - b);
    case BinaryOp::kMul:
      return Literal(a * b);
    case BinaryOp::kDiv:
      return Literal(a / b);
    case BinaryOp::kFloorDiv:
      return Literal(phobos::FloorDivide(a, b));
    case BinaryOp::kMod:
      return Literal(phobos::FloorModulo(a, b));
    case BinaryOp::kPow:
      return Literal(std::pow(a, b));
    default:
      *problem = {"this operator works on integers and bools, not on floats",
                  "ph.cast the operands to an integer type first"};
      return std::nullopt;
  }
}

double FoldFloat(Opcode opcode, const std::vector<double>& v) {
  switch (opcode) {
    case Opcode::kExp:
      return std::exp(v[0]);
    case Opcode::kExp2:
      return std::exp2(v[0]);
    case Opcode::kExpm1:
      return std::expm1(v[0]);
    case Opcode::kLog:
      return std::log(v[0]);
    case Opcode::kLog2:
      return std::log2(v[0]);
    case Opcode::kLog1p:
      return std::log1p(v[0]);
    case Opcode::kPow:
      return std::pow(v[0], v[1]);
    case Opcode::kSqrt:
      return std::sqrt(v[0]);
    case Opcode::kRsqrt:
      return 1 / std::sqrt(v[0]);
    case Opcode::kSin:
      return std::sin(v[0]);
    case Opcode::kCos:
      return std::cos(v[0]);
    case Opcode::kTanh:
      return std::tanh(v[0]);
    case Opcode::kErf:
      return std::erf(v[0]);
    case Opcode::kSigmoid:
      return 1 / (1 + std::exp(-v[0]));
    case Opcode::kFma:
      return std::fma(v[0], v[1], v[2]);
    case Opcode::kFloor:
      return std::floor(v[0]);
    case Opcode::kCeil:
      return std::ceil(v[0]);
    case Opcode::kRound:
      return std::nearbyint(v[0]);
    case Opcode::kAbs:
      return std::abs(v[0]);
    case Opcode::kMinimum:
      return std::isnan(v[0]) || std::isnan(v[1]) ? NAN : std::min(v[0], v[1]);
    default:  // kMaximum
      return std::isnan(v[0]) || std::isnan(v[1]) ? NAN : std::max(v[0], v[1]);
  }
}

bool KeepsInts(Opcode opcode) {
  return opcode == Opcode::kAbs || opcode == Opcode::kMinimum || opcode == Opcode::kMaximum ||
         opcode == Opcode::kFloor || opcode == Opcode::kCeil || opcode == Opcode::kRound;
}

template <typename T>
bool Holds(CompareOp op, const T& a, const T& b) {
  switch (op) {
    case CompareOp::kEq:
      return a == b;
    case CompareOp::kNe:
      return a != b;
    case CompareOp::kLt:
      return a < b;
    case CompareOp::kLe:
      return a <= b;
    case CompareOp::kGt:
      return a > b;
    case CompareOp::kGe:
      return a >= b;
  }
  return false;
}

std::optional<Literal> NoArithmetic(Problem* problem) {
  *problem = {"a string in arithmetic", "strings serve only as options and in == and !="};
  return std::nullopt;
}

}  // namespace

std::optional<WideInt> AsWide(const Literal& literal) {
  if (const bool* b = std::get_if<bool>(&literal)) return WideInt{*b};
  if (const WideInt* i = std::get_if<WideInt>(&literal)) return *i;
  return std::nullopt;
}

double AsDouble(const Literal& literal) {
  if (const double* d = std::get_if<double>(&literal)) return *d;
  return static_cast<double>(*AsWide(literal));
}

bool IsTrue(const Literal& literal) {
  if (const std::string* s = std::get_if<std::string>(&literal)) return !s->empty();
  if (const double* d = std::get_if<double>(&literal)) return *d != 0;
  return *AsWide(literal) != 0;
}

std::string ToString(WideInt value) {
  std::string digits;
  for (WideInt rest = Magnitude(value); rest != 0; rest /= 10) {
    digits.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
  }
  if (digits.empty()) digits = "0";
  if (value < 0) digits.push_back('-');
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string ToString(const Literal& literal) {
  if (const bool* b = std::get_if<bool>(&literal)) return *b ? "True" : "False";
  if (const WideInt* i = std::get_if<WideInt>(&literal)) return ToString(*i);
  if (const std::string* s = std::get_if<std::string>(&literal)) return "\"" + *s + "\"";
  const double value = std::get<double>(literal);
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string result(text, end);
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

std::optional<Literal> Fold(ast::UnaryOp op, const Literal& operand, Problem* problem) {
  if (op == ast::UnaryOp::kNot) return Literal(!IsTrue(operand));
  if (IsString(operand)) return NoArithmetic(problem);
  if (IsFloat(operand)) {
    const double value = std::get<double>(operand);
    if (op == ast::UnaryOp::kInvert) return FoldFloats(BinaryOp::kBitXor, value, value, problem);
    return Literal(op == ast::UnaryOp::kNegate ? -value : value);
  }
  if (op == ast::UnaryOp::kInvert) {
    if (const bool* b = std::get_if<bool>(&operand)) return Literal(!*b);
    return Literal(~*AsWide(operand));
  }
  return Literal(op == ast::UnaryOp::kNegate ? -*AsWide(operand) : *AsWide(operand));
}

std::optional<Literal> Fold(BinaryOp op, const Literal& left, const Literal& right,
                            Problem* problem) {
  if (IsString(left) || IsString(right)) return NoArithmetic(problem);
  if (op == BinaryOp::kPow && (IsFloat(right) || *AsWide(right) < 0)) {
    *problem = {"** takes a constant exponent that is an integer >= 0",
                "write ph.pow(x, y), ph.sqrt(x) or 1.0 / x"};
    return std::nullopt;
  }
  if (IsFloat(left) || IsFloat(right)) {
    return FoldFloats(op, AsDouble(left), AsDouble(right), problem);
  }
  std::optional<Literal> result = FoldInts(op, *AsWide(left), *AsWide(right), problem);
  const bool is_bitwise =
      op == BinaryOp::kBitAnd || op == BinaryOp::kBitOr || op == BinaryOp::kBitXor;
  if (result.has_value() && is_bitwise && IsBool(left) && IsBool(right)) {
    return Literal(IsTrue(*result));
  }
  return result;
}

std::optional<bool> Fold(CompareOp op, const Literal& left, const Literal& right,
                         Problem* problem) {
  if (IsString(left) != IsString(right)) {
    if (op == CompareOp::kEq) return false;
    if (op == CompareOp::kNe) return true;
    *problem = {"a string compared with a number", "compare values of one kind"};
    return std::nullopt;
  }
  if (IsString(left)) return Holds(op, std::get<std::string>(left), std::get<std::string>(right));
  if (IsFloat(left) || IsFloat(right)) return Holds(op, AsDouble(left), AsDouble(right));
  return Holds(op, *AsWide(left), *AsWide(right));
}

std::optional<Literal> Fold(Opcode opcode, const std::vector<Literal>& operands, Problem* problem) {
  bool all_ints = true;
  std::vector<double> doubles;
  for (const Literal& operand : operands) {
    if (IsString(operand)) return NoArithmetic(problem);
    all_ints &= !IsFloat(operand);
    doubles.push_back(AsDouble(operand));
  }
  if (opcode == Opcode::kIsNan) return Literal(std::isnan(doubles[0]));
  if (opcode == Opcode::kIsInf) return Literal(std::isinf(doubles[0]));
  if (!all_ints || !KeepsInts(opcode)) return Literal(FoldFloat(opcode, doubles));
  const WideInt first = *AsWide(operands[0]);
  if (opcode == Opcode::kAbs) return Literal(Magnitude(first));
  if (opcode == Opcode::kMinimum) return Literal(std::min(first, *AsWide(operands[1])));
  if (opcode == Opcode::kMaximum) return Literal(std::max(first, *AsWide(operands[1])));
  return Literal(first);
}

}  // namespace phobos::compiler::sema
