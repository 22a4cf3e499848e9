// SPDX-License-Identifier: Apache-2.0
//
// Which tiles threads keep in registers beyond the elements that each made itself: what is said of
// whole rows, and what a product by matrix instructions multiplies. Pure, any thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_REGISTERS_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_REGISTERS_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "compiler/codegen/nvptx/plan/contraction/copies.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

struct Statement;

struct Kept {
  // Tiles with one element a row of tiles in blocks, such as the rows' sums: all threads that have
  // parts of a row have it.
  std::set<ir::ValueId> row_values;  // of kStages
  std::set<int32_t> row_variables;
  // kStages that products alone read, as their left operand: a thread makes what the instruction
  // wants from it.
  std::set<const ir::Op*> operands;
  // By kFor: statements of products inside it whose left operand is read before it, once.
  std::map<const ir::Op*, std::vector<const ir::Op*>> read_before;

  // Of a kStage, kReadVar, kDeclareVar or kWriteVar.
  bool HasRows(const ir::Op& op) const {
    return op.opcode == ir::Opcode::kStage ? row_values.count(op.result) > 0
                                           : row_variables.count(op.index) > 0;
  }
};

// `statements`: all of the function, dealt out; those over tiles with one element a row get their
// layout here.
Kept FindKept(const ir::Function& function, const Copies& copies,
              std::map<const ir::Op*, Statement>* statements);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_REGISTERS_H_
