// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/powers.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <variant>

#include "compiler/ir/equality.h"

namespace phobos::compiler::nvptx {
namespace {

constexpr int kMostPower = 32;  // also of zero
constexpr int kUnknown = -1;

int PowerOfTwoInNumber(int64_t number) {
  return number == 0 ? kMostPower
                     : std::min(std::countr_zero(static_cast<uint64_t>(number)), kMostPower);
}

}  // namespace

Powers::Powers(const ir::Function& function)
    : function_(function),
      definitions_(ir::DefinitionsOf(function)),
      loops_(function.loop_count),
      powers_(function.value_count, kUnknown) {
  FindLoops(function.body);
}

void Powers::FindLoops(const ir::Block& block) {
  for (const ir::Op& op : block) {
    if (op.opcode == ir::Opcode::kFor) loops_[op.index] = &op;
    for (const ir::Block& region : op.regions) FindLoops(region);
  }
}

int Powers::In(const ir::Dim& dim) const {
  return PowerOfTwoInNumber(dim.extent < 0 ? dim.literal : function_.extents[dim.extent].multiple);
}

int Powers::In(ir::ValueId value) {
  if (powers_[value] == kUnknown) {
    powers_[value] = std::min(Find(*definitions_[value]), kMostPower);
  }
  return powers_[value];
}

// Wrapping does no harm: it is modulo a greater power of two, or the rest is zero.
int Powers::Find(const ir::Op& op) {
  switch (op.opcode) {
    case ir::Opcode::kConstant: {
      const auto* number = std::get_if<int64_t>(&op.constant);
      return number != nullptr ? PowerOfTwoInNumber(*number) : 0;
    }
    case ir::Opcode::kExtent:
      return PowerOfTwoInNumber(function_.extents[op.index].multiple);
    case ir::Opcode::kMul:
      if (ir::IsFloat(op.type.dtype)) return 0;
      return In(op.operands[0]) + In(op.operands[1]);
    case ir::Opcode::kAdd:
    case ir::Opcode::kSub:
      if (ir::IsFloat(op.type.dtype)) return 0;
      return std::min(In(op.operands[0]), In(op.operands[1]));
    case ir::Opcode::kCast: {
      const bool is_integer =
          ir::IsInteger(op.type.dtype) && ir::IsInteger(definitions_[op.operands[0]]->type.dtype);
      return is_integer ? In(op.operands[0]) : 0;
    }
    case ir::Opcode::kLoopIndex: {
      const ir::Op& loop = *loops_[op.index];
      return std::min(In(loop.operands[0]), In(loop.operands[2]));
    }
    default:
      return 0;
  }
}

}  // namespace phobos::compiler::nvptx
