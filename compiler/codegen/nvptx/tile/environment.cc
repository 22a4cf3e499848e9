// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/tile/environment.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

namespace phobos::compiler::nvptx {

Environment::Environment(const ir::Function& ir_function, llvm::IRBuilder<>& ir_builder,
                         const Plan& kernel_plan)
    : codegen::Environment(ir_function, ir_builder),
      plan(kernel_plan),
      powers(ir_function),
      held_tiles(ir_function.value_count) {}

void Environment::Meet() const { builder.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); }

}  // namespace phobos::compiler::nvptx
