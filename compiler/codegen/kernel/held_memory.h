// SPDX-License-Identifier: Apache-2.0
//
// Where in a block's memory its held tiles lie: the results of kStage, the variables that are
// tiles, what a kDot needs while it is computed, and what an atomic on one element gives, if
// threads tell each other. A tile's bytes are its own until its Block ends; tiles of Blocks that do
// not enclose each other share bytes. Pure, any thread.
#ifndef PHOBOS_COMPILER_CODEGEN_KERNEL_HELD_MEMORY_H_
#define PHOBOS_COMPILER_CODEGEN_KERNEL_HELD_MEMORY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::codegen {

struct HeldMemory {
  std::map<const ir::Op*, int64_t> offsets;  // by the kStage, kDeclareVar, kDot or atomic
  int64_t bytes = 0;
};

// `bytes_of` gives the size of what a kStage or kDeclareVar of a tile holds, of what a kDot needs,
// or of the number that an atomic gives; 0: it has no place here. Places are in the order of the
// text, without gaps. The function must outlive the result.
HeldMemory PlaceHeldTiles(const ir::Function& function,
                          const std::function<int64_t(const ir::Op&)>& bytes_of);

// The type of the tile that a kStore, kStage, kDeclareVar, kWriteVar or atomic stores; of another
// op, its result's.
const ir::Type& StoredType(const ir::Function& function, const ir::Op& op);

// What a statement does: of a kStage of an atomic's result the atomic, of all others the statement
// itself. `definitions`: ir::DefinitionsOf the function.
const ir::Op& DoneBy(const std::vector<const ir::Op*>& definitions, const ir::Op& op);

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_KERNEL_HELD_MEMORY_H_
