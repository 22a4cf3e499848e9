// SPDX-License-Identifier: Apache-2.0
//
// Whether two accesses can touch one element from two different blocks. Pure, any thread.
#ifndef PHOBOS_COMPILER_RACE_DISJOINT_H_
#define PHOBOS_COMPILER_RACE_DISJOINT_H_

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/race/accesses.h"
#include "compiler/race/symbols.h"

namespace phobos::compiler::race {

// Two blocks that could not be told apart: where a search for a witness begins.
struct Hint {
  std::array<int64_t, 3> first = {0, 0, 0};   // of the block of the first access
  std::array<int64_t, 3> second = {0, 0, 0};  // of the other
};

// True: proved that no two different blocks touch one element by `first` and `second` (which may be
// the same access). False: not proved, and *hints has places to look at.
bool AreDisjoint(const ir::Function& function, const Symbols& symbols, const Access& first,
                 const Access& second, std::vector<Hint>* hints);

}  // namespace phobos::compiler::race

#endif  // PHOBOS_COMPILER_RACE_DISJOINT_H_
