// SPDX-License-Identifier: Apache-2.0
//
// Random well-typed kernels: tiles of rank 0 to 4 of all types, every operation that lowers, loads
// and stores of every kind, variables, loops and branches, in any order, and launches of them on
// tensors full of numbers where arithmetic changes. Some promise what their addresses and extents
// are multiples of. What a seed makes changes only with this library. For tests; any thread.
#ifndef PHOBOS_TESTS_COMPILER_CODEGEN_RANDOM_RANDOM_KERNEL_H_
#define PHOBOS_TESTS_COMPILER_CODEGEN_RANDOM_RANDOM_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/interpreter/interpreter.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::testing {

struct RandomKernel {
  ir::Function function;
  interpreter::Launch launch;
  // By parameter: by how many units in the last place its elements may differ. 0 but for tensors
  // that hold results of built-ins of limited accuracy, which nothing else is computed from.
  std::vector<double> ulps;
};

// What may be in a kernel. The default is all that the IR has.
struct Forms {
  size_t max_rank = 4;  // of tiles
  bool gathers = true;
  bool arranges = true;  // reshapes, transposes, reductions
};

// Its loops end, its blocks one after the other have one result, and no bits of a NaN are seen.
RandomKernel MakeRandomKernel(uint64_t seed, const Forms& forms = {});

}  // namespace phobos::compiler::testing

#endif  // PHOBOS_TESTS_COMPILER_CODEGEN_RANDOM_RANDOM_KERNEL_H_
