// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/interpreter.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/printed_text.h"
#include "base/status_macros.h"
#include "compiler/interpreter/access.h"
#include "compiler/interpreter/operation.h"
#include "compiler/interpreter/tile.h"
#include "compiler/ir/equality.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"

namespace phobos::compiler::interpreter {
namespace {

using ir::Op;
using ir::Opcode;
using ir::ValueId;

// What the ops behind this one do: go on, or leave the blocks around them.
enum class Flow { kOn, kBreak, kContinue, kReturn, kYield };

// The product of the sides; nothing where that is more than `most`, or one is negative.
std::optional<int64_t> ElementsOf(const std::vector<int64_t>& sides, int64_t most) {
  if (std::find(sides.begin(), sides.end(), 0) != sides.end()) return 0;
  __int128 elements = 1;
  for (int64_t side : sides) {
    elements *= side;
    if (side < 0 || elements > most) return std::nullopt;
  }
  return static_cast<int64_t>(elements);
}

// Takes what the values of `block` need from `*left`; false where that is too little.
bool Reserve(const ir::Block& block, int64_t* left) {
  for (const Op& op : block) {
    const std::optional<int64_t> elements = ElementsOf(op.type.shape, *left);
    if (!elements.has_value()) return false;
    *left -= *elements;
    for (const ir::Block& region : op.regions) {
      if (!Reserve(region, left)) return false;
    }
  }
  return true;
}

bool FitsInto(const ir::Function& function, int64_t elements) {
  for (const ir::Variable& variable : function.vars) {
    const std::optional<int64_t> own = ElementsOf(variable.type.shape, elements);
    if (!own.has_value()) return false;
    elements -= *own;
  }
  return Reserve(function.body, &elements);
}

// The elements as they lie in memory.
std::string InMemory(const Tile& tile) {
  const auto size = static_cast<size_t>(ir::ByteSize(tile.type.dtype));
  std::string bytes(tile.elements.size() * size, '\0');
  for (size_t i = 0; i < tile.elements.size(); ++i) {
    std::memcpy(bytes.data() + i * size, &tile.elements[i], size);
  }
  return bytes;
}

class Interpreter {
 public:
  // All but the limit must outlive it (`printed` may be null), and pass what Interpret checks.
  Interpreter(const ir::Function& function, const std::vector<int64_t>& extents, Launch* launch,
              int64_t steps, std::string* printed)
      : function_(function),
        definitions_(ir::DefinitionsOf(function)),
        extents_(extents),
        launch_(launch),
        printed_(printed),
        steps_left_(steps),
        values_(function.value_count),
        vars_(function.vars.size()),
        loop_indices_(function.loop_count) {}

  absl::Status RunBlock(const std::array<int64_t, 3>& block) {
    block_ = block;
    RETURN_IF_ERROR(Spend(1));
    return Run(function_.body).status();
  }

 private:
  absl::Status Spend(int64_t steps) {
    steps_left_ -= steps;
    if (steps_left_ >= 0) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("interpreting ", function_.name,
                     " takes more steps than its limit; is a loop endless, or the grid large?"));
  }

  // In steps: what is computed and what is read.
  int64_t CostOf(const Op& op) const {
    int64_t cost = 1 + op.type.elements();
    for (ValueId operand : op.operands) {
      if (operand != ir::kNoValue) cost += static_cast<int64_t>(ValueOf(operand).elements.size());
    }
    if (op.opcode == Opcode::kDot) {
      cost += op.type.elements() * ValueOf(op.operands[0]).type.shape.back();
    }
    return cost;
  }

  absl::StatusOr<Flow> Run(const ir::Block& block) {
    for (const Op& op : block) {
      ASSIGN_OR_RETURN(const Flow flow, Step(op));
      if (flow != Flow::kOn) return flow;
    }
    return Flow::kOn;
  }

  absl::StatusOr<Flow> Step(const Op& op) {
    RETURN_IF_ERROR(Spend(CostOf(op)));
    if (ir::IsAtomic(op.opcode)) {
      Tile before = Atomic(op);
      if (op.result != ir::kNoValue) values_[op.result] = std::move(before);
      return Flow::kOn;
    }
    switch (op.opcode) {
      case Opcode::kStore:
        Store(op);
        return Flow::kOn;
      case Opcode::kDeclareVar:
      case Opcode::kWriteVar:
        vars_[op.index] = ValueOf(op.operands[0]);
        return Flow::kOn;
      case Opcode::kFor:
        return For(op);
      case Opcode::kWhile:
        return While(op);
      case Opcode::kIf:
        return Run(op.regions[IsTrue(op.operands[0]) ? 0 : 1]);
      case Opcode::kYield:
        yielded_ = IsTrue(op.operands[0]);
        return Flow::kYield;
      case Opcode::kBreak:
        return Flow::kBreak;
      case Opcode::kContinue:
        return Flow::kContinue;
      case Opcode::kReturn:
        return Flow::kReturn;
      case Opcode::kPrint:
        if (printed_ != nullptr) Print(op);
        return Flow::kOn;
      case Opcode::kAssume:
        if (IsTrue(op.operands[0])) return Flow::kOn;
        return absl::FailedPreconditionError(absl::StrCat("the launch breaks the assumption of ",
                                                          function_.name, " at line ", op.line));
      default: {
        ASSIGN_OR_RETURN(values_[op.result], Value(op));
        return Flow::kOn;
      }
    }
  }

  absl::StatusOr<Flow> For(const Op& op) {
    // Wider than i64: the index that ends the loop may lie outside it.
    const __int128 hi = ScalarOf(op.operands[1]);
    const __int128 step = ScalarOf(op.operands[2]);
    for (__int128 i = ScalarOf(op.operands[0]); step > 0 ? i < hi : i > hi; i += step) {
      RETURN_IF_ERROR(Spend(1));
      loop_indices_[op.index] = static_cast<int64_t>(i);
      ASSIGN_OR_RETURN(const Flow flow, Run(op.regions[0]));
      if (flow == Flow::kBreak) break;
      if (flow == Flow::kReturn) return flow;
    }
    return Flow::kOn;
  }

  absl::StatusOr<Flow> While(const Op& op) {
    for (;;) {
      ASSIGN_OR_RETURN(const Flow asked, Run(op.regions[0]));
      if (asked == Flow::kReturn) return asked;
      if (!yielded_) return Flow::kOn;
      ASSIGN_OR_RETURN(const Flow flow, Run(op.regions[1]));
      if (flow == Flow::kBreak) return Flow::kOn;
      if (flow == Flow::kReturn) return flow;
    }
  }

  // The value of an op that has one: what it reads of the launch, of memory and of variables is
  // read here, all else is Evaluate's.
  absl::StatusOr<Tile> Value(const Op& op) {
    const auto scalar = [&op](Bits bits) { return Tile{op.type, {bits}}; };
    switch (op.opcode) {
      case Opcode::kBlockId:
        return scalar(block_[op.axis]);
      case Opcode::kGridSize:
        return scalar(launch_->grid[op.axis]);
      case Opcode::kExtent:
        return scalar(extents_[op.index]);
      case Opcode::kScalarParam:
        return scalar(launch_->arguments[op.index].elements[0]);
      case Opcode::kLoopIndex:
        return scalar(loop_indices_[op.index]);
      case Opcode::kReadVar:
        return vars_[op.index];
      case Opcode::kLoad:
        return Load(op);
      default:
        break;
    }
    std::vector<const Tile*> operands;
    for (ValueId operand : op.operands) operands.push_back(OptionalValueOf(operand));
    return Evaluate(op, operands);
  }

  Tile Load(const Op& op) {
    const Argument& tensor = launch_->arguments[op.index];
    const Tile* fill = OptionalValueOf(op.operands[0]);
    Tile tile{op.type, std::vector<Bits>(op.type.elements())};
    ForEachElement(op.subscripts, PositionsOf(op), tensor.sides, OptionalValueOf(op.operands[1]),
                   op.type.shape,
                   [&](const Index& index, size_t offset, std::optional<size_t> element) {
                     if (element.has_value()) {
                       tile.elements[offset] = tensor.elements[*element];
                     } else if (fill != nullptr) {
                       tile.elements[offset] = BroadcastElement(*fill, index);
                     }
                   });
    return tile;
  }

  // Where an element is written twice, the last one in row-major order stays.
  void Store(const Op& op) {
    Argument& tensor = launch_->arguments[op.index];
    const Tile& value = ValueOf(op.operands[0]);
    ForEachElement(op.subscripts, PositionsOf(op), tensor.sides, OptionalValueOf(op.operands[1]),
                   op.type.shape, [&](const Index&, size_t offset, std::optional<size_t> element) {
                     if (element.has_value()) tensor.elements[*element] = value.elements[offset];
                   });
  }

  // One element after the other, in row-major order.
  Tile Atomic(const Op& op) {
    Argument& tensor = launch_->arguments[op.index];
    std::vector<const Tile*> operands;
    for (ValueId operand : op.operands) operands.push_back(&ValueOf(operand));
    Tile before{op.type, std::vector<Bits>(op.type.elements())};
    ForEachElement(op.subscripts, PositionsOf(op), tensor.sides, /*mask=*/nullptr, op.type.shape,
                   [&](const Index&, size_t offset, std::optional<size_t> element) {
                     if (!element.has_value()) return;
                     Bits& bits = tensor.elements[*element];
                     before.elements[offset] = bits;
                     std::vector<Bits> own;
                     for (const Tile* operand : operands) own.push_back(operand->elements[offset]);
                     bits = AtomicStep(op.opcode, op.type.dtype, bits, own);
                   });
    return before;
  }

  void Print(const Op& op) {
    std::vector<const void*> values;
    const int axes = ir::PrintedAxes(function_);
    for (int axis = 0; axis < axes; ++axis) values.push_back(&block_[axis]);
    std::vector<std::string> bytes;
    for (ValueId operand : op.operands) bytes.push_back(InMemory(ValueOf(operand)));
    for (const std::string& operand : bytes) values.push_back(operand.data());
    *printed_ += PrintedText(ir::PrintFormat(function_, definitions_, op), values.data());
  }

  std::vector<const Tile*> PositionsOf(const Op& op) const {
    std::vector<const Tile*> positions;
    for (const ir::Subscript& s : op.subscripts) positions.push_back(&ValueOf(s.position));
    return positions;
  }

  const Tile& ValueOf(ValueId value) const { return values_[value]; }
  const Tile* OptionalValueOf(ValueId value) const {
    return value == ir::kNoValue ? nullptr : &ValueOf(value);
  }
  Bits ScalarOf(ValueId value) const { return ValueOf(value).elements[0]; }
  bool IsTrue(ValueId value) const { return ScalarOf(value) != 0; }

  const ir::Function& function_;
  const std::vector<const Op*> definitions_;
  const std::vector<int64_t>& extents_;
  Launch* const launch_;
  std::string* const printed_;
  int64_t steps_left_;
  std::vector<Tile> values_;  // by ValueId
  std::vector<Tile> vars_;    // by VarId
  std::vector<int64_t> loop_indices_;
  std::array<int64_t, 3> block_ = {};
  bool yielded_ = false;  // by the last kYield
};

absl::Status Misfit(const ir::Param& param, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("the argument for ", param.name, " ", what));
}

absl::Status CheckArgument(const ir::Param& param, const Argument& argument) {
  if (argument.sides.size() != param.dims.size()) {
    return Misfit(
        param, absl::StrCat("has ", argument.sides.size(), " dimensions, not ", param.dims.size()));
  }
  for (size_t d = 0; d < param.dims.size(); ++d) {
    if (argument.sides[d] < 0) return Misfit(param, "has a negative side");
    if (param.dims[d].extent < 0 && argument.sides[d] != param.dims[d].literal) {
      return Misfit(param, absl::StrCat("has a side of ", argument.sides[d], ", not ",
                                        param.dims[d].literal));
    }
  }
  const auto count = static_cast<int64_t>(argument.elements.size());
  if (ElementsOf(argument.sides, count) != std::optional<int64_t>(count)) {
    return Misfit(param, "has another number of elements than its sides say");
  }
  return absl::OkStatus();
}

absl::Status CheckGrid(const ir::Function& function, const Launch& launch) {
  for (int axis = 0; axis < 3; ++axis) {
    const std::string name(1, "xyz"[axis]);
    if (launch.grid[axis] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("the grid has a negative side ", name));
    }
    if (launch.grid[axis] > 1 && ((function.grid_dims_used >> axis) & 1) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("the grid has ", launch.grid[axis],
                                                     " blocks in ", name, ", which ", function.name,
                                                     " does not use"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ExtentsOf(const ir::Function& function, const Launch& launch) {
  if (launch.arguments.size() != function.params.size()) {
    return absl::InvalidArgumentError(absl::StrCat(function.name, " takes ", function.params.size(),
                                                   " arguments, not ", launch.arguments.size()));
  }
  std::vector<std::optional<int64_t>> bound(function.extents.size());
  for (size_t p = 0; p < function.params.size(); ++p) {
    const ir::Param& param = function.params[p];
    RETURN_IF_ERROR(CheckArgument(param, launch.arguments[p]));
    for (size_t d = 0; d < param.dims.size(); ++d) {
      if (param.dims[d].extent < 0) continue;
      const int64_t side = launch.arguments[p].sides[d];
      std::optional<int64_t>& extent = bound[param.dims[d].extent];
      if (extent.value_or(side) != side) {
        return Misfit(param, absl::StrCat("has ", function.extents[param.dims[d].extent].name,
                                          " = ", side, ", but it is ", *extent, " before"));
      }
      extent = side;
    }
  }
  std::vector<int64_t> extents;
  for (const std::optional<int64_t>& extent : bound) extents.push_back(extent.value_or(0));
  return extents;
}

absl::StatusOr<std::vector<Argument>> Interpret(const ir::Function& function, Launch launch,
                                                const Limits& limits, std::string* printed) {
  RETURN_IF_ERROR(ir::Verify(function));
  ASSIGN_OR_RETURN(const std::vector<int64_t> extents, ExtentsOf(function, launch));
  RETURN_IF_ERROR(CheckGrid(function, launch));
  if (!FitsInto(function, limits.elements)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the tiles of ", function.name, " have more than ", limits.elements, " elements"));
  }
  Interpreter interpreter(function, extents, &launch, limits.steps, printed);
  for (int64_t z = 0; z < launch.grid[2]; ++z) {
    for (int64_t y = 0; y < launch.grid[1]; ++y) {
      for (int64_t x = 0; x < launch.grid[0]; ++x) {
        RETURN_IF_ERROR(interpreter.RunBlock({x, y, z}));
      }
    }
  }
  return std::move(launch.arguments);
}

}  // namespace phobos::compiler::interpreter
