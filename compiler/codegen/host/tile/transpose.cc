// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/tile/transpose.h"

#include <algorithm>
#include <vector>

#include "compiler/codegen/host/tile/evaluator.h"
#include "compiler/codegen/host/tile/held.h"
#include "llvm/IR/Constants.h"

namespace phobos::compiler::host {
namespace {

// Rows of a block: as many vectors are in registers at a time.
constexpr unsigned kMaxRows = 16;

class Transpose {
 public:
  Transpose(const Environment& environment, const ir::Op& stage);
  void Emit();

 private:
  void EmitRow(Chunk chunk);
  void EmitBlocks(Chunk chunk);
  void EmitBlock(Chunk chunk, unsigned valid_rows, unsigned valid_lanes);
  Chunk Turned(const Chunk& chunk) const;

  const Environment& env_;
  llvm::IRBuilder<>& b_;
  const ir::Op& op_;  // the kTranspose
  llvm::Value* const held_;
  const std::vector<int64_t>& shape_;  // of the operand
  const int lane_side_;                // of the operand: its last
  const int row_side_;                 // of the operand: the one that becomes the last
  Evaluator evaluator_;
  unsigned lanes_ = 1;
};

Transpose::Transpose(const Environment& environment, const ir::Op& stage)
    : env_(environment),
      b_(environment.builder),
      op_(*environment.definitions[stage.operands[0]]),
      held_(environment.held_tiles[stage.result]),
      shape_(environment.definitions[op_.operands[0]]->type.shape),
      lane_side_(static_cast<int>(shape_.size()) - 1),
      row_side_(op_.permutation.back()),
      evaluator_(environment) {
  evaluator_.CollectOperands(op_);
  lanes_ = evaluator_.LanesFor(shape_.back());
  if (row_side_ != lane_side_) lanes_ = std::min(lanes_, kMaxRows);
}

void Transpose::Emit() {
  Chunk chunk;
  chunk.lane_side = lane_side_;
  chunk.lanes = lanes_;
  evaluator_.EmitBothWays(evaluator_.PrepareLoads(), [&](bool is_inside) {
    chunk.is_inside = is_inside;
    evaluator_.EmitPlaces(shape_, row_side_, lane_side_, chunk, [this](const Chunk& start) {
      row_side_ == lane_side_ ? EmitRow(start) : EmitBlocks(start);
    });
  });
}

// Rows stay rows.
void Transpose::EmitRow(Chunk chunk) {
  const int64_t whole = shape_.back() / lanes_ * lanes_;
  auto emit = [&](llvm::Value* index, unsigned valid_lanes) {
    chunk.indices.back() = index;
    chunk.valid_lanes = valid_lanes;
    evaluator_.Forget();
    llvm::Value* row = evaluator_.EvaluateBroadcast(op_.operands[0], chunk);
    StoreHeld(env_, held_, op_.type, Turned(chunk), row);
  };
  if (whole > 0) {
    env_.Loop(env_.Int(0), env_.Int(whole), lanes_,
              [&](llvm::Value* index) { emit(index, lanes_); });
  }
  if (whole < shape_.back()) {
    emit(env_.Int(whole), static_cast<unsigned>(shape_.back() - whole));
  }
}

void Transpose::EmitBlocks(Chunk chunk) {
  auto along = [&](int side, llvm::function_ref<void(unsigned valid)> body) {
    const int64_t whole = shape_[side] / lanes_ * lanes_;
    if (whole > 0) {
      env_.Loop(env_.Int(0), env_.Int(whole), lanes_, [&](llvm::Value* index) {
        chunk.indices[side] = index;
        body(lanes_);
      });
    }
    if (whole < shape_[side]) {
      chunk.indices[side] = env_.Int(whole);
      body(static_cast<unsigned>(shape_[side] - whole));
    }
  };
  along(row_side_, [&](unsigned valid_rows) {
    along(lane_side_, [&](unsigned valid_lanes) { EmitBlock(chunk, valid_rows, valid_lanes); });
  });
}

// The place in the result of a place in the operand.
Chunk Transpose::Turned(const Chunk& chunk) const {
  Chunk turned = chunk;
  for (size_t side = 0; side < shape_.size(); ++side) {
    turned.indices[side] = chunk.indices[op_.permutation[side]];
  }
  return turned;
}

void Transpose::EmitBlock(Chunk chunk, unsigned valid_rows, unsigned valid_lanes) {
  VectorRows rows;
  llvm::Value* const first_row = chunk.indices[row_side_];
  llvm::Value* const first_lane = chunk.indices[lane_side_];
  chunk.valid_lanes = valid_lanes;
  for (unsigned row = 0; row < valid_rows; ++row) {
    chunk.indices[row_side_] = b_.CreateAdd(first_row, env_.Int(row));
    evaluator_.Forget();
    rows.push_back(evaluator_.EvaluateBroadcast(op_.operands[0], chunk));
  }
  rows.resize(lanes_, llvm::PoisonValue::get(rows[0]->getType()));
  TransposeRows(b_, &rows);
  chunk.indices[row_side_] = first_row;
  chunk.valid_lanes = valid_rows;
  for (unsigned lane = 0; lane < valid_lanes; ++lane) {
    chunk.indices[lane_side_] = b_.CreateAdd(first_lane, env_.Int(lane));
    StoreHeld(env_, held_, op_.type, Turned(chunk), rows[lane]);
  }
}

}  // namespace

// In each round the squares of `side` x `side` above and below the diagonal of a square twice as
// wide change places.
void TransposeRows(llvm::IRBuilder<>& builder, VectorRows* rows) {
  const auto lanes = static_cast<unsigned>(rows->size());
  for (unsigned side = 1; side < lanes; side *= 2) {
    llvm::SmallVector<int, kMaxRows> upper(lanes);
    llvm::SmallVector<int, kMaxRows> lower(lanes);
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const bool is_right = (lane & side) != 0;
      upper[lane] = static_cast<int>(is_right ? lanes + lane - side : lane);
      lower[lane] = static_cast<int>(is_right ? lanes + lane : lane + side);
    }
    for (unsigned row = 0; row < lanes; ++row) {
      if ((row & side) != 0) continue;
      llvm::Value* above = (*rows)[row];
      llvm::Value* below = (*rows)[row + side];
      (*rows)[row] = builder.CreateShuffleVector(above, below, upper);
      (*rows)[row + side] = builder.CreateShuffleVector(above, below, lower);
    }
  }
}

void EmitTranspose(const Environment& environment, const ir::Op& stage) {
  Transpose(environment, stage).Emit();
}

}  // namespace phobos::compiler::host
