// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/tile/statement.h"

#include <algorithm>
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

constexpr int64_t kLeastStreamed = 16;  // bytes that there is an instruction for

// One statement, while it is emitted.
class Statement {
 public:
  Statement(const Environment& environment, const ir::Op& op);
  void Emit();

 private:
  // Where a row is streamed, the first `past` elements of the line that it begins in lie before it,
  // and [first, first + whole) are whole lines and whole vectors. Where it is not: past and first
  // are 0, and `whole` is all of it.
  struct Lines {
    llvm::Value* is_streamed = nullptr;  // i1
    llvm::Value* past = nullptr;         // elements, as the other two; i64
    llvm::Value* first = nullptr;
    llvm::Value* whole = nullptr;
  };

  llvm::Value* PrepareAccesses();
  llvm::Value* StreamCondition() const;
  void PreparePrefix();

  void EmitSides(size_t side, Chunk chunk);
  void EmitInnermost(const Chunk& chunk);
  void EmitWhole(const Chunk& chunk, llvm::Value* end, unsigned unroll);
  Lines PrepareLines(const Chunk& row, llvm::Value* end) const;
  void EmitLines(const Chunk& chunk, const Lines& lines, bool are_streamed);
  void EmitEnds(Chunk chunk, const Lines& lines, llvm::Value* end);
  void EmitInnermostClipped(Chunk chunk);
  void EmitChunk(Chunk chunk, llvm::Value* index, unsigned valid_lanes);
  void EmitAtomic(const Chunk& chunk);

  const Environment& env_;
  llvm::IRBuilder<>& b_;
  const ir::Op& op_;              // a kStage of an atomic's result: the atomic
  const ir::Type type_;           // of the tile that is stored
  const int lane_side_;           // its last long one
  const int64_t length_;          // of that
  const int64_t bytes_;           // of an element
  llvm::Value* held_ = nullptr;   // where it is stored, unless to a tensor
  std::optional<Access> target_;  // the tensor's; beside held_, of an atomic with a result
  Evaluator evaluator_;
  unsigned lanes_ = 1;
  unsigned unroll_ = 1;
  llvm::Value* stream_ = nullptr;  // i1: whether to store past the caches; null: never
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
      bytes_(ir::ByteSize(type_.dtype)),
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

// i1, or null where stores past the caches are out of the question.
llvm::Value* Statement::StreamCondition() const {
  if (!target_.has_value() || env_.is_streamed[op_.index] == nullptr) return nullptr;
  if (lanes_ * bytes_ < kLeastStreamed || length_ < 2 * int64_t{lanes_}) return nullptr;
  if (op_.operands[1] != ir::kNoValue || target_->gather_side_count() > 0) return nullptr;
  if (!target_->IsContiguousAlong(lane_side_)) return nullptr;
  return env_.is_streamed[op_.index];
}

void Statement::Emit() {
  llvm::Value* inside = PrepareAccesses();
  stream_ = StreamCondition();
  Chunk chunk;
  chunk.indices.resize(type_.shape.size());
  evaluator_.EmitBothWays(inside, [&](bool is_inside) {
    chunk.is_inside = is_inside;
    if (!is_inside) {
      if (target_.has_value()) target_->PrepareRanges();
      PreparePrefix();
    }
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

void Statement::EmitInnermost(const Chunk& chunk) {
  const int64_t turn = int64_t{lanes_} * unroll_;
  const int64_t whole = length_ / turn * turn;
  if (whole > 0) EmitWhole(chunk, env_.Int(whole), unroll_);
  if (whole < length_) EmitChunk(chunk, env_.Int(whole), static_cast<unsigned>(length_ - whole));
}

// The chunks of [0, end) of a row, which is inside, `unroll` a turn. REQUIRES: whole turns.
void Statement::EmitWhole(const Chunk& chunk, llvm::Value* end, unsigned unroll) {
  const int64_t turn = int64_t{lanes_} * unroll;
  auto emit_turn = [&](llvm::Value* start) {
    for (unsigned u = 0; u < unroll; ++u) {
      EmitChunk(chunk, b_.CreateAdd(start, env_.Int(int64_t{u} * lanes_)), lanes_);
    }
  };
  auto emit_plain = [&] {
    if (end == env_.Int(turn)) return emit_turn(env_.Int(0));
    env_.Loop(env_.Int(0), end, turn, emit_turn);
  };
  if (stream_ == nullptr) return emit_plain();
  const Lines lines = PrepareLines(chunk, end);
  if (evaluator_.cost() > kDear) {
    EmitLines(chunk, lines, /*are_streamed=*/false);
    return EmitEnds(chunk, lines, end);
  }
  env_.Branch(
      lines.is_streamed,
      [&] {
        EmitLines(chunk, lines, /*are_streamed=*/true);
        EmitEnds(chunk, lines, end);
      },
      emit_plain);
}

Statement::Lines Statement::PrepareLines(const Chunk& row, llvm::Value* end) const {
  Chunk start = row;
  start.indices[lane_side_] = env_.Int(0);
  llvm::Value* address = target_->AddressOf(start);
  llvm::Value* past =
      b_.CreateAnd(b_.CreatePtrToInt(address, b_.getInt64Ty()), env_.Int(kLineBytes - 1));
  const int64_t unit = std::max<int64_t>(kLineBytes / bytes_, lanes_);
  Lines lines;
  lines.is_streamed = env_.IsRowStreamed(op_, address, end);
  past = b_.CreateUDiv(past, env_.Int(bytes_));
  lines.past = b_.CreateSelect(lines.is_streamed, past, env_.Int(0));
  lines.first = b_.CreateSelect(b_.CreateIsNull(lines.past), env_.Int(0),
                                b_.CreateSub(env_.Int(unit), lines.past));
  llvm::Value* behind = b_.CreateSub(end, lines.first);
  lines.whole = b_.CreateSelect(lines.is_streamed, b_.CreateAnd(behind, env_.Int(-unit)), behind);
  return lines;
}

// The whole lines of a row that is inside; whether they are streamed is asked for each chunk unless
// they all are.
void Statement::EmitLines(const Chunk& chunk, const Lines& lines, bool are_streamed) {
  llvm::Value* end = b_.CreateAdd(lines.first, lines.whole);
  env_.Loop(lines.first, end, lanes_, [&](llvm::Value* index) {
    Chunk part = chunk;
    part.indices[lane_side_] = index;
    part.valid_lanes = lanes_;
    evaluator_.Forget();
    llvm::Value* value = evaluator_.EvaluateBroadcast(op_.operands[0], part);
    env_.Branch(
        are_streamed ? nullptr : lines.is_streamed, [&] { target_->Stream(part, value); },
        [&] { target_->Store(part, {}, nullptr, value); });
  });
}

// What is of the row in the lines at its ends, the rest of which is other rows'. Vectors are where
// they are aligned there too: a store of some lanes of one that lies across two lines would wait
// for both.
void Statement::EmitEnds(Chunk chunk, const Lines& lines, llvm::Value* end) {
  chunk.valid_lanes = lanes_;
  env_.Loop(b_.CreateNeg(lines.past), b_.CreateSub(end, lines.whole), lanes_, [&](llvm::Value* at) {
    llvm::Value* index =
        b_.CreateSelect(b_.CreateICmpSLT(at, lines.first), at, b_.CreateAdd(at, lines.whole));
    llvm::Type* i32 = b_.getInt32Ty();
    auto splat = [&](llvm::Value* v) {
      return b_.CreateVectorSplat(lanes_, b_.CreateTrunc(v, i32));
    };
    llvm::Value* lane =
        b_.CreateAdd(splat(index), b_.CreateStepVector(llvm::FixedVectorType::get(i32, lanes_)));
    chunk.indices[lane_side_] = index;
    chunk.wanted = b_.CreateICmpULT(lane, splat(end));
    evaluator_.Forget();
    llvm::Value* value = evaluator_.EvaluateBroadcast(op_.operands[0], chunk);
    target_->Store(chunk, {}, nullptr, value);
  });
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
    EmitWhole(part, inside, /*unroll=*/1);
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
    target_->Store(chunk, positions, mask, value);
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
