// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/tile/statement.h"

#include <optional>

#include "compiler/codegen/host/tile/access.h"
#include "compiler/codegen/host/tile/evaluator.h"
#include "compiler/codegen/host/tile/held.h"
#include "compiler/codegen/host/tile/pair.h"
#include "compiler/codegen/host/tile/transpose.h"
#include "compiler/codegen/kernel/held_memory.h"
#include "llvm/IR/Constants.h"

namespace phobos::compiler::host {
namespace {

// One statement, while it is emitted.
class Statement {
 public:
  Statement(const Environment& environment, const ir::Op& op);
  void Emit();

 private:
  llvm::Value* PrepareAccesses();
  llvm::Value* StreamCondition() const;
  void PreparePrefix();

  void EmitInside(Chunk chunk);
  void EmitSides(size_t side, Chunk chunk);
  void EmitInnermost(Chunk chunk);
  void EmitInnermostClipped(Chunk chunk);
  void EmitChunk(Chunk chunk, llvm::Value* index, unsigned valid_lanes);
  void EmitAtomic(const Chunk& chunk);

  const Environment& env_;
  llvm::IRBuilder<>& b_;
  const ir::Op& op_;              // a kStage of an atomic's result: the atomic
  const ir::Type type_;           // of the tile that is stored
  const int lane_side_;           // its last long one
  const int64_t length_;          // of that
  llvm::Value* held_ = nullptr;   // where it is stored, unless to a tensor
  std::optional<Access> target_;  // the tensor's; beside held_, of an atomic with a result
  Evaluator evaluator_;
  unsigned lanes_ = 1;
  unsigned unroll_ = 1;
  bool is_streamed_ = false;
  llvm::Value* prefix_ = nullptr;  // elements along the lanes that are inside in every row, or null
};

// Cheap statements take more vectors a turn; a costly one has work enough to overlap with the next
// turn's.
Statement::Statement(const Environment& environment, const ir::Op& op)
    : env_(environment),
      b_(environment.builder),
      op_(codegen::DoneBy(environment.definitions, op)),
      type_(codegen::StoredType(environment.function, op)),
      lane_side_(LaneSide(type_.shape)),
      length_(type_.shape[lane_side_]),
      evaluator_(environment) {
  if (op.opcode == ir::Opcode::kStage) {
    held_ = env_.held_tiles[op.result];
  } else if (!ir::WritesTensor(op.opcode)) {
    held_ = env_.variables[op.index];
  }
  evaluator_.CollectOperands(op_);
  lanes_ = evaluator_.LanesFor(length_);
  unroll_ = evaluator_.cost() <= 8 ? 4 : evaluator_.cost() <= 16 ? 2 : 1;
  while (unroll_ > 1 && length_ % (int64_t{lanes_} * unroll_) != 0) unroll_ /= 2;
}

llvm::Value* Statement::PrepareAccesses() {
  llvm::Value* inside = evaluator_.PrepareLoads();
  if (ir::WritesTensor(op_.opcode)) {
    target_.emplace(env_, op_);
    inside = env_.And(inside, target_->inside());
  }
  return inside;
}

// i1, or null where streaming stores are out of the question.
llvm::Value* Statement::StreamCondition() const {
  if (!target_.has_value() || env_.is_streamed[op_.index] == nullptr) return nullptr;
  const unsigned chunk_bytes = lanes_ * static_cast<unsigned>(ir::ByteSize(type_.dtype));
  if (chunk_bytes < 16 || length_ % lanes_ != 0) return nullptr;
  if (op_.operands[1] != ir::kNoValue || !target_->IsContiguousAlong(lane_side_) ||
      evaluator_.cost() > 16) {
    return nullptr;
  }
  return b_.CreateAnd(env_.is_streamed[op_.index], target_->IsAligned(chunk_bytes));
}

void Statement::Emit() {
  llvm::Value* inside = PrepareAccesses();
  Chunk chunk;
  chunk.indices.resize(type_.shape.size());
  evaluator_.EmitBothWays(inside, [&](bool is_inside) {
    if (is_inside) return EmitInside(chunk);
    if (target_.has_value()) target_->PrepareRanges();
    PreparePrefix();
    EmitSides(0, chunk);
  });
}

void Statement::PreparePrefix() {
  if (length_ < 2 * int64_t{lanes_}) return;
  for (ir::ValueId operand : op_.operands) {
    evaluator_.TraceLanes(operand, type_.shape.size(), lane_side_);
  }
  prefix_ =
      evaluator_.PreparePrefix(length_, target_.has_value() ? &*target_ : nullptr, lane_side_);
}

void Statement::EmitInside(Chunk chunk) {
  chunk.is_inside = true;
  llvm::Value* stream = StreamCondition();
  if (stream == nullptr) return EmitSides(0, chunk);
  env_.Branch(
      stream,
      [&] {
        is_streamed_ = true;
        EmitSides(0, chunk);
        is_streamed_ = false;
      },
      [&] { EmitSides(0, chunk); });
}

// A loop over each side before the lanes'; where a part may lie outside, over what would be stored
// to the tensor alone.
void Statement::EmitSides(size_t side, Chunk chunk) {
  if (static_cast<int>(side) == lane_side_) {
    chunk.lane_side = lane_side_;
    chunk.lanes = lanes_;
    for (size_t i = side + 1; i < type_.shape.size(); ++i) chunk.indices[i] = env_.Int(0);
    chunk.is_inside ? EmitInnermost(chunk) : EmitInnermostClipped(chunk);
    return;
  }
  if (type_.shape[side] == 1) {
    chunk.indices[side] = env_.Int(0);
    EmitSides(side + 1, chunk);
    return;
  }
  Access::Range range{env_.Int(0), env_.Int(type_.shape[side])};
  if (!chunk.is_inside && held_ == nullptr) {
    const Access::Range stored = target_->RangeOf(static_cast<int>(side));
    if (stored.first != nullptr) range = stored;
  }
  env_.Loop(range.first, range.end, 1, [&](llvm::Value* index) {
    chunk.indices[side] = index;
    EmitSides(side + 1, chunk);
  });
}

void Statement::EmitInnermost(Chunk chunk) {
  const int64_t side = length_;
  const int64_t turn = int64_t{lanes_} * unroll_;
  auto emit_turn = [&](llvm::Value* start) {
    for (unsigned u = 0; u < unroll_; ++u) {
      EmitChunk(chunk, b_.CreateAdd(start, env_.Int(int64_t{u} * lanes_)), lanes_);
    }
  };
  const int64_t whole = side / turn * turn;
  if (whole == turn) {
    emit_turn(env_.Int(0));
  } else if (whole > 0) {
    env_.Loop(env_.Int(0), env_.Int(whole), turn, emit_turn);
  }
  if (whole < side) EmitChunk(chunk, env_.Int(whole), static_cast<unsigned>(side - whole));
}

// As EmitInnermost, where a part may lie outside; skips chunks of which nothing would be stored.
void Statement::EmitInnermostClipped(Chunk chunk) {
  const int64_t side = length_;
  const int64_t whole = side / lanes_ * lanes_;
  llvm::Value* begin = env_.Int(0);
  llvm::Value* end = env_.Int(whole);
  llvm::Value* has_rest = nullptr;
  if (held_ == nullptr) {
    const Access::Range range = target_->RangeOf(chunk.lane_side);
    if (range.first != nullptr) {
      begin = b_.CreateAnd(range.first, env_.Int(-int64_t{lanes_}));
      has_rest = b_.CreateICmpSGT(range.end, env_.Int(whole));
      end = b_.CreateSelect(has_rest, end, range.end);
    }
  }
  if (prefix_ != nullptr) {
    llvm::Value* inside = b_.CreateAnd(prefix_, env_.Int(-int64_t{lanes_}));
    Chunk part = chunk;
    part.is_inside = true;
    env_.Loop(env_.Int(0), inside, lanes_,
              [&](llvm::Value* index) { EmitChunk(part, index, lanes_); });
    begin = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, begin, inside);
  }
  if (whole > 0) {
    env_.Loop(begin, end, lanes_, [&](llvm::Value* index) { EmitChunk(chunk, index, lanes_); });
  }
  if (whole < side) {
    env_.Branch(
        has_rest, [&] { EmitChunk(chunk, env_.Int(whole), static_cast<unsigned>(side - whole)); },
        [] {});
  }
}

void Statement::EmitChunk(Chunk chunk, llvm::Value* index, unsigned valid_lanes) {
  chunk.indices[lane_side_] = index;
  chunk.valid_lanes = valid_lanes;
  evaluator_.Forget();
  if (ir::IsAtomic(op_.opcode)) return EmitAtomic(chunk);
  llvm::Value* value = evaluator_.EvaluateBroadcast(op_.operands[0], chunk);
  if (target_.has_value()) {
    const Access::Positions positions = evaluator_.EvaluatePositions(op_, *target_, chunk);
    llvm::Value* mask = evaluator_.EvaluateBroadcast(op_.operands[1], chunk);
    target_->Store(chunk, positions, mask, value, is_streamed_);
  } else {
    StoreHeld(env_, held_, type_, chunk, value);
  }
}

void Statement::EmitAtomic(const Chunk& chunk) {
  llvm::SmallVector<llvm::Value*, 2> operands;
  for (ir::ValueId operand : op_.operands) {
    operands.push_back(evaluator_.EvaluateBroadcast(operand, chunk));
  }
  llvm::Value* before =
      target_->Atomic(chunk, evaluator_.EvaluatePositions(op_, *target_, chunk), operands);
  if (held_ != nullptr) StoreHeld(env_, held_, type_, chunk, before);
}

}  // namespace

void EmitTileStatement(const Environment& environment, const ir::Op& op) {
  if (op.opcode == ir::Opcode::kStage) {
    const ir::Op& held = *environment.definitions[op.operands[0]];
    if (held.opcode == ir::Opcode::kTranspose) return EmitTranspose(environment, op);
    if (held.opcode == ir::Opcode::kJoin || held.opcode == ir::Opcode::kInterleave) {
      return EmitPair(environment, op);
    }
  }
  Statement(environment, op).Emit();
}

}  // namespace phobos::compiler::host
