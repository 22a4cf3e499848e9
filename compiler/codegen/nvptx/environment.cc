// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/environment.h"

#include <algorithm>
#include <variant>

#include "llvm/ADT/bit.h"

namespace phobos::compiler::nvptx {
namespace {

constexpr int kMostPower = 32;  // also of zero
constexpr int kUnknown = -1;

int PowerOfTwoInNumber(int64_t number) {
  return number == 0 ? kMostPower
                     : std::min(llvm::countr_zero(static_cast<uint64_t>(number)), kMostPower);
}

}  // namespace

Environment::Environment(const ir::Function& ir_function, llvm::IRBuilder<>& ir_builder,
                         const Plan& kernel_plan)
    : codegen::Environment(ir_function, ir_builder),
      plan(kernel_plan),
      held_tiles(ir_function.value_count),
      loops_(ir_function.loop_count),
      powers_(ir_function.value_count, kUnknown) {
  FindLoops(function.body);
}

void Environment::FindLoops(const ir::Block& block) {
  for (const ir::Op& op : block) {
    if (op.opcode == ir::Opcode::kFor) loops_[op.index] = &op;
    for (const ir::Block& region : op.regions) FindLoops(region);
  }
}

int Environment::PowerOfTwoIn(const ir::Dim& dim) const {
  return PowerOfTwoInNumber(dim.extent < 0 ? dim.literal : function.extents[dim.extent].multiple);
}

int Environment::PowerOfTwoIn(ir::ValueId value) {
  if (powers_[value] == kUnknown) {
    powers_[value] = std::min(FindPower(*definitions[value]), kMostPower);
  }
  return powers_[value];
}

// Wrapping does no harm: it is modulo a greater power of two, or the rest is zero.
int Environment::FindPower(const ir::Op& op) {
  switch (op.opcode) {
    case ir::Opcode::kConstant: {
      const auto* number = std::get_if<int64_t>(&op.constant);
      return number != nullptr ? PowerOfTwoInNumber(*number) : 0;
    }
    case ir::Opcode::kExtent:
      return PowerOfTwoInNumber(function.extents[op.index].multiple);
    case ir::Opcode::kMul:
      if (ir::IsFloat(op.type.dtype)) return 0;
      return PowerOfTwoIn(op.operands[0]) + PowerOfTwoIn(op.operands[1]);
    case ir::Opcode::kAdd:
    case ir::Opcode::kSub:
      if (ir::IsFloat(op.type.dtype)) return 0;
      return std::min(PowerOfTwoIn(op.operands[0]), PowerOfTwoIn(op.operands[1]));
    case ir::Opcode::kCast: {
      const bool is_integer =
          ir::IsInteger(op.type.dtype) && ir::IsInteger(definitions[op.operands[0]]->type.dtype);
      return is_integer ? PowerOfTwoIn(op.operands[0]) : 0;
    }
    case ir::Opcode::kLoopIndex: {
      const ir::Op& loop = *loops_[op.index];
      return std::min(PowerOfTwoIn(loop.operands[0]), PowerOfTwoIn(loop.operands[2]));
    }
    default:
      return 0;
  }
}

}  // namespace phobos::compiler::nvptx
