// SPDX-License-Identifier: Apache-2.0
//
// Races by running a function's integers element by element, in the plainest way and apart from
// compiler/race: what the race check is compared with. Values of floats and memory are 0. Any
// thread.
#ifndef PHOBOS_TESTS_COMPILER_RACE_BRUTE_FORCE_H_
#define PHOBOS_TESTS_COMPILER_RACE_BRUTE_FORCE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::race {

struct SmallLaunch {
  std::vector<int64_t> extents;
  std::vector<int64_t> scalars;  // by parameter
  std::array<int64_t, 3> grid = {1, 1, 1};
};

using Element = std::vector<int64_t>;
// Returns whether to go on.
using OnTouch = std::function<bool(const ir::Op& op, const Element& element)>;

// Runs one block and tells each element that it touches, inside the tensors. False: an assumption
// does not hold.
bool RunBlock(const ir::Function& function, const SmallLaunch& launch,
              const std::array<int64_t, 3>& block, const OnTouch& on_touch);

// A description of two blocks that meet in this launch; empty when none do (or an assumption does
// not hold).
std::string RaceIn(const ir::Function& function, const SmallLaunch& launch);

}  // namespace phobos::compiler::race

#endif  // PHOBOS_TESTS_COMPILER_RACE_BRUTE_FORCE_H_
