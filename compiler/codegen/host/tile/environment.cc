// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/tile/environment.h"

#include <algorithm>

#include "compiler/ir/equality.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::host {
namespace {

const ir::Op* FindStoreBeside(const ir::Block& block, const ir::Op& load) {
  for (const ir::Op& op : block) {
    if (op.opcode == ir::Opcode::kStore && op.index != load.index &&
        std::equal(op.subscripts.begin(), op.subscripts.end(), load.subscripts.begin(),
                   load.subscripts.end(), ir::AreSameSubscripts)) {
      return &op;
    }
    for (const ir::Block& region : op.regions) {
      if (const ir::Op* found = FindStoreBeside(region, load)) return found;
    }
  }
  return nullptr;
}

}  // namespace

Environment::Environment(const ir::Function& ir_function, llvm::IRBuilder<>& ir_builder,
                         int64_t bytes)
    : codegen::Environment(ir_function, ir_builder),
      vector_bytes(bytes),
      is_streamed(ir_function.params.size()),
      held_tiles(ir_function.value_count),
      was_read(ir_function.value_count) {}

const ir::Op* Environment::StoreBeside(const ir::Op& load) const {
  return FindStoreBeside(function.body, load);
}

llvm::Value* Environment::Buffer(llvm::Type* element, unsigned count) const {
  llvm::AllocaInst* buffer = Slot(llvm::ArrayType::get(element, count));
  buffer->setAlignment(llvm::Align(64));
  return buffer;
}

}  // namespace phobos::compiler::host
