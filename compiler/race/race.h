// SPDX-License-Identifier: Apache-2.0
//
// Whether two blocks of a kernel can touch one element, one of them writing: decided from the
// linear positions of its loads and stores, for every grid and extents that its promises allow.
// Says so honestly when it cannot decide. Runs nothing. Pure, any thread.
#ifndef PHOBOS_COMPILER_RACE_RACE_H_
#define PHOBOS_COMPILER_RACE_RACE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::race {

enum class Verdict { kRaceFree, kRace, kUnproven };

// A launch in which two blocks touch one element.
struct Witness {
  std::vector<int64_t> launch_extents;                 // by index
  std::vector<std::optional<int64_t>> launch_scalars;  // by parameter; absent: plays no part
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<std::array<int64_t, 3>, 2> blocks = {};
  std::array<int32_t, 2> lines = {};
  std::array<bool, 2> writes = {};
  int32_t param = 0;
  std::vector<int64_t> element;
};

struct Report {
  Verdict verdict = Verdict::kUnproven;
  // kRace: the witness (two blocks, the element, both source lines, the constants). kUnproven: the
  // access that could not be decided and why. Empty when race free.
  std::string detail;
  std::optional<Witness> witness;  // kRace
  // Of the tensors that are written those of which each pair of accesses was proved to keep clear
  // of one another; none of a function that was given up.
  std::set<int32_t> proved_params;
};

// REQUIRES: function passes ir::Verify.
Report Check(const ir::Function& function);

}  // namespace phobos::compiler::race

#endif  // PHOBOS_COMPILER_RACE_RACE_H_
