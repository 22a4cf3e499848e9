// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/verifier.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/rules/elementwise.h"
#include "compiler/ir/shape.h"

namespace phobos::compiler::ir {
namespace {

bool IsI64Scalar(const Type& type) { return type == Type{DType::kI64, {}}; }
bool IsBoolScalar(const Type& type) { return type == Type{DType::kBool, {}}; }

// Whether the op's value is one number for the whole launch when its operands are.
bool KeepsLaunchUniform(Opcode opcode) {
  switch (opcode) {
    case Opcode::kConstant:
    case Opcode::kGridSize:
    case Opcode::kExtent:
    case Opcode::kScalarParam:
    case Opcode::kSelect:
    case Opcode::kCast:
    case Opcode::kBitcast:
      return true;
    default:
      return ElementwiseRuleOf(opcode).has_value();
  }
}

bool EndsBlock(Opcode opcode) {
  return opcode == Opcode::kBreak || opcode == Opcode::kContinue || opcode == Opcode::kReturn ||
         opcode == Opcode::kYield;
}

class Verifier {
 public:
  explicit Verifier(const Function& function)
      : function_(function), values_(std::max<int32_t>(function.value_count, 0)) {
    vars_in_sight_.resize(function.vars.size());
    loop_seen_.resize(std::max<int32_t>(function.loop_count, 0));
  }

  absl::Status Run() {
    RETURN_IF_ERROR(CheckSignature());
    return CheckBlock(function_.body, /*is_condition=*/false);
  }

 private:
  struct Value {
    const Op* op = nullptr;  // null until defined
    bool in_sight = false;
    bool launch_uniform = false;
  };
  struct Loop {
    int32_t id;  // -1 for a while
    bool in_condition;
  };

  absl::Status CheckSignature() const {
    for (const Param& param : function_.params) {
      if (param.is_tensor && (param.dims.empty() || param.dims.size() > 4)) {
        return Signature(param, "has a rank outside 1..4");
      }
      if (!param.is_tensor && !param.dims.empty()) return Signature(param, "is a scalar with dims");
      for (const Dim& dim : param.dims) {
        if (dim.extent >= static_cast<int32_t>(function_.extents.size())) {
          return Signature(param, "has an extent that the function does not list");
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Signature(const Param& param, std::string_view rule) const {
    return absl::InternalError(absl::StrCat("ill-formed IR of ", function_.name, ": parameter ",
                                            param.name, " ", std::string(rule)));
  }

  absl::Status Fault(const Op& op, std::string_view rule) const {
    return absl::InternalError(absl::StrCat("ill-formed IR of ", function_.name, ", line ", op.line,
                                            ": `", Print(function_, op), "`: ", std::string(rule)));
  }

  absl::Status CheckBlock(const Block& block, bool is_condition) {
    std::vector<ValueId> defined;
    std::vector<VarId> declared;
    ++depth_;
    for (size_t i = 0; i < block.size(); ++i) {
      const Op& op = block[i];
      const bool is_last = i + 1 == block.size();
      if (EndsBlock(op.opcode) && !is_last) return Fault(op, "is not the last op of its block");
      if (op.opcode == Opcode::kYield && !is_condition) {
        return Fault(op, "yields where no value is asked for");
      }
      if (is_condition && is_last && op.opcode != Opcode::kYield) {
        return Fault(op, "ends a condition without a yield");
      }
      RETURN_IF_ERROR(CheckOperands(op));
      RETURN_IF_ERROR(CheckOp(op));
      RETURN_IF_ERROR(Define(op, &defined));
      if (op.opcode == Opcode::kDeclareVar) {
        ++vars_in_sight_[op.index];
        declared.push_back(op.index);
      }
    }
    --depth_;
    for (ValueId value : defined) values_[value].in_sight = false;
    for (VarId var : declared) --vars_in_sight_[var];
    return absl::OkStatus();
  }

  // Operands and positions: in range and in sight. kNoValue may stand only where CheckAccess allows
  // it, and for what a kDot adds to.
  absl::Status CheckOperands(const Op& op) const {
    const bool is_access = op.opcode == Opcode::kLoad || op.opcode == Opcode::kStore;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const ValueId operand = op.operands[i];
      const bool may_lack = is_access || (op.opcode == Opcode::kDot && i == 2);
      if (operand == kNoValue && may_lack) continue;
      if (!InSight(operand)) return Fault(op, "uses a value that is not in sight");
    }
    for (const Subscript& subscript : op.subscripts) {
      if (!InSight(subscript.position)) return Fault(op, "uses a position that is not in sight");
    }
    return absl::OkStatus();
  }

  bool InSight(ValueId value) const {
    return value >= 0 && value < static_cast<ValueId>(values_.size()) && values_[value].in_sight;
  }

  absl::Status Define(const Op& op, std::vector<ValueId>* defined) {
    if (op.result == kNoValue) {
      if (MakesValue(op.opcode) && !IsAtomic(op.opcode)) return Fault(op, "has no result");
      return absl::OkStatus();
    }
    if (!MakesValue(op.opcode)) return Fault(op, "has a result");
    if (op.result < 0 || op.result >= function_.value_count) {
      return Fault(op, "has a result outside value_count");
    }
    Value& value = values_[op.result];
    if (value.op != nullptr) return Fault(op, "defines a value again");
    value.op = &op;
    value.in_sight = true;
    value.launch_uniform = KeepsLaunchUniform(op.opcode);
    for (ValueId operand : op.operands) {
      value.launch_uniform &= operand != kNoValue && values_[operand].launch_uniform;
    }
    defined->push_back(op.result);
    return absl::OkStatus();
  }

  static bool MakesValue(Opcode opcode) {
    return opcode < Opcode::kStore || IsAtomic(opcode) || opcode == Opcode::kStage;
  }

  const Type& TypeOf(ValueId value) const { return values_[value].op->type; }

  // The number of operands and regions that an opcode has; the rest of its rules follow in
  // CheckTypes.
  absl::Status CheckCounts(const Op& op) const {
    size_t operands = 0;
    size_t regions = 0;
    switch (op.opcode) {
      case Opcode::kPrint:
        if (op.texts.empty()) return Fault(op, "has no texts");
        operands = op.texts.size() - 1;
        break;
      case Opcode::kFor:
        operands = 3;
        regions = 1;
        break;
      case Opcode::kWhile:
        regions = 2;
        break;
      case Opcode::kIf:
        operands = 1;
        regions = 2;
        break;
      case Opcode::kSelect:
      case Opcode::kDot:
        operands = 3;
        break;
      case Opcode::kLoad:
      case Opcode::kStore:
      case Opcode::kAtomicCompareSwap:
      case Opcode::kJoin:
      case Opcode::kInterleave:
        operands = 2;
        break;
      case Opcode::kBroadcast:
      case Opcode::kReshape:
      case Opcode::kTranspose:
      case Opcode::kCast:
      case Opcode::kBitcast:
      case Opcode::kDeclareVar:
      case Opcode::kWriteVar:
      case Opcode::kYield:
      case Opcode::kAssume:
      case Opcode::kStage:
        operands = 1;
        break;
      default:
        if (auto rule = ElementwiseRuleOf(op.opcode)) operands = rule->operands;
        if (IsReduction(op.opcode) || op.opcode == Opcode::kCumulativeSum) operands = 1;
        if (IsAtomic(op.opcode)) operands = 1;
    }
    if (op.operands.size() != operands) return Fault(op, "has a wrong number of operands");
    if (op.regions.size() != regions) return Fault(op, "has a wrong number of regions");
    return absl::OkStatus();
  }

  absl::Status CheckOp(const Op& op) {
    RETURN_IF_ERROR(CheckCounts(op));
    if (op.result != kNoValue) {
      for (int64_t side : op.type.shape) {
        if (side < 1) return Fault(op, "has a side below 1");
      }
    }
    if (auto rule = ElementwiseRuleOf(op.opcode)) return CheckElementwise(op, *rule);
    if (IsReduction(op.opcode)) return CheckReduction(op);
    if (IsAtomic(op.opcode)) return CheckAtomic(op);
    switch (op.opcode) {
      case Opcode::kLoad:
      case Opcode::kStore:
        return CheckLoadOrStore(op);
      case Opcode::kFor:
        return CheckFor(op);
      case Opcode::kWhile:
        return CheckWhile(op);
      case Opcode::kIf:
        if (!IsBoolScalar(TypeOf(op.operands[0]))) return Fault(op, "asks for a bool scalar");
        RETURN_IF_ERROR(CheckBlock(op.regions[0], false));
        return CheckBlock(op.regions[1], false);
      case Opcode::kReadVar:
      case Opcode::kDeclareVar:
      case Opcode::kWriteVar:
        return CheckVar(op);
      case Opcode::kYield:
        if (!IsBoolScalar(TypeOf(op.operands[0]))) return Fault(op, "asks for a bool scalar");
        return absl::OkStatus();
      case Opcode::kBreak:
      case Opcode::kContinue:
        if (loops_.empty() || loops_.back().in_condition) return Fault(op, "is outside a loop");
        return absl::OkStatus();
      case Opcode::kReturn:
      case Opcode::kPrint:
        return absl::OkStatus();
      case Opcode::kAssume:
        return CheckAssume(op);
      case Opcode::kSelect:
      case Opcode::kCast:
      case Opcode::kBitcast:
      case Opcode::kBroadcast:
      case Opcode::kStage:
        return CheckConversion(op);
      case Opcode::kReshape:
      case Opcode::kTranspose:
        return CheckArrangement(op);
      case Opcode::kJoin:
      case Opcode::kInterleave:
        return CheckPair(op);
      case Opcode::kCumulativeSum:
        return CheckScan(op);
      case Opcode::kDot:
        return CheckDot(op);
      default:
        return CheckLeaf(op);
    }
  }

  absl::Status CheckLeaf(const Op& op) const {
    switch (op.opcode) {
      case Opcode::kConstant:
        if (!op.type.is_scalar()) return Fault(op, "is a constant with a shape");
        if (IsFloat(op.type.dtype) != std::holds_alternative<double>(op.constant)) {
          return Fault(op, "has a constant of the wrong kind");
        }
        return absl::OkStatus();
      case Opcode::kBlockId:
      case Opcode::kGridSize:
        if (op.axis < 0 || op.axis > 2) return Fault(op, "has an axis outside 0..2");
        break;
      case Opcode::kExtent:
        if (!InRange(op.index, function_.extents.size())) return Fault(op, "names no extent");
        break;
      case Opcode::kLoopIndex:
        if (op.index < 0 || std::none_of(loops_.begin(), loops_.end(),
                                         [&](const Loop& loop) { return loop.id == op.index; })) {
          return Fault(op, "is not inside its loop");
        }
        break;
      case Opcode::kScalarParam:
        if (!InRange(op.index, function_.params.size()) || function_.params[op.index].is_tensor) {
          return Fault(op, "names no scalar parameter");
        }
        if (op.type != Type{function_.params[op.index].dtype, {}}) {
          return Fault(op, "has another type than its parameter");
        }
        return absl::OkStatus();
      case Opcode::kIota:
        if (op.type.dtype != DType::kI64 || op.type.shape.size() != 1) {
          return Fault(op, "is no i64 tile of rank 1");
        }
        return absl::OkStatus();
      default:
        return Fault(op, "has an opcode that no rule knows");
    }
    if (!IsI64Scalar(op.type)) return Fault(op, "is no i64 scalar");
    return absl::OkStatus();
  }

  static bool InRange(int32_t index, size_t size) {
    return index >= 0 && static_cast<size_t>(index) < size;
  }

  absl::Status CheckElementwise(const Op& op, const ElementwiseRule& rule) const {
    const Type& first = TypeOf(op.operands[0]);
    for (ValueId operand : op.operands) {
      if (TypeOf(operand) != first) return Fault(op, "has operands of different types");
    }
    if ((ClassOf(first.dtype) & rule.classes) == 0) {
      return Fault(op, "does not work on this type");
    }
    if (op.opcode == Opcode::kRandomU32 && first.dtype != DType::kU64) {
      return Fault(op, "does not work on this type");
    }
    if (op.type != Type{ElementwiseResult(op.opcode, first.dtype), first.shape}) {
      return Fault(op, "has a wrong result type");
    }
    if (op.opcode == Opcode::kPowInt && op.index < 0) return Fault(op, "has a negative power");
    return absl::OkStatus();
  }

  absl::Status CheckConversion(const Op& op) const {
    const Type& from = TypeOf(op.operands[0]);
    switch (op.opcode) {
      case Opcode::kSelect:
        if (from != Type{DType::kBool, op.type.shape}) {
          return Fault(op, "asks for a bool condition of its shape");
        }
        if (TypeOf(op.operands[1]) != op.type || TypeOf(op.operands[2]) != op.type) {
          return Fault(op, "has arms of another type");
        }
        return absl::OkStatus();
      case Opcode::kCast:
        if (from.shape != op.type.shape) return Fault(op, "changes the shape");
        return absl::OkStatus();
      case Opcode::kBitcast:
        if (from.shape != op.type.shape) return Fault(op, "changes the shape");
        if (BitWidth(from.dtype) != BitWidth(op.type.dtype) ||
            (from.dtype == DType::kBool) != (op.type.dtype == DType::kBool)) {
          return Fault(op, "changes the width");
        }
        return absl::OkStatus();
      case Opcode::kBroadcast:
        if (from.dtype != op.type.dtype ||
            BroadcastShapes(from.shape, op.type.shape) != std::optional<Shape>(op.type.shape)) {
          return Fault(op, "does not broadcast to its type");
        }
        return absl::OkStatus();
      default:  // kStage
        if (from != op.type || from.is_scalar()) return Fault(op, "is not the tile it holds");
        return absl::OkStatus();
    }
  }

  // A tile's elements in another arrangement.
  absl::Status CheckArrangement(const Op& op) const {
    const Type& from = TypeOf(op.operands[0]);
    if (from.is_scalar() || op.type.is_scalar()) return Fault(op, "arranges a scalar");
    if (from.dtype != op.type.dtype) return Fault(op, "changes the type");
    if (op.opcode == Opcode::kReshape) {
      if (from.elements() != op.type.elements()) return Fault(op, "changes the number of elements");
      return absl::OkStatus();
    }
    const size_t rank = from.shape.size();
    if (op.permutation.size() != rank || op.type.shape.size() != rank) {
      return Fault(op, "changes the rank");
    }
    std::vector<bool> is_taken(rank);
    for (size_t side = 0; side < rank; ++side) {
      const int32_t source = op.permutation[side];
      if (!InRange(source, rank) || is_taken[source]) return Fault(op, "does not permute sides");
      is_taken[source] = true;
      if (op.type.shape[side] != from.shape[source]) return Fault(op, "has a wrong shape");
    }
    return absl::OkStatus();
  }

  absl::Status CheckPair(const Op& op) const {
    Type type = TypeOf(op.operands[0]);
    const Type& second = TypeOf(op.operands[1]);
    if (type.is_scalar() || second.is_scalar()) return Fault(op, "arranges a scalar");
    const bool is_same = type == second;
    const int64_t length = std::exchange(type.shape.back(), second.shape.back());
    if (type != second || (op.opcode == Opcode::kInterleave && !is_same)) {
      return Fault(op, "mixes types");
    }
    type.shape.back() += length;
    if (op.type != type) return Fault(op, "has a wrong result type");
    return absl::OkStatus();
  }

  absl::Status CheckReduction(const Op& op) const {
    const Type& from = TypeOf(op.operands[0]);
    if (!InRange(op.axis, from.shape.size())) return Fault(op, "reduces a side that is not there");
    if (op.index < 1) return Fault(op, "has no partials");
    if (!op.is_near && (op.index & (op.index - 1)) != 0) {
      return Fault(op, "has a number of partials that is no power of two");
    }
    const bool is_arithmetic = op.opcode == Opcode::kSumOver || op.opcode == Opcode::kProductOver;
    if (is_arithmetic && from.dtype == DType::kBool) return Fault(op, "does not work on this type");
    Type expected{GivesPlace(op.opcode) ? DType::kI32 : from.dtype, from.shape};
    expected.shape.erase(expected.shape.begin() + op.axis);
    if (op.type != expected) return Fault(op, "has a wrong result type");
    return absl::OkStatus();
  }

  absl::Status CheckScan(const Op& op) const {
    const Type& from = TypeOf(op.operands[0]);
    if (!InRange(op.axis, from.shape.size())) return Fault(op, "scans a side that is not there");
    if (from.dtype == DType::kBool) return Fault(op, "does not work on this type");
    if (op.index < 0) return Fault(op, "has pieces of fewer than no elements");
    if (op.type != from) return Fault(op, "has a wrong result type");
    return absl::OkStatus();
  }

  absl::Status CheckDot(const Op& op) const {
    const Type& a = TypeOf(op.operands[0]);
    const Type& b = TypeOf(op.operands[1]);
    const size_t rank = a.shape.size();
    if (rank < 2 || rank > 4 || b.shape.size() != rank) return Fault(op, "has a wrong rank");
    if (!InRange(op.axis, 2)) return Fault(op, "has an axis outside 0..1");
    const std::optional<DType> sum = DotResult(a.dtype);
    if (!sum.has_value() || b.dtype != a.dtype) return Fault(op, "does not work on these types");
    if (!InRange(op.index, 3) || (op.index != 0 && a.dtype != DType::kF32)) {
      return Fault(op, "has a precision that its type does not have");
    }
    if (!std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin()) ||
        a.shape[rank - 1] != b.shape[rank - 2 + op.axis]) {
      return Fault(op, "has sides that do not fit");
    }
    Type expected{*sum, a.shape};
    expected.shape[rank - 1] = b.shape[rank - 1 - op.axis];
    if (op.type != expected) return Fault(op, "has a wrong result type");
    if (op.operands[2] != kNoValue && TypeOf(op.operands[2]) != expected) {
      return Fault(op, "adds to another type");
    }
    return absl::OkStatus();
  }

  absl::Status CheckAccess(const Op& op) const {
    if (!InRange(op.index, function_.params.size()) || !function_.params[op.index].is_tensor) {
      return Fault(op, "names no tensor");
    }
    const Param& param = function_.params[op.index];
    const bool is_read = op.opcode != Opcode::kStore;
    const bool is_written = op.opcode != Opcode::kLoad;
    if ((is_read && !param.is_read) || (is_written && !param.is_written)) {
      return Fault(op, "touches a parameter that is not marked so");
    }
    if (op.subscripts.size() != param.dims.size())
      return Fault(op, "needs a subscript a dimension");
    for (const Subscript& subscript : op.subscripts) {
      const Type& position = TypeOf(subscript.position);
      const bool wants_scalar = subscript.kind != Subscript::Kind::kGather;
      if (position.dtype != DType::kI64 || position.is_scalar() != wants_scalar) {
        return Fault(op, "has a position of a wrong type");
      }
      if (subscript.length < 1) return Fault(op, "has a length below 1");
    }
    std::optional<Shape> shape =
        SubscriptShape(op.subscripts, [this](ValueId v) { return TypeOf(v).shape; });
    if (op.type.dtype != param.dtype || shape != std::optional<Shape>(op.type.shape)) {
      return Fault(op, "has another type than its subscripts give");
    }
    return absl::OkStatus();
  }

  absl::Status CheckAtomic(const Op& op) const {
    RETURN_IF_ERROR(CheckAccess(op));
    for (ValueId operand : op.operands) {
      if (TypeOf(operand) != op.type) return Fault(op, "has an operand of a wrong type");
    }
    if (!AtomicWorksOn(op.opcode, op.type.dtype)) return Fault(op, "does not work on this type");
    return absl::OkStatus();
  }

  absl::Status CheckLoadOrStore(const Op& op) const {
    RETURN_IF_ERROR(CheckAccess(op));
    const bool is_load = op.opcode == Opcode::kLoad;
    const ValueId first = op.operands[0];
    if (is_load) {
      if (first != kNoValue && TypeOf(first) != op.type &&
          TypeOf(first) != Type{op.type.dtype, {}}) {
        return Fault(op, "has a fill of a wrong type");
      }
    } else if (first == kNoValue || TypeOf(first) != op.type) {
      return Fault(op, "stores a value of a wrong type");
    }
    const ValueId mask = op.operands[1];
    if (mask != kNoValue && TypeOf(mask) != Type{DType::kBool, op.type.shape}) {
      return Fault(op, "has a mask of a wrong type");
    }
    return absl::OkStatus();
  }

  absl::Status CheckVar(const Op& op) const {
    if (!InRange(op.index, function_.vars.size())) return Fault(op, "names no variable");
    const Type& type = function_.vars[op.index].type;
    if (op.opcode != Opcode::kDeclareVar && vars_in_sight_[op.index] == 0) {
      return Fault(op, "uses a variable that is not declared here");
    }
    if ((op.opcode == Opcode::kReadVar ? op.type : TypeOf(op.operands[0])) != type) {
      return Fault(op, "has another type than its variable");
    }
    return absl::OkStatus();
  }

  absl::Status CheckFor(const Op& op) {
    for (ValueId operand : op.operands) {
      if (!IsI64Scalar(TypeOf(operand))) return Fault(op, "has a bound that is no i64 scalar");
    }
    const Op& step = *values_[op.operands[2]].op;
    if (step.opcode != Opcode::kConstant || step.constant == ConstantValue(int64_t{0})) {
      return Fault(op, "has a step that is no constant, or 0");
    }
    if (op.unroll < 1 || op.stages < 1) return Fault(op, "has a hint below 1");
    if (!InRange(op.index, loop_seen_.size())) return Fault(op, "has a loop id outside loop_count");
    if (loop_seen_[op.index]) return Fault(op, "has the loop id of another loop");
    loop_seen_[op.index] = true;
    loops_.push_back({op.index, false});
    RETURN_IF_ERROR(CheckBlock(op.regions[0], false));
    loops_.pop_back();
    return absl::OkStatus();
  }

  absl::Status CheckWhile(const Op& op) {
    if (op.regions[0].empty()) return Fault(op, "has an empty condition");
    loops_.push_back({-1, true});
    RETURN_IF_ERROR(CheckBlock(op.regions[0], true));
    loops_.back().in_condition = false;
    RETURN_IF_ERROR(CheckBlock(op.regions[1], false));
    loops_.pop_back();
    return absl::OkStatus();
  }

  absl::Status CheckAssume(const Op& op) const {
    if (depth_ != 1) return Fault(op, "is outside the entry block");
    if (!IsBoolScalar(TypeOf(op.operands[0]))) return Fault(op, "asks for a bool scalar");
    if (!values_[op.operands[0]].launch_uniform)
      return Fault(op, "depends on more than the launch");
    return absl::OkStatus();
  }

  const Function& function_;
  std::vector<Value> values_;
  std::vector<int> vars_in_sight_;  // declarations in sight, by VarId
  std::vector<bool> loop_seen_;
  std::vector<Loop> loops_;  // the innermost last
  int depth_ = 0;
};

}  // namespace

absl::Status Verify(const Function& function) { return Verifier(function).Run(); }

}  // namespace phobos::compiler::ir
