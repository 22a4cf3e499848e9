// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/kernel/held_memory.h"

#include <algorithm>

namespace phobos::compiler::codegen {
namespace {

void Place(const ir::Function& function, const ir::Block& block, int64_t used,
           const std::function<int64_t(const ir::Op&)>& bytes_of, HeldMemory* memory) {
  for (const ir::Op& op : block) {
    const bool holds = op.opcode == ir::Opcode::kStage || op.opcode == ir::Opcode::kDeclareVar ||
                       op.opcode == ir::Opcode::kDot;
    if (holds && !StoredType(function, op).is_scalar()) {
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

}  // namespace phobos::compiler::codegen
