// SPDX-License-Identifier: Apache-2.0
//
// The search for a launch in which two blocks meet: a few small ones are tried, from where the
// proof got stuck. What it finds is real; that it finds nothing proves nothing. Pure, any thread.
#ifndef PHOBOS_COMPILER_RACE_WITNESS_H_
#define PHOBOS_COMPILER_RACE_WITNESS_H_

#include <optional>
#include <vector>

#include "compiler/race/accesses.h"
#include "compiler/race/disjoint.h"
#include "compiler/race/race.h"

namespace phobos::compiler::race {

std::optional<Witness> FindWitness(const ir::Function& function,
                                   const std::vector<Access>& accesses,
                                   const std::vector<Hint>& hints);

}  // namespace phobos::compiler::race

#endif  // PHOBOS_COMPILER_RACE_WITNESS_H_
