// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/tile/pair.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/host/tile/evaluator.h"
#include "compiler/codegen/host/tile/held.h"
#include "llvm/ADT/SmallVector.h"

namespace phobos::compiler::host {
namespace {

// Tiles of one shape, computed at one place after the other: one of them, stored as it is, or two,
// stored in turns.
class Part {
 public:
  // `start` is where the first element goes in a tile of `type`.
  Part(const Environment& environment, std::vector<ir::ValueId> values, llvm::Value* start,
       const ir::Type& type)
      : env_(environment),
        values_(std::move(values)),
        start_(start),
        type_(type),
        shape_(environment.definitions[values_[0]]->type.shape),
        lane_side_(static_cast<int>(shape_.size()) - 1),
        evaluator_(environment) {
    for (ir::ValueId value : values_) evaluator_.Collect(value);
    const auto most = kMaxLanes / static_cast<unsigned>(values_.size());
    lanes_ = std::min(evaluator_.LanesFor(shape_.back()), most);
  }

  void Emit() {
    evaluator_.EmitBothWays(evaluator_.PrepareLoads(), [this](bool is_inside) {
      Chunk chunk;
      chunk.is_inside = is_inside;
      chunk.lane_side = lane_side_;
      chunk.lanes = lanes_;
      evaluator_.EmitPlaces(shape_, lane_side_, lane_side_, chunk,
                            [this](const Chunk& start) { EmitRow(start); });
    });
  }

 private:
  void EmitRow(const Chunk& chunk) {
    const int64_t whole = shape_.back() / lanes_ * lanes_;
    if (whole > 0) {
      env_.Loop(env_.Int(0), env_.Int(whole), lanes_,
                [&](llvm::Value* index) { EmitChunk(chunk, index, lanes_); });
    }
    if (whole < shape_.back()) {
      EmitChunk(chunk, env_.Int(whole), static_cast<unsigned>(shape_.back() - whole));
    }
  }

  void EmitChunk(Chunk chunk, llvm::Value* index, unsigned valid_lanes) {
    chunk.indices[lane_side_] = index;
    chunk.valid_lanes = valid_lanes;
    evaluator_.Forget();
    llvm::SmallVector<llvm::Value*, 2> vectors;
    for (ir::ValueId value : values_) {
      vectors.push_back(evaluator_.EvaluateBroadcast(value, chunk));
    }
    if (vectors.size() == 1) return StoreHeld(env_, start_, type_, chunk, vectors[0]);
    llvm::IRBuilder<>& b = env_.builder;
    llvm::SmallVector<int, kMaxLanes> order;
    for (unsigned lane = 0; lane < lanes_; ++lane) {
      order.push_back(static_cast<int>(lane));
      order.push_back(static_cast<int>(lanes_ + lane));
    }
    chunk.indices[lane_side_] = b.CreateMul(index, env_.Int(2));
    chunk.lanes *= 2;
    chunk.valid_lanes *= 2;
    StoreHeld(env_, start_, type_, chunk, b.CreateShuffleVector(vectors[0], vectors[1], order));
  }

  const Environment& env_;
  const std::vector<ir::ValueId> values_;
  llvm::Value* const start_;
  const ir::Type& type_;  // of the tile that is stored to
  const std::vector<int64_t> shape_;
  const int lane_side_;
  Evaluator evaluator_;
  unsigned lanes_ = 1;
};

}  // namespace

void EmitPair(const Environment& environment, const ir::Op& stage) {
  const ir::Op& pair = *environment.definitions[stage.operands[0]];
  llvm::Value* start = environment.held_tiles[stage.result];
  if (pair.opcode == ir::Opcode::kInterleave) {
    Part(environment, pair.operands, start, stage.type).Emit();
    return;
  }
  // The second part comes later: behind the first one's last row, vectors may be written whole.
  const int64_t length = environment.definitions[pair.operands[0]]->type.shape.back();
  llvm::IRBuilder<>& b = environment.builder;
  llvm::Type* element = codegen::MemoryType(b.getContext(), stage.type.dtype);
  llvm::Value* second = b.CreateGEP(element, start, environment.Int(length));
  Part(environment, {pair.operands[0]}, start, stage.type).Emit();
  Part(environment, {pair.operands[1]}, second, stage.type).Emit();
}

}  // namespace phobos::compiler::host
