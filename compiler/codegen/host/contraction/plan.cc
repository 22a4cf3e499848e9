// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/contraction/plan.h"

#include <algorithm>
#include <bit>

namespace phobos::compiler::host {
namespace {

// A stretch of a panel of b, 32 KiB with vectors of 64 bytes, stays in the first cache.
constexpr int64_t kStretch = 256;
// Rows of a copy that lie a multiple of so many bytes apart push each other out of the first cache;
// so they get a gap of some elements.
constexpr int64_t kSameSets = 1024;
constexpr int64_t kGap = 16;
// A copy of a panel of b pays once it is read so often.
constexpr int64_t kBlocksWorthCopy = 3;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Rows of a block of sums: at most so many that they, a row of b and some of a fit the vector
// registers; with `least` rows there are still sums enough to wait for none.
struct Heights {
  int64_t most;
  int64_t least;
};

Heights HeightsFor(int64_t vector_bytes, unsigned vectors) {
  if (vector_bytes == 64) return vectors == 2 ? Heights{12, 8} : Heights{16, 12};
  return vectors == 2 ? Heights{6, 5} : Heights{8, 8};
}

// Blocks of one height if there is one, for each height is code of its own; else of two heights, as
// even as can be.
void CutRows(const Heights& heights, ContractionPlan* plan) {
  const int64_t most = std::min(heights.most, plan->m);
  for (int64_t rows = most; rows >= heights.least; --rows) {
    if (plan->m % rows != 0) continue;
    plan->rows = rows;
    plan->blocks = plan->m / rows;
    return;
  }
  plan->blocks = (plan->m + most - 1) / most;
  plan->rows = plan->m / plan->blocks;
  plan->taller_blocks = plan->m % plan->blocks;
}

}  // namespace

int64_t ContractionPlan::b_elements() const {
  return copies_b ? RoundUp(stretch, lanes) * panel_width() : 0;
}

ContractionPlan PlanContraction(const ir::Op& dot, const ContractionOperands& operands,
                                int64_t vector_bytes) {
  ContractionPlan plan;
  const size_t rank = dot.type.shape.size();
  for (size_t side = 0; side + 2 < rank; ++side) plan.batch *= dot.type.shape[side];
  plan.m = dot.type.shape[rank - 2];
  plan.n = dot.type.shape[rank - 1];
  plan.k = operands.a_type.shape.back();
  plan.operand_type = operands.a_type.dtype;
  plan.sum_type = dot.type.dtype;
  plan.precision = static_cast<ir::Precision>(dot.index);
  plan.is_transposed = dot.axis == 1;

  // Masks and shuffles want vectors of 16 bytes at least.
  const auto bytes = static_cast<uint64_t>(ir::ByteSize(plan.sum_type));
  const auto wanted = std::bit_ceil(static_cast<uint64_t>(plan.n)) * bytes;
  const auto width = std::clamp<uint64_t>(wanted, 16, static_cast<uint64_t>(vector_bytes));
  plan.lanes = static_cast<unsigned>(width / bytes);
  plan.vectors = plan.n > plan.lanes ? 2 : 1;
  CutRows(HeightsFor(vector_bytes, plan.vectors), &plan);
  plan.stretch = std::min(plan.k, kStretch);

  const bool changes =
      plan.operand_type != plan.sum_type || plan.precision != ir::Precision::kExact;
  plan.copies_a = changes || operands.a_is_fused || plan.n > 4 * plan.panel_width();
  plan.copies_b =
      changes || operands.b_is_fused || plan.is_transposed || plan.blocks >= kBlocksWorthCopy;
  plan.a_stride = plan.k;
  if (plan.copies_a) {
    plan.a_stride = RoundUp(plan.stretch, plan.lanes);
    const int64_t row_bytes = plan.a_stride * ir::ByteSize(plan.sum_type);
    if (row_bytes % kSameSets == 0) plan.a_stride += kGap;
  }
  return plan;
}

}  // namespace phobos::compiler::host
