// SPDX-License-Identifier: Apache-2.0
//
// The loads and stores of a function, each with its position in every dimension as a linear form
// and with what is known to hold where it is executed. Values; made by one thread.
#ifndef PHOBOS_COMPILER_RACE_ACCESSES_H_
#define PHOBOS_COMPILER_RACE_ACCESSES_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/race/symbols.h"

namespace phobos::compiler::race {

struct Access {
  const ir::Op* op = nullptr;  // kLoad or kStore
  // One entry a dimension: the first position and how many follow from it. A gather has length 0:
  // it may be anywhere.
  std::vector<ir::Linear> positions;
  std::vector<int64_t> lengths;
  std::vector<Fact> guards;

  bool is_store() const { return op->opcode == ir::Opcode::kStore; }
  int32_t param() const { return op->index; }
};

// The accesses of parameters that some store writes, in the order of the text. Fills `symbols` with
// the function's values and assumptions on the way. The result points into `function`.
std::vector<Access> CollectAccesses(const ir::Function& function, Symbols* symbols);

}  // namespace phobos::compiler::race

#endif  // PHOBOS_COMPILER_RACE_ACCESSES_H_
