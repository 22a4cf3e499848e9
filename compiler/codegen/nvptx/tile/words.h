// SPDX-License-Identifier: Apache-2.0
//
// Several neighbouring elements at once, in memory and in registers. Elements narrower than a
// register travel in words: vectors of them have no load or store of their own on the chip. An
// element here is as memory has it: a bool is a byte. Emits at the builder. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_WORDS_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_WORDS_H_

#include "compiler/codegen/nvptx/tile/environment.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::nvptx {

// What `lanes` elements of a memory type are loaded and stored as.
llvm::Type* WordsType(llvm::Type* element, unsigned lanes);

// The elements in a value of that type, and back. Pack takes a single element for all lanes too.
Fragment UnpackWords(llvm::IRBuilder<>& builder, llvm::Value* words, llvm::Type* element,
                     unsigned lanes);
llvm::Value* PackWords(llvm::IRBuilder<>& builder, const Fragment& elements, llvm::Type* element,
                       unsigned lanes);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_WORDS_H_
