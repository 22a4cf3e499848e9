// SPDX-License-Identifier: Apache-2.0
//
// The loads, stores and atomics of a function, each with its position in every dimension as a
// linear form and with what is known to hold where it is executed. Values; made by one thread.
#ifndef PHOBOS_COMPILER_RACE_ACCESSES_H_
#define PHOBOS_COMPILER_RACE_ACCESSES_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/race/symbols.h"

namespace phobos::compiler::race {

struct Access {
  const ir::Op* op = nullptr;
  // One entry a dimension: the first position and how many follow from it. A gather has length 0:
  // it may be anywhere.
  std::vector<ir::Linear> positions;
  std::vector<int64_t> lengths;
  std::vector<Fact> guards;
  // The kStrided atoms of the loops around it.
  std::vector<int32_t> strided;

  bool is_write() const { return ir::WritesTensor(op->opcode); }
  int32_t param() const { return op->index; }
};

// Whether the one stands in the other's way where they touch one element: one writes, and not both
// are atomic. REQUIRES: ops of accesses of one tensor.
inline bool Conflict(const ir::Op& a, const ir::Op& b) {
  return (ir::WritesTensor(a.opcode) || ir::WritesTensor(b.opcode)) &&
         !(ir::IsAtomic(a.opcode) && ir::IsAtomic(b.opcode));
}

// The accesses of parameters that are written, in the order of the text. Fills `symbols` with
// the function's values and assumptions on the way. The result points into `function`.
std::vector<Access> CollectAccesses(const ir::Function& function, Symbols* symbols);

}  // namespace phobos::compiler::race

#endif  // PHOBOS_COMPILER_RACE_ACCESSES_H_
