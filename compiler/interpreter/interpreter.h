// SPDX-License-Identifier: Apache-2.0
//
// Runs a function of the tile IR, slow and obvious: each block of the grid after the other, each
// op in its turn, each tile whole. It is what ir.h says, executed: the oracle that compiled kernels
// are compared with. It is no back end: it knows no chip, and fast_math changes nothing here. One
// thread a call.
#ifndef PHOBOS_COMPILER_INTERPRETER_INTERPRETER_H_
#define PHOBOS_COMPILER_INTERPRETER_INTERPRETER_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/interpreter/number.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::interpreter {

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

// What an interpretation may take, so that none is endless.
struct Limits {
  int64_t steps = int64_t{1} << 32;     // ops and elements read and computed, of all blocks
  int64_t elements = int64_t{1} << 26;  // of all values and variables of a function, 8 bytes each
};

// The value of each extent of the function, from the tensors' sides; 0 for one that no tensor has.
// InvalidArgument: an argument that does not fit its parameter, or the other arguments.
absl::StatusOr<std::vector<int64_t>> ExtentsOf(const ir::Function& function, const Launch& launch);

// The arguments after the launch; what it prints is added to `printed`, unless that is null.
// Errors: as ir::Verify and ExtentsOf; InvalidArgument (a grid with a negative side, or with blocks
// in a dimension that the function does not use); FailedPrecondition (an assumption of the function
// is false at this launch); ResourceExhausted (over a limit); Unimplemented (an opcode that the
// interpreter does not know).
absl::StatusOr<std::vector<Argument>> Interpret(const ir::Function& function, Launch launch,
                                                const Limits& limits = {},
                                                std::string* printed = nullptr);

}  // namespace phobos::compiler::interpreter

#endif  // PHOBOS_COMPILER_INTERPRETER_INTERPRETER_H_
