// SPDX-License-Identifier: Apache-2.0
//
// What each opcode makes of its operands, those that read nothing else: constants, shape, numbers,
// conversion. A new opcode of this kind is a case here. Pure, any thread.
#ifndef PHOBOS_COMPILER_INTERPRETER_OPERATION_H_
#define PHOBOS_COMPILER_INTERPRETER_OPERATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/interpreter/tile.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::interpreter {

// The value of `op`, of op.type. REQUIRES: the op is of a function that passes ir::Verify, and
// `operands` are its operands' values, null for kNoValue. Unimplemented: an opcode that is no case
// here.
absl::StatusOr<Tile> Evaluate(const ir::Op& op, const std::vector<const Tile*>& operands);

// What an element becomes that was `before`, by an atomic with these operands.
Bits AtomicStep(ir::Opcode opcode, ir::DType dtype, Bits before, const std::vector<Bits>& operands);

}  // namespace phobos::compiler::interpreter

#endif  // PHOBOS_COMPILER_INTERPRETER_OPERATION_H_
