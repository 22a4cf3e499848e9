// SPDX-License-Identifier: Apache-2.0
//
// The frame of a kernel: its entry function by the GPU ABI (see Artifact in manifest.proto), what
// it reads of the launch, held tiles, and where threads wait for each other. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_KERNEL_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_KERNEL_H_

#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/ir/ir.h"
#include "llvm/IR/Module.h"

namespace phobos::compiler::nvptx {

// Emits the entry function into `module`, which has the target's data layout.
// REQUIRES: `plan` is of `function`, which passes ir::Verify and went through passes::Stage.
void EmitKernel(const ir::Function& function, const Plan& plan, llvm::Module& module);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_KERNEL_H_
