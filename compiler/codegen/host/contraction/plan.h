// SPDX-License-Identifier: Apache-2.0
//
// How a product of tiles is cut up: blocks of registers, panels of b, stretches of k. Pure, any
// thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_PLAN_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_PLAN_H_

#include <cstdint>

#include "compiler/ir/ir.h"

namespace phobos::compiler::host {

struct ContractionPlan {
  // The sides of one product; `batch` of them lie behind one another.
  int64_t batch = 1;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  ir::DType operand_type = ir::DType::kF32;
  ir::DType sum_type = ir::DType::kF32;
  ir::Precision precision = ir::Precision::kExact;
  bool is_transposed = false;  // b is [N, K]

  unsigned lanes = 1;         // sums in a vector
  unsigned vectors = 1;       // of a block of sums, side by side: a panel of b is as wide
  int64_t rows = 1;           // of the blocks of sums: some have one row more
  int64_t blocks = 1;         // above one another
  int64_t taller_blocks = 0;  // so many of these, the first ones, have rows + 1 rows
  int64_t stretch = 1;        // so many k are gone through at a time

  // Whether an operand is copied, a stretch of k at a time, in the sums' type: where its numbers
  // are of another type or rounded, or lie where they are slow to come by.
  bool copies_a = false;
  bool copies_b = false;

  int64_t panel_width() const { return int64_t{lanes} * vectors; }
  // Elements from a row of the copy of a to the next; of all of it; of the copy of a panel of b.
  int64_t a_stride = 0;
  int64_t a_elements() const { return copies_a ? m * a_stride : 0; }
  int64_t b_elements() const;
};

// What is known of a kDot's operands. A fused one (fusion.h) is not in memory.
struct ContractionOperands {
  ir::Type a_type;
  bool a_is_fused = false;
  bool b_is_fused = false;
};

ContractionPlan PlanContraction(const ir::Op& dot, const ContractionOperands& operands,
                                int64_t vector_bytes);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_PLAN_H_
