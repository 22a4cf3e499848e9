// SPDX-License-Identifier: Apache-2.0
//
// How the threads of a block share the work of a reduction or a scan. Values, any thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_DEALING_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_DEALING_H_

#include <cstdint>
#include <vector>

#include "compiler/codegen/nvptx/plan/layout.h"

namespace phobos::compiler::nvptx {

inline constexpr int64_t kWarp = 32;  // threads

// A tile's elements in row-major order, seen from one side: outer x length x inner.
struct Sides {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;

  int64_t results() const { return outer * inner; }
};
Sides SidesOf(const std::vector<int64_t>& shape, int axis);

// A reduction. By its operand's layout, each thread combines what it holds: part after part, each
// of a few turns that go to the same results. Within a turn, `partials` groups of `group`
// neighbouring threads have elements of the same results; partials of neighbours meet first, the
// `folded` next to each other by exchange within a warp, the rest in shared memory.
//
// Where the layout does not fit, the reduction is done apart: a warp a result where elements are
// neighbours along the side, a thread a result elsewhere.
struct ReductionDealing {
  Sides sides;
  bool is_apart = false;
  bool over_lanes = false;  // the lanes of a vector are elements of one result
  int64_t parts = 1;
  int64_t turns = 1;   // of a part
  int64_t stride = 1;  // of the turns of a part
  int64_t group = 1;
  int64_t partials = 1;
  int64_t folded = 1;
  int64_t order = 1;  // ir::Op::index of the reduction, the near ones first

  // Partials of a result that meet in shared memory; 1: none do.
  int64_t left() const { return partials / folded; }
};

// `layout` is of tiles of `shape`. Partials of `partial_bytes` meet in shared memory.
ReductionDealing DealReduction(const std::vector<int64_t>& shape, int axis, const Layout& layout,
                               int64_t partial_bytes);

// A scan, over a tile in shared memory: a thread sums each of a side's pieces, another one the
// pieces' last sums.
struct ScanDealing {
  Sides sides;
  int64_t piece = 1;   // elements
  int64_t pieces = 1;  // of a side

  int64_t order() const { return pieces > 1 ? piece : 0; }  // ir::Op::index of the scan
};
ScanDealing DealScan(const std::vector<int64_t>& shape, int axis, int64_t threads);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_DEALING_H_
