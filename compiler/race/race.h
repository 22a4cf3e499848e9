// SPDX-License-Identifier: Apache-2.0
//
// Whether two blocks of a kernel can touch one element, one of them writing: decided in closed form
// from the affine positions of its loads and stores, for every grid and extents that its promises
// allow. Says so honestly when it cannot decide. Runs nothing. Pure, any thread.
#ifndef PHOBOS_COMPILER_RACE_RACE_H_
#define PHOBOS_COMPILER_RACE_RACE_H_

#include <string>

#include "compiler/ir/ir.h"

namespace phobos::compiler::race {

enum class Verdict { kRaceFree, kRace, kUnproven };

struct Report {
  Verdict verdict = Verdict::kUnproven;
  // kRace: the witness (two blocks, the element, both source lines, the constants). kUnproven: the
  // access that could not be decided and why. Empty when race free.
  std::string detail;
};

Report Check(const ir::Function& function);

}  // namespace phobos::compiler::race

#endif  // PHOBOS_COMPILER_RACE_RACE_H_
