// SPDX-License-Identifier: Apache-2.0
//
// The race-recording form of a function: the same blocks on the same memory, which write down in
// shadow tensors who touches what. Made of operations that there are, so that whatever runs the IR
// runs it. What the shadows say after a launch is judged by the daemon
// (daemon/worker/check/conflict.h). Pure, any thread.
#ifndef PHOBOS_COMPILER_PASSES_RECORD_H_
#define PHOBOS_COMPILER_PASSES_RECORD_H_

#include <cstdint>
#include <set>
#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::passes {

// What an element of a shadow says of the element of its tensor. A block's number is x + grid.x *
// (y + grid.y * z), below 2^32 - 1.
enum class ShadowContent {
  kLastWrite,   // 1 + the largest number of a block that a store of has written it; 0: none has
  kFirstWrite,  // 2^32 - 1 - the smallest number of such a block; 0: none
  kLastRead,    // the same of loads
  kFirstRead,
  kLastAtomic,  // the same of atomics
  kFirstAtomic,
  kStamp,  // which element of a scatter's tile came here last: the recording's own
  kClash,  // 1 + the number of a block in which one scatter wrote it twice; 0: none did
};

// A u32 tensor of the sides of its tensor. All of it is 0 before the launch.
struct Shadow {
  int32_t param = 0;  // its tensor
  ShadowContent content = ShadowContent::kLastWrite;
  std::vector<int32_t> lines;  // of the accesses that it tells of, ascending
};

struct Recording {
  // The parameters of the original, then one for each shadow.
  ir::Function function;
  std::vector<Shadow> shadows;
};

// Of a tensor that the function writes, every access is recorded; of the others none is, nor of
// those in `proved`, which are known not to be raced for, unless a scatter may write an element of
// them twice. Elements that an access clips are not touched. A largest and a smallest number are
// all that is needed: of two sets of blocks, different ones meet unless both sets are the same one
// block. REQUIRES: the function passes ir::Verify; the result does too.
Recording Record(const ir::Function& function, const std::set<int32_t>& proved = {});

}  // namespace phobos::compiler::passes

#endif  // PHOBOS_COMPILER_PASSES_RECORD_H_
