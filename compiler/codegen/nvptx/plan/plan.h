// SPDX-License-Identifier: Apache-2.0
//
// What is decided about a kernel before its code is emitted: how each tile is dealt out to the
// threads of a block, where held tiles are, how much is done at a time, where threads wait for each
// other. Pure, any thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_PLAN_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "compiler/codegen/kernel/held_memory.h"
#include "compiler/codegen/nvptx/plan/contraction/copies.h"
#include "compiler/codegen/nvptx/plan/contraction/product.h"
#include "compiler/codegen/nvptx/plan/dealing.h"
#include "compiler/codegen/nvptx/plan/layout.h"
#include "compiler/codegen/nvptx/plan/registers.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

// A kStage or kReadVar of a tile that a statement reads.
struct HeldRead {
  const ir::Op* op = nullptr;
  bool is_moved = false;  // by a reshape: an element is not read at its own place
  // It has one long side, which runs along the first one of the statement's tile.
  bool is_row = false;
};

// A kStore, kStage, kDeclareVar or kWriteVar of a tile, an atomic on one without a result, or a
// reduction that gives a scalar.
struct Statement {
  const ir::Op* op = nullptr;
  // The transpose, scan or reduction that it does, of which it computes the operand, or the
  // product; null: none.
  const ir::Op* whole = nullptr;
  std::vector<const ir::Op*> loads;  // kLoads of tiles that are done inside it
  std::vector<HeldRead> held;
  int cost = 0;                              // passes::Cost of all that it computes
  ir::Type type;                             // of the tile that it computes
  Layout layout;                             // of that tile
  ReductionDealing reduction;                // of a reduction
  ScanDealing scan;                          // of a scan
  std::optional<FragmentDealing> fragments;  // of a product by matrix instructions
  const ir::Op* ahead_in = nullptr;          // the kFor in which it is Pipeline::product
  // Where in the block's shared memory threads exchange partials.
  int64_t exchange = 0;
  int64_t exchange_bytes = 0;
  // Turns whose elements are computed before any is stored, and copies of a turn in the code;
  // layout.turns() where there is no loop.
  int64_t batch = 1;
  int64_t unroll = 1;
  // Every way the statement is done deals its elements out by `layout`.
  bool keeps_layout = false;
  // Another statement counts on it that a thread writes what the layout gives it.
  bool is_relied_on = false;
};

struct Plan {
  std::map<const ir::Op*, Statement> statements;
  std::set<const ir::Op*> streams;  // kLoads (streams.h)
  std::set<const ir::Op*> waits;    // statements and scalar accesses before which threads meet
  // What threads tell each other through shared memory: held tiles, by kStage and kDeclareVar, and
  // old values of atomics on one element. All other held tiles are with the threads that made them.
  codegen::HeldMemory shared;
  Copies copies;
  Kept kept;
  // Of copies.operands: whose rows lie in shared memory as they are, since all that reads them
  // reads along them. Others' are swizzled.
  std::set<const ir::Op*> straight;
  std::set<const ir::Op*> awaits_copies;  // statements before which threads wait for their copies
  int64_t rings = 0;                      // where in shared memory the loops' buffers begin
  bool threads_meet = false;              // anywhere
  bool has_packed_casts = false;          // the chip makes two 16-bit floats at a time
  int64_t shared_bytes = 0;  // of the block: those tiles, where partials are exchanged, the rings

  // Each thread keeps the tile of a kStage, kReadVar, kDeclareVar or kWriteVar for its own rows.
  bool KeepsRows(const ir::Op& op) const { return kept.HasRows(op); }
  // Elements of a statement's tile that a thread holds.
  int64_t HeldElements(const Statement& statement) const;

  // What the kernel has by itself; where that would be more than it can be, all is given at launch.
  static constexpr int64_t kMostStatic = 48 << 10;
  int64_t static_shared_bytes() const { return shared_bytes <= kMostStatic ? shared_bytes : 0; }
  int64_t dynamic_shared_bytes() const { return shared_bytes - static_shared_bytes(); }
};

// So many bytes of shared memory, up to where the next ones may begin.
int64_t SharedAligned(int64_t bytes);

// For the chip `sm_<sm>`. REQUIRES: the function passes ir::Verify and went through passes::Stage.
// It must outlive the result.
Plan PlanFor(const ir::Function& function, int sm);

// The function with the order of each reduction and scan as the code for PlanFor has it.
// REQUIRES: as PlanFor.
ir::Function Ordered(const ir::Function& function, int sm);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_PLAN_H_
