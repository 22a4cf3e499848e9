// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/codegen/reference.h"

#include <functional>
#include <utility>

namespace phobos::compiler::testing {
namespace {

using ir::Op;
using ir::Opcode;
using ir::Subscript;
using ir::ValueId;

using Tile = std::vector<Bits>;
using Index = std::vector<int64_t>;

enum class Flow { kOn, kBreak, kContinue, kReturn, kYield };

// The element of a tile of `shape` that NumPy's broadcasting takes for `index` of a larger shape.
size_t BroadcastOffset(const std::vector<int64_t>& shape, const Index& index) {
  size_t offset = 0;
  const size_t skipped = index.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    offset = offset * shape[d] + (shape[d] == 1 ? 0 : index[skipped + d]);
  }
  return offset;
}

void ForEachIndex(const std::vector<int64_t>& shape,
                  const std::function<void(const Index&, size_t)>& body) {
  const ir::Type type{ir::DType::kI64, shape};
  Index index(shape.size());
  for (size_t i = 0; i < static_cast<size_t>(type.elements()); ++i) {
    size_t rest = i;
    for (size_t d = shape.size(); d-- > 0;) {
      index[d] = static_cast<int64_t>(rest % shape[d]);
      rest /= shape[d];
    }
    body(index, i);
  }
}

class Interpreter {
 public:
  Interpreter(const ir::Function& function, Launch* launch)
      : function_(function),
        launch_(launch),
        extents_(ExtentsOf(function, *launch)),
        values_(function.value_count),
        types_(function.value_count),
        vars_(function.vars.size()),
        loop_indices_(function.loop_count) {}

  void RunBlock(const std::array<int64_t, 3>& block) {
    block_ = block;
    Run(function_.body);
  }

 private:
  Flow Run(const ir::Block& block) {
    for (const Op& op : block) {
      const Flow flow = Step(op);
      if (flow != Flow::kOn) return flow;
    }
    return Flow::kOn;
  }

  Flow Step(const Op& op) {
    switch (op.opcode) {
      case Opcode::kStore:
        Store(op);
        return Flow::kOn;
      case Opcode::kDeclareVar:
      case Opcode::kWriteVar:
        vars_[op.index] = values_[op.operands[0]];
        return Flow::kOn;
      case Opcode::kFor:
        return For(op);
      case Opcode::kWhile:
        return While(op);
      case Opcode::kIf:
        return Run(op.regions[values_[op.operands[0]][0] ? 0 : 1]);
      case Opcode::kYield:
        yielded_ = values_[op.operands[0]][0];
        return Flow::kYield;
      case Opcode::kBreak:
        return Flow::kBreak;
      case Opcode::kContinue:
        return Flow::kContinue;
      case Opcode::kReturn:
        return Flow::kReturn;
      case Opcode::kAssume:
        return Flow::kOn;
      default:
        types_[op.result] = op.type;
        values_[op.result] = Value(op);
        return Flow::kOn;
    }
  }

  Flow For(const Op& op) {
    const __int128 hi = values_[op.operands[1]][0];
    const __int128 step = values_[op.operands[2]][0];
    for (__int128 i = values_[op.operands[0]][0]; step > 0 ? i < hi : i > hi; i += step) {
      loop_indices_[op.index] = static_cast<int64_t>(i);
      const Flow flow = Run(op.regions[0]);
      if (flow == Flow::kBreak) break;
      if (flow == Flow::kReturn) return flow;
    }
    return Flow::kOn;
  }

  Flow While(const Op& op) {
    for (;;) {
      Run(op.regions[0]);
      if (!yielded_) return Flow::kOn;
      const Flow flow = Run(op.regions[1]);
      if (flow == Flow::kBreak) return Flow::kOn;
      if (flow == Flow::kReturn) return flow;
    }
  }

  Tile Value(const Op& op) {
    switch (op.opcode) {
      case Opcode::kConstant:
        return {std::holds_alternative<double>(op.constant)
                    ? FromReal(op.type.dtype, std::get<double>(op.constant))
                    : FromInteger(op.type.dtype, std::get<int64_t>(op.constant))};
      case Opcode::kBlockId:
        return {block_[op.axis]};
      case Opcode::kGridSize:
        return {launch_->grid[op.axis]};
      case Opcode::kExtent:
        return {extents_[op.index]};
      case Opcode::kScalarParam:
        return launch_->arguments[op.index].elements;
      case Opcode::kLoopIndex:
        return {loop_indices_[op.index]};
      case Opcode::kReadVar:
        return vars_[op.index];
      case Opcode::kStage:
        return values_[op.operands[0]];
      default:
        break;
    }
    Tile result(op.type.elements());
    ForEachIndex(op.type.shape,
                 [&](const Index& index, size_t i) { result[i] = ElementOf(op, index, i); });
    return result;
  }

  Bits ElementOf(const Op& op, const Index& index, size_t i) {
    switch (op.opcode) {
      case Opcode::kIota:
        return static_cast<Bits>(i);
      case Opcode::kBroadcast:
        return Broadcast(op.operands[0], index);
      case Opcode::kLoad: {
        const Bits* element = Element(op, index);
        if (element != nullptr) return *element;
        return op.operands[0] == ir::kNoValue ? 0 : Broadcast(op.operands[0], index);
      }
      default: {
        std::vector<Bits> operands;
        for (ValueId operand : op.operands) operands.push_back(values_[operand][i]);
        const ValueId typed = op.operands[op.opcode == Opcode::kSelect ? 1 : 0];
        return Apply(op, types_[typed].dtype, operands);
      }
    }
  }

  Bits Broadcast(ValueId value, const Index& index) const {
    return values_[value][BroadcastOffset(types_[value].shape, index)];
  }

  void Store(const Op& op) {
    const ValueId value = op.operands[0];
    ForEachIndex(op.type.shape, [&](const Index& index, size_t i) {
      Bits* element = Element(op, index);
      if (element != nullptr) *element = values_[value][i];
    });
  }

  // The tensor's element of a load or store at `index` of its tile; null where it is outside or
  // the mask is false.
  Bits* Element(const Op& op, const Index& index) {
    if (op.operands[1] != ir::kNoValue && !Broadcast(op.operands[1], index)) return nullptr;
    Argument& tensor = launch_->arguments[op.index];
    size_t gather_rank = index.size();
    for (const Subscript& s : op.subscripts) gather_rank -= s.kind == Subscript::Kind::kSlice;
    size_t side = 0;
    size_t gather_side = 0;
    bool has_gather = false;
    size_t offset = 0;
    for (size_t d = 0; d < op.subscripts.size(); ++d) {
      const Subscript& s = op.subscripts[d];
      __int128 position = 0;
      if (s.kind == Subscript::Kind::kGather) {
        if (!has_gather) {
          gather_side = side;
          side += gather_rank;
          has_gather = true;
        }
        const Index part(index.begin() + gather_side, index.begin() + gather_side + gather_rank);
        position = Broadcast(s.position, part);
      } else {
        position = values_[s.position][0];
        if (s.kind == Subscript::Kind::kSlice) position += index[side++];
      }
      if (position < 0 || position >= tensor.sides[d]) return nullptr;
      offset = offset * tensor.sides[d] + static_cast<size_t>(position);
    }
    return &tensor.elements[offset];
  }

  const ir::Function& function_;
  Launch* const launch_;
  const std::vector<int64_t> extents_;
  std::vector<Tile> values_;
  std::vector<ir::Type> types_;
  std::vector<Tile> vars_;
  std::vector<int64_t> loop_indices_;
  std::array<int64_t, 3> block_ = {};
  bool yielded_ = false;
};

}  // namespace

std::vector<int64_t> ExtentsOf(const ir::Function& function, const Launch& launch) {
  std::vector<int64_t> extents(function.extents.size());
  for (size_t p = 0; p < function.params.size(); ++p) {
    for (size_t d = 0; d < function.params[p].dims.size(); ++d) {
      const int32_t extent = function.params[p].dims[d].extent;
      if (extent >= 0) extents[extent] = launch.arguments[p].sides[d];
    }
  }
  return extents;
}

std::vector<Argument> Interpret(const ir::Function& function, Launch launch) {
  Interpreter interpreter(function, &launch);
  for (int64_t z = 0; z < launch.grid[2]; ++z) {
    for (int64_t y = 0; y < launch.grid[1]; ++y) {
      for (int64_t x = 0; x < launch.grid[0]; ++x) interpreter.RunBlock({x, y, z});
    }
  }
  return launch.arguments;
}

}  // namespace phobos::compiler::testing
