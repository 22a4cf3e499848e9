// SPDX-License-Identifier: Apache-2.0
//
// One block of one launch, followed through the integers of the function: which elements it surely
// touches. Floats and memory are not followed; what depends on them is left out. Pure, any thread.
#ifndef PHOBOS_COMPILER_RACE_TRACE_H_
#define PHOBOS_COMPILER_RACE_TRACE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/race/interval.h"

namespace phobos::compiler::race {

struct Launch {
  std::vector<int64_t> extents;                 // by index
  std::vector<std::optional<int64_t>> scalars;  // by parameter; absent: not an integer
  std::array<int64_t, 3> grid = {1, 1, 1};
};

// The elements that one execution of a load or store touches: a box, without those that a mask
// leaves out.
struct Touch {
  const ir::Op* op = nullptr;
  std::vector<Interval> box;  // one a dimension, inside the tensor, none empty
  // With a mask: whether it is true at each position of dimension `masked_dim` of the box; empty
  // without one.
  int32_t masked_dim = -1;
  std::vector<bool> mask;
};

// What `block` touches of tensors that the function writes, in order. Nothing when an assumption of
// the function is false or cannot be evaluated. *budget is the number of ops that may still be
// followed; a trace ends where it is used up.
std::optional<std::vector<Touch>> TraceBlock(const ir::Function& function, const Launch& launch,
                                             const std::array<int64_t, 3>& block, int64_t* budget);

}  // namespace phobos::compiler::race

#endif  // PHOBOS_COMPILER_RACE_TRACE_H_
