// SPDX-License-Identifier: Apache-2.0
#include "client/launch/condition.h"

#include <limits>

#include "base/floor_division.h"

namespace phobos::launch {
namespace {

using enum ConditionOp::Code;

double AsDouble(const Number& n) {
  return std::holds_alternative<double>(n) ? std::get<double>(n)
                                           : static_cast<double>(std::get<int64_t>(n));
}

bool IsTrue(const Number& n) {
  return std::holds_alternative<double>(n) ? std::get<double>(n) != 0 : std::get<int64_t>(n) != 0;
}

Number Bool(bool value) { return int64_t{value}; }

// Wrapping arithmetic goes through the unsigned type, where overflow is defined.
int64_t Wrap(uint64_t bits) { return static_cast<int64_t>(bits); }
uint64_t Bits(int64_t value) { return static_cast<uint64_t>(value); }
int64_t Negate(int64_t a) { return Wrap(0 - Bits(a)); }

int64_t FloorDivide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return Negate(a);
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t FloorModulo(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Number OnInts(int op, int64_t a, int64_t b) {
  switch (op) {
    case kAdd:
      return Wrap(Bits(a) + Bits(b));
    case kSub:
      return Wrap(Bits(a) - Bits(b));
    case kMul:
      return Wrap(Bits(a) * Bits(b));
    case kDiv:
      return static_cast<double>(a) / static_cast<double>(b);
    case kFloorDiv:
      return FloorDivide(a, b);
    case kMod:
      return FloorModulo(a, b);
    case kEq:
      return Bool(a == b);
    case kNe:
      return Bool(a != b);
    case kLt:
      return Bool(a < b);
    case kLe:
      return Bool(a <= b);
    case kGt:
      return Bool(a > b);
    case kGe:
      return Bool(a >= b);
    case kMin:
      return a < b ? a : b;
    case kMax:
      return a > b ? a : b;
    default:  // kCdiv
      return Negate(FloorDivide(Negate(a), b));
  }
}

Number OnDoubles(int op, double a, double b) {
  switch (op) {
    case kAdd:
      return a + b;
    case kSub:
      return a - b;
    case kMul:
      return a * b;
    case kDiv:
      return a / b;
    case kFloorDiv:
      return phobos::FloorDivide(a, b);
    case kMod:
      return phobos::FloorModulo(a, b);
    case kEq:
      return Bool(a == b);
    case kNe:
      return Bool(a != b);
    case kLt:
      return Bool(a < b);
    case kLe:
      return Bool(a <= b);
    case kGt:
      return Bool(a > b);
    case kGe:
      return Bool(a >= b);
    case kMin:
      return a < b ? a : b;
    case kMax:
      return a > b ? a : b;
    default:  // kCdiv
      return -phobos::FloorDivide(-a, b);
  }
}

Number Binary(int op, const Number& a, const Number& b) {
  if (op == kAnd) return Bool(IsTrue(a) && IsTrue(b));
  if (op == kOr) return Bool(IsTrue(a) || IsTrue(b));
  if (std::holds_alternative<int64_t>(a) && std::holds_alternative<int64_t>(b)) {
    return OnInts(op, std::get<int64_t>(a), std::get<int64_t>(b));
  }
  return OnDoubles(op, AsDouble(a), AsDouble(b));
}

Number Negated(const Number& a) {
  if (std::holds_alternative<double>(a)) return -std::get<double>(a);
  return Negate(std::get<int64_t>(a));
}

// How many values an op takes off the stack; -1 for a code that is none.
int Operands(int op) {
  switch (op) {
    case kPushInt:
    case kPushFloat:
    case kPushName:
      return 0;
    case kNeg:
    case kNot:
      return 1;
    case kSelect:
      return 3;
    default:
      return op >= kAdd && op <= kCdiv ? 2 : -1;
  }
}

Status Malformed(const std::string& what) {
  return Status(Code::kInvalidArgument, "malformed condition: " + what);
}

}  // namespace

StatusOr<bool> Holds(const std::vector<ConditionOp>& program,
                     const std::function<StatusOr<Number>(std::string_view name)>& lookup) {
  std::vector<Number> stack;
  for (const ConditionOp& op : program) {
    const int operands = Operands(op.code);
    if (operands < 0) return Malformed("code " + std::to_string(op.code) + " is not known here");
    if (stack.size() < static_cast<size_t>(operands)) return Malformed("a value is missing");
    Number result;
    const size_t first = stack.size() - static_cast<size_t>(operands);
    switch (operands) {
      case 0: {
        if (op.code != kPushName) {
          result = op.number;
          break;
        }
        StatusOr<Number> value = lookup(op.name);
        if (!value.ok()) return value.status();
        result = *value;
        break;
      }
      case 1:
        result = op.code == kNeg ? Negated(stack[first]) : Bool(!IsTrue(stack[first]));
        break;
      case 2:
        result = Binary(op.code, stack[first], stack[first + 1]);
        break;
      default:
        result = IsTrue(stack[first]) ? stack[first + 1] : stack[first + 2];
        break;
    }
    stack.resize(first);
    stack.push_back(result);
  }
  if (stack.size() != 1) return Malformed("it leaves " + std::to_string(stack.size()) + " values");
  return IsTrue(stack[0]);
}

}  // namespace phobos::launch
