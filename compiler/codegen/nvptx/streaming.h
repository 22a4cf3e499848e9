// SPDX-License-Identifier: Apache-2.0
//
// Loads whose lines the chip's caches give up first. LLVM has a word for them, but its back end for
// these chips does not take it. One module, one thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_STREAMING_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_STREAMING_H_

#include "llvm/IR/Module.h"

namespace phobos::compiler::nvptx {

// Makes the chip's instruction of each load of 16 bytes that is marked `nontemporal`.
// REQUIRES: they are of tensors that the kernel does not write.
void MakeStreamingLoads(llvm::Module& module);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_STREAMING_H_
