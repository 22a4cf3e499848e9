// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/tile/environment.h"

#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::host {

Environment::Environment(const ir::Function& ir_function, llvm::IRBuilder<>& ir_builder,
                         int64_t bytes)
    : codegen::Environment(ir_function, ir_builder),
      vector_bytes(bytes),
      is_streamed(ir_function.params.size()),
      held_tiles(ir_function.value_count) {}

llvm::Value* Environment::Buffer(llvm::Type* element, unsigned count) const {
  llvm::AllocaInst* buffer = Slot(llvm::ArrayType::get(element, count));
  buffer->setAlignment(llvm::Align(64));
  return buffer;
}

}  // namespace phobos::compiler::host
