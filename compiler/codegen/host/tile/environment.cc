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
                         const Chip& host_chip)
    : codegen::Environment(ir_function, ir_builder),
      chip(host_chip),
      is_streamed(ir_function.params.size()),
      held_tiles(ir_function.value_count),
      was_read(ir_function.value_count) {}

const ir::Op* Environment::StoreBeside(const ir::Op& load) const {
  return FindStoreBeside(function.body, load);
}

llvm::Value* Environment::IsRowStreamed(const ir::Op& store, llvm::Value* address,
                                        llvm::Value* elements) const {
  const int64_t bytes = ir::ByteSize(store.type.dtype);
  llvm::Value* bits = builder.CreatePtrToInt(address, builder.getInt64Ty());
  llvm::Value* has_line = builder.CreateIsNull(builder.CreateAnd(bits, kLineBytes - 1));
  llvm::Value* has_lines = builder.CreateAnd(
      builder.CreateICmpSGE(elements, Int(chip.streamed_row_bytes / bytes)),
      builder.CreateIsNull(builder.CreateAnd(bits, static_cast<uint64_t>(bytes) - 1)));
  return builder.CreateAnd(is_streamed[store.index], builder.CreateOr(has_line, has_lines));
}

llvm::Value* Environment::Buffer(llvm::Type* element, unsigned count) const {
  llvm::AllocaInst* buffer = Slot(llvm::ArrayType::get(element, count));
  buffer->setAlignment(llvm::Align(64));
  return buffer;
}

}  // namespace phobos::compiler::host
