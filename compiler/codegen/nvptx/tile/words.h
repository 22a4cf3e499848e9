// SPDX-License-Identifier: Apache-2.0
//
// Several neighbouring elements at once, in memory and in registers. Elements narrower than a
// register travel in words: vectors of them have no load or store of their own on the chip. An
// element here is as memory has it: a bool is a byte. Emits at the builder. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_WORDS_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_WORDS_H_

#include <vector>

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

// What threads that stand next to each other in a warp give each other: word i of the group's
// thread t and word t of its thread i change places. `words`: a thread's, as many as a group has
// threads, which is 2 or 4; each some i32. All threads of the warp come here.
void TransposeWords(llvm::IRBuilder<>& b, llvm::Value* thread, std::vector<Fragment>* words);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_WORDS_H_
