// SPDX-License-Identifier: Apache-2.0
//
// A slow and simple interpreter of the tile IR: each op in its turn, each tile whole. What compiled
// kernels are compared with. One thread a call.
#ifndef PHOBOS_TESTS_COMPILER_CODEGEN_REFERENCE_H_
#define PHOBOS_TESTS_COMPILER_CODEGEN_REFERENCE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"
#include "tests/compiler/codegen/number.h"

namespace phobos::compiler::testing {

// An argument of a launch: a tensor's sides and elements in row-major order, or a scalar as one
// element without sides.
struct Argument {
  std::vector<int64_t> sides;
  std::vector<Bits> elements;
};

struct Launch {
  std::vector<Argument> arguments;  // one a parameter
  std::array<int64_t, 3> grid = {1, 1, 1};
};

// The value of each extent of the function, from the tensors' sides.
std::vector<int64_t> ExtentsOf(const ir::Function& function, const Launch& launch);

// The arguments after the launch. REQUIRES: the function passes ir::Verify and has no built-in of
// limited accuracy; the loops end.
std::vector<Argument> Interpret(const ir::Function& function, Launch launch);

}  // namespace phobos::compiler::testing

#endif  // PHOBOS_TESTS_COMPILER_CODEGEN_REFERENCE_H_
