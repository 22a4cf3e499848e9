// SPDX-License-Identifier: Apache-2.0
//
// The frame of a kernel: its entry function by the host ABI (see Artifact in manifest.proto), the
// loop over the blocks of a call. Tiles are tile.h's. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_KERNEL_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_KERNEL_H_

#include <cstdint>

#include "compiler/codegen/host/chip.h"
#include "compiler/ir/ir.h"
#include "llvm/IR/Module.h"

namespace phobos::compiler::host {

// Emits the entry function into `module`; returns the bytes of scratch memory a thread needs.
// REQUIRES: the function passes ir::Verify and went through passes::Stage.
int64_t EmitKernel(const ir::Function& function, const Chip& chip, llvm::Module& module);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_KERNEL_H_
