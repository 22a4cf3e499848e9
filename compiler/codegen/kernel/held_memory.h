// SPDX-License-Identifier: Apache-2.0
//
// Where in a block's memory its held tiles lie: the results of kStage and the variables that are
// tiles, and what a kDot needs while it is computed. A tile's bytes are its own until its Block
// ends; tiles of Blocks that do not enclose each other share bytes. Pure, any thread.
#ifndef PHOBOS_COMPILER_CODEGEN_KERNEL_HELD_MEMORY_H_
#define PHOBOS_COMPILER_CODEGEN_KERNEL_HELD_MEMORY_H_

#include <cstdint>
#include <functional>
#include <map>

#include "compiler/ir/ir.h"

namespace phobos::compiler::codegen {

struct HeldMemory {
  std::map<const ir::Op*, int64_t> offsets;  // by the kStage, kDeclareVar or kDot
  int64_t bytes = 0;
};

// `bytes_of` gives the size of what a kStage or kDeclareVar of a tile holds, or a kDot needs; 0: it
// has no place here. Places are in the order of the text, without gaps. The function must outlive
// the result.
HeldMemory PlaceHeldTiles(const ir::Function& function,
                          const std::function<int64_t(const ir::Op&)>& bytes_of);

// The type of the tile that a kStore, kStage, kDeclareVar or kWriteVar stores; of another op, its
// result's.
const ir::Type& StoredType(const ir::Function& function, const ir::Op& op);

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_KERNEL_HELD_MEMORY_H_
