// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/kernel/held_memory.h"

#include <algorithm>

namespace phobos::compiler::codegen {
namespace {

// Whether `op` is an atomic on one element whose old value is asked for.
bool GivesOneOld(const ir::Op& op) {
  return ir::IsAtomic(op.opcode) && op.result != ir::kNoValue && op.type.is_scalar();
}

void Place(const ir::Function& function, const ir::Block& block, int64_t used,
           const std::function<int64_t(const ir::Op&)>& bytes_of, HeldMemory* memory) {
  for (const ir::Op& op : block) {
    const bool needs_place = op.opcode == ir::Opcode::kStage ||
                             op.opcode == ir::Opcode::kDeclareVar || op.opcode == ir::Opcode::kDot;
    const bool holds = needs_place ? !StoredType(function, op).is_scalar() : GivesOneOld(op);
    if (holds) {
      if (const int64_t bytes = bytes_of(op); bytes > 0) {
        memory->offsets[&op] = used;
        used += bytes;
        memory->bytes = std::max(memory->bytes, used);
      }
    }
    for (const ir::Block& region : op.regions) Place(function, region, used, bytes_of, memory);
  }
}

}  // namespace

HeldMemory PlaceHeldTiles(const ir::Function& function,
                          const std::function<int64_t(const ir::Op&)>& bytes_of) {
  HeldMemory memory;
  Place(function, function.body, 0, bytes_of, &memory);
  return memory;
}

const ir::Type& StoredType(const ir::Function& function, const ir::Op& op) {
  const bool is_variable =
      op.opcode == ir::Opcode::kDeclareVar || op.opcode == ir::Opcode::kWriteVar;
  return is_variable ? function.vars[op.index].type : op.type;
}

const ir::Op& DoneBy(const std::vector<const ir::Op*>& definitions, const ir::Op& op) {
  if (op.opcode != ir::Opcode::kStage) return op;
  const ir::Op& held = *definitions[op.operands[0]];
  return ir::IsAtomic(held.opcode) ? held : op;
}

}  // namespace phobos::compiler::codegen
