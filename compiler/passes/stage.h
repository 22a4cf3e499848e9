// SPDX-License-Identifier: Apache-2.0
//
// Which tiles have to be held. Back ends evaluate a tile late: element by element inside the
// statement that uses it (a store to a tensor, a write of a variable), so that chains of operations
// need no memory. Where that would read something else than the op in its place would have read,
// or would compute something dear more than once, and where an op is done over a tile as a whole,
// this pass puts a kStage behind the op. Pure, any thread.
#ifndef PHOBOS_COMPILER_PASSES_STAGE_H_
#define PHOBOS_COMPILER_PASSES_STAGE_H_

#include "compiler/ir/ir.h"

namespace phobos::compiler::passes {

// Afterwards a back end may evaluate every tile but the result of a kStage wherever a statement
// needs it, once a statement, and in any order of the elements, as long as each element is read
// before the same element is written: a tensor or variable that a statement both reads and writes
// is read at the elements that are written and no others. A kTranspose, kJoin, kInterleave, a scan,
// a reduction that gives a tile or an atomic that gives one is the operand of a kStage and of
// nothing else; a kDot that of a kStage, kDeclareVar or kWriteVar and of nothing else, and what it
// multiplies are kStages. The operand of a kReshape that has not the same long sides (ir/shape.h)
// is in memory: a kStage or a kReadVar; so is a tile that a kPrint prints. REQUIRES: the function
// passes ir::Verify; the result does too.
ir::Function Stage(ir::Function function);

// The same for a chip whose threads hold tiles in registers, where holding costs nothing: there a
// load that a reduction and another statement need is held too, unless a thread would hold too much
// of it.
ir::Function StageInRegisters(ir::Function function);

// Whether a back end does the op as a statement over a tile: it stores one, or it is an atomic on
// one whose old values nobody asks for, or it reduces one to a scalar. With a result, an atomic on
// a tile is done by the kStage that holds the result.
bool IsTileStatement(const ir::Function& function, const ir::Op& op);

// Elements that a thread holds of one tile in registers; a larger one is in its local memory.
inline constexpr int64_t kRegisterElements = 64;

}  // namespace phobos::compiler::passes

#endif  // PHOBOS_COMPILER_PASSES_STAGE_H_
