// SPDX-License-Identifier: Apache-2.0
//
// Which tiles the chip copies from a tensor to shared memory on its own while threads go on, and
// in which loops that is done some turns ahead. Pure, any thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_CONTRACTION_COPIES_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_CONTRACTION_COPIES_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

// A kStage of a kLoad that only products read.
struct Copy {
  const ir::Op* load = nullptr;
  const ir::Op* loop = nullptr;  // the kFor that it is done ahead in; null: none
  // The products that read it are in its own Block and wait for it; otherwise it waits itself.
  bool is_awaited = false;
  int64_t offset = 0;  // done ahead: of its first buffer in the ring
};

// A kFor whose copies are done ahead: turn i + buffers - 1's while turn i is computed.
struct Pipeline {
  int64_t buffers = 2;
  int64_t buffer_bytes = 0;           // of all its copies
  int64_t offset = 0;                 // of buffer 0 in the block's rings
  std::vector<const ir::Op*> stages;  // kStages, in the order of the text
  // What has to be computed anew for another turn, in the order of the text.
  std::vector<const ir::Op*> scalars;
  // A product by matrix instructions that reads all that is copied, and that alone does anything
  // with tiles in the loop: in its last step of a turn, the first step of the next one is read
  // already. Its statement; null: there is none.
  const ir::Op* product = nullptr;
};

struct Copies {
  std::set<const ir::Op*> operands;             // kStages that products read, copied or not
  std::map<const ir::Op*, Copy> copies;         // by kStage
  std::map<const ir::Op*, Pipeline> pipelines;  // by kFor
  int64_t ring_bytes = 0;  // loops that do not enclose each other have them one after the other

  // `op` is done ahead.
  const Copy* AheadOf(const ir::Op& op) const;
};

// `has_copies`: the chip has such copies.
Copies FindCopies(const ir::Function& function, bool has_copies);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_CONTRACTION_COPIES_H_
