// SPDX-License-Identifier: Apache-2.0
//
// What a statement computes, chunk by chunk: everything that its values need, back to loads, tiles
// in memory and scalars. A statement collects its values first, then prepares the loads found
// behind them, then evaluates at one place after the other. One thread a statement.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_TILE_EVALUATOR_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_TILE_EVALUATOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/codegen/host/tile/access.h"
#include "compiler/codegen/host/tile/environment.h"
#include "compiler/ir/ir.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::host {

class Evaluator {
 public:
  explicit Evaluator(const Environment& environment)
      : env_(environment), b_(environment.builder), collected_(environment.definitions.size()) {}

  // Finds the loads behind a value, or behind what an op is computed from, and how much is computed
  // on what.
  void Collect(ir::ValueId value);
  void CollectOperands(const ir::Op& op);

  // passes::Cost of all that was collected.
  int cost() const { return cost_; }

  // Lanes of a vector register of the widest float, or of the widest integer where there is no
  // float: i64 index arithmetic beside floats is computed in several registers. At least 2, and no
  // more than a tile's side of `length` asks for.
  unsigned LanesFor(int64_t length) const;

  // i1: all loads are inside their tensors; null: they always are.
  llvm::Value* PrepareLoads();
  // Emits what chunks that are not inside need, before several calls of EmitBothWays; a single one
  // does it where it is needed.
  void PrepareRanges();
  // Emits `body` twice: for where `inside` (null: true) holds, and for where it does not, after
  // what chunks that are not inside need.
  void EmitBothWays(llvm::Value* inside, llvm::function_ref<void(bool is_inside)> body);
  // Emits `body` for `chunk` at each place along the sides of a tile of `shape`, but for `one` and
  // `other`, which may be the same: along those the body goes, and sets their indices.
  void EmitPlaces(const std::vector<int64_t>& shape, int one, int other, Chunk chunk,
                  llvm::function_ref<void(const Chunk& chunk)> body) const;

  // i64: along the lanes' side, so many elements from the first on are inside whatever is evaluated
  // for them, up to `length`. Null: not worth asking, for only the last of many tiles is not
  // inside. `target`, on whose side `lane_side` lanes run too, may be null. REQUIRES: loads are
  // prepared, lanes traced.
  llvm::Value* PreparePrefix(int64_t length, const Access* target, int lane_side) const;
  // Finds along which side of each load behind a value the lanes of a statement run, given that of
  // the tile that the value is broadcast to.
  void TraceLanes(ir::ValueId value, size_t rank, int lane_side);

  // Forgets what was computed: no longer in sight, or of an older state of memory.
  void Forget() { known_.clear(); }

  // A chunk of the value: a vector of the chunk's lanes, or a scalar where it is one for all of
  // them. REQUIRES: the value was collected, and loads prepared.
  llvm::Value* Evaluate(ir::ValueId value, const Chunk& chunk);
  // As Evaluate at a chunk of a tile that the value is broadcast to, always a vector where the
  // chunk has lanes. Null for kNoValue.
  llvm::Value* EvaluateBroadcast(ir::ValueId value, const Chunk& chunk);
  // Of a kLoad or kStore.
  Access::Positions EvaluatePositions(const ir::Op& op, const Access& access, const Chunk& chunk);

 private:
  // What a statement brings into the caches while it computes, beside each chunk of a load.
  struct Ahead {
    llvm::Value* bytes_to_next = nullptr;   // i64: the tile of the next time
    std::optional<Access> store;            // what this block will store at the same place
    llvm::Value* bytes_to_store = nullptr;  // i64: 0, or away from there where it is not to come
  };

  // A value at a place: what is known already of the chunk that is being emitted.
  using Known = std::tuple<ir::ValueId, bool, std::vector<llvm::Value*>>;

  void EmitPlacesFrom(size_t side, const std::vector<int64_t>& shape, int one, int other,
                      Chunk chunk, llvm::function_ref<void(const Chunk& chunk)> body) const;
  void TraceLanesOf(ir::ValueId value, int lane_side);
  llvm::Value* EvaluateNew(const ir::Op& op, const Chunk& chunk);
  llvm::Value* EvaluateIota(const Chunk& chunk);
  llvm::Value* EvaluateReshape(const ir::Op& op, const Chunk& chunk);
  llvm::Value* EvaluateLoad(const ir::Op& op, const Chunk& chunk);
  void PrepareAhead(const ir::Op& load, const Access& access);
  llvm::Value* BytesToNext(const Access& access) const;
  void Prefetch(const Access& access, const Chunk& chunk, llvm::Value* bytes_ahead) const;
  llvm::Value* Spread(llvm::Value* value, const Chunk& chunk);

  const Environment& env_;
  llvm::IRBuilder<>& b_;
  std::map<ir::ValueId, std::optional<Access>> loads_;
  std::map<ir::ValueId, Ahead> ahead_;  // of loads that fetch more than their own elements
  std::vector<bool> collected_;         // by ValueId
  std::set<std::pair<ir::ValueId, int>> lane_sides_;  // of values; Chunk::kNoSide: no side alone
  int cost_ = 0;
  bool is_store_ = false;
  int float_bytes_ = 0;  // the widest float and integer
  int integer_bytes_ = 1;
  std::map<Known, llvm::Value*> known_;
};

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_TILE_EVALUATOR_H_
