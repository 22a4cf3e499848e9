// SPDX-License-Identifier: Apache-2.0
//
// How the threads of a block share a product of tiles (a kDot): by the chip's matrix instructions,
// warp by warp, or each thread a block of sums of its own. Values, any thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_CONTRACTION_PRODUCT_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_CONTRACTION_PRODUCT_H_

#include <cstdint>
#include <optional>

#include "compiler/codegen/nvptx/plan/layout.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

// A matrix instruction's result: what a warp holds of it is 4 elements a thread, two neighbours in
// row lane / 4 and two in row lane / 4 + 8, in columns lane % 4 * 2 and behind.
inline constexpr int64_t kFragmentRows = 16;
inline constexpr int64_t kFragmentColumns = 8;
// The first chip with products of all types, copies by the chip itself, and casts of two at a time.
inline constexpr int kAmpere = 80;
// What is multiplied at a time along k.
inline constexpr int64_t kStepBytes = 32;

// Warps over the result, and fragments over a warp's part of it.
struct FragmentDealing {
  int64_t warp_rows = 1;
  int64_t warp_columns = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  bool is_shallow = false;  // the instruction takes half a step
};

// Nothing: the chip `sm_<sm>` has no instruction for the product, or its sides do not fit.
// `a` and `result` are the types of the dot's first operand and of its result; `has_whole_rows`: a
// warp should have whole rows, if it can.
std::optional<FragmentDealing> DealFragments(const ir::Op& dot, const ir::Type& a,
                                             const ir::Type& result, int64_t threads, int sm,
                                             bool has_whole_rows);
Layout FragmentLayout(const FragmentDealing& dealing);
// Whether it is one that FragmentLayout gives.
bool IsOfFragments(const Layout& layout);

// Blocks of sums that are about as high as wide, `vector` columns at a time. Nothing: the sides do
// not fit.
std::optional<Layout> SumLayout(const ir::Type& result, int64_t threads, int64_t vector,
                                bool has_whole_rows);

// An operand's rows in shared memory, in granules of 16 bytes: granule g of row r stands at place
// g ^ (r / rows % width), so that neither rows nor columns of granules meet in the same banks.
struct Swizzle {
  static constexpr int64_t kGranuleBytes = 16;
  int64_t granules = 1;  // of a row
  int64_t width = 1;     // a power of two; 1: nothing is moved
  int64_t rows = 8;
};
// Nothing: rows are no whole granules, and nothing is moved.
std::optional<Swizzle> SwizzleOf(const ir::Type& operand);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_CONTRACTION_PRODUCT_H_
