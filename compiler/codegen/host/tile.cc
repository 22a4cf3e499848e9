// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/tile.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/host/access.h"
#include "compiler/codegen/kernel/held_memory.h"
#include "compiler/passes/cost.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::host {
namespace {

constexpr unsigned kMaxLanes = 64;

// One statement, while it is emitted.
class Statement {
 public:
  Statement(const Environment& environment, const ir::Op& op);
  void Emit();

 private:
  // A value at a place: what is known already of the chunk that is being emitted.
  using Known = std::tuple<ir::ValueId, bool, std::vector<llvm::Value*>>;

  void Collect(ir::ValueId value);
  void CollectOperands(const ir::Op& op);
  void ChooseLanes();
  llvm::Value* PrepareAccesses();
  llvm::Value* StreamCondition() const;

  void EmitSides(size_t side, Chunk chunk);
  void EmitInnermost(Chunk chunk);
  void EmitInnermostClipped(Chunk chunk);
  void EmitChunk(Chunk chunk, llvm::Value* index, unsigned valid_lanes);

  llvm::Value* Evaluate(ir::ValueId value, const Chunk& chunk);
  llvm::Value* EvaluateNew(const ir::Op& op, const Chunk& chunk);
  // The same as a vector or scalar of the chunk, whatever the value's own shape is.
  llvm::Value* EvaluateBroadcast(ir::ValueId value, const Chunk& chunk);
  llvm::Value* EvaluateOptional(ir::ValueId value, const Chunk& chunk);
  Access::Positions EvaluatePositions(const ir::Op& op, const Access& access, const Chunk& chunk);
  llvm::Value* EvaluateIota(const Chunk& chunk);
  llvm::Value* HeldAddress(llvm::Value* start, const ir::Type& type, const Chunk& chunk) const;
  llvm::Value* LoadHeld(llvm::Value* start, const ir::Type& type, const Chunk& chunk) const;
  void StoreHeld(llvm::Value* start, const ir::Type& type, const Chunk& chunk,
                 llvm::Value* value) const;

  const Environment& env_;
  llvm::IRBuilder<>& b_;
  const ir::Op& op_;
  const ir::Type type_;           // of the tile that is stored
  llvm::Value* held_ = nullptr;   // where it is stored, unless to a tensor
  std::optional<Access> target_;  // the tensor's
  std::map<ir::ValueId, std::optional<Access>> loads_;
  std::vector<bool> collected_;
  int cost_ = 0;
  int float_bytes_ = 0;  // the widest float and integer in the statement
  int integer_bytes_ = 1;
  unsigned lanes_ = 1;
  unsigned unroll_ = 1;
  bool is_streamed_ = false;
  std::map<Known, llvm::Value*> known_;
};

Statement::Statement(const Environment& environment, const ir::Op& op)
    : env_(environment),
      b_(environment.builder),
      op_(op),
      type_(codegen::StoredType(environment.function, op)),
      collected_(environment.definitions.size()) {
  if (op.opcode == ir::Opcode::kStage) {
    held_ = env_.held_tiles[op.result];
  } else if (op.opcode != ir::Opcode::kStore) {
    held_ = env_.variables[op.index];
  }
}

void Statement::CollectOperands(const ir::Op& op) {
  for (ir::ValueId operand : op.operands) {
    if (operand != ir::kNoValue) Collect(operand);
  }
  for (const ir::Subscript& subscript : op.subscripts) {
    if (subscript.kind == ir::Subscript::Kind::kGather) Collect(subscript.position);
  }
}

// Finds the loads of the statement and how much it computes on what.
void Statement::Collect(ir::ValueId value) {
  const ir::Op& op = *env_.definitions[value];
  if (op.type.is_scalar() || collected_[value]) return;
  collected_[value] = true;
  cost_ += passes::Cost(op);
  const int bytes = ir::ByteSize(op.type.dtype);
  if (ir::IsFloat(op.type.dtype)) {
    float_bytes_ = std::max({float_bytes_, bytes, 4});
  } else {
    integer_bytes_ = std::max(integer_bytes_, bytes);
  }
  if (op.opcode == ir::Opcode::kLoad) loads_[value];
  if (op.opcode != ir::Opcode::kStage) CollectOperands(op);
}

// A vector register of the widest float, or of the widest integer where there is no float: i64
// index arithmetic beside floats is computed in several registers. Cheap statements take more
// vectors a turn; a costly one has work enough to overlap with the next turn's.
void Statement::ChooseLanes() {
  const int bytes = float_bytes_ > 0 ? float_bytes_ : integer_bytes_;
  const uint64_t side = static_cast<uint64_t>(type_.shape.back());
  const uint64_t whole = static_cast<uint64_t>(env_.vector_bytes / bytes);
  lanes_ = static_cast<unsigned>(
      std::clamp<uint64_t>(std::min(whole, llvm::bit_ceil(side)), 2, kMaxLanes));
  unroll_ = cost_ <= 8 ? 4 : cost_ <= 16 ? 2 : 1;
  while (unroll_ > 1 && side % (uint64_t{lanes_} * unroll_) != 0) unroll_ /= 2;
}

llvm::Value* Statement::PrepareAccesses() {
  llvm::Value* inside = nullptr;
  for (auto& [value, access] : loads_) {
    access.emplace(env_, *env_.definitions[value]);
    inside = env_.And(inside, access->inside());
  }
  if (op_.opcode == ir::Opcode::kStore) {
    target_.emplace(env_, op_);
    inside = env_.And(inside, target_->inside());
  }
  return inside == nullptr ? b_.getTrue() : inside;
}

// i1, or null where streaming stores are out of the question.
llvm::Value* Statement::StreamCondition() const {
  if (!target_.has_value() || env_.is_streamed[op_.index] == nullptr) return nullptr;
  const unsigned chunk_bytes = lanes_ * static_cast<unsigned>(ir::ByteSize(type_.dtype));
  if (chunk_bytes < 16 || type_.shape.size() != 1 || type_.shape[0] % lanes_ != 0) return nullptr;
  if (op_.operands[1] != ir::kNoValue || !target_->IsContiguousAlong(0) || cost_ > 16) {
    return nullptr;
  }
  return b_.CreateAnd(env_.is_streamed[op_.index], target_->IsAligned(chunk_bytes));
}

void Statement::Emit() {
  CollectOperands(op_);
  ChooseLanes();
  llvm::Value* inside = PrepareAccesses();
  Chunk chunk;
  chunk.indices.resize(type_.shape.size());
  auto emit_inside = [&] {
    chunk.is_inside = true;
    llvm::Value* stream = StreamCondition();
    if (stream == nullptr) {
      EmitSides(0, chunk);
      return;
    }
    env_.Branch(
        stream,
        [&] {
          is_streamed_ = true;
          EmitSides(0, chunk);
          is_streamed_ = false;
        },
        [&] { EmitSides(0, chunk); });
  };
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(inside);
      constant != nullptr && constant->isOne()) {
    emit_inside();
    return;
  }
  env_.Branch(inside, emit_inside, [&] {
    chunk.is_inside = false;
    for (auto& [value, access] : loads_) access->PrepareRanges();
    if (target_.has_value()) target_->PrepareRanges();
    EmitSides(0, chunk);
  });
}

// A loop over each side but the last.
void Statement::EmitSides(size_t side, Chunk chunk) {
  if (side + 1 == type_.shape.size()) {
    chunk.lane_side = static_cast<int>(side);
    chunk.lanes = lanes_;
    chunk.is_inside ? EmitInnermost(chunk) : EmitInnermostClipped(chunk);
    return;
  }
  if (type_.shape[side] == 1) {
    chunk.indices[side] = env_.Int(0);
    EmitSides(side + 1, chunk);
    return;
  }
  env_.Loop(env_.Int(0), env_.Int(type_.shape[side]), 1, [&](llvm::Value* index) {
    chunk.indices[side] = index;
    EmitSides(side + 1, chunk);
  });
}

void Statement::EmitInnermost(Chunk chunk) {
  const int64_t side = type_.shape.back();
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
  const int64_t side = type_.shape.back();
  const int64_t whole = side / lanes_ * lanes_;
  llvm::Value* begin = env_.Int(0);
  llvm::Value* end = env_.Int(whole);
  llvm::Value* has_rest = nullptr;
  if (target_.has_value()) {
    const Access::Range range = target_->RangeOf(chunk.lane_side);
    if (range.first != nullptr) {
      begin = b_.CreateAnd(range.first, env_.Int(-int64_t{lanes_}));
      has_rest = b_.CreateICmpSGT(range.end, env_.Int(whole));
      end = b_.CreateSelect(has_rest, end, range.end);
    }
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
  chunk.indices.back() = index;
  chunk.valid_lanes = valid_lanes;
  known_.clear();
  llvm::Value* value = Evaluate(op_.operands[0], chunk);
  if (target_.has_value()) {
    const Access::Positions positions = EvaluatePositions(op_, *target_, chunk);
    llvm::Value* mask = EvaluateOptional(op_.operands[1], chunk);
    target_->Store(chunk, positions, mask, value, is_streamed_);
  } else {
    StoreHeld(held_, type_, chunk, value);
  }
}

llvm::Value* Statement::Evaluate(ir::ValueId value, const Chunk& chunk) {
  const ir::Op& op = *env_.definitions[value];
  if (op.type.is_scalar()) return env_.scalars[value];
  const Known key(value, chunk.has_lanes(), {chunk.indices.begin(), chunk.indices.end()});
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  llvm::Value* made = EvaluateNew(op, chunk);
  known_[key] = made;
  return made;
}

llvm::Value* Statement::EvaluateNew(const ir::Op& op, const Chunk& chunk) {
  switch (op.opcode) {
    case ir::Opcode::kIota:
      return EvaluateIota(chunk);
    case ir::Opcode::kBroadcast:
      return EvaluateBroadcast(op.operands[0], chunk);
    case ir::Opcode::kStage:
      return LoadHeld(env_.held_tiles[op.result], op.type, chunk);
    case ir::Opcode::kReadVar:
      return LoadHeld(env_.variables[op.index], op.type, chunk);
    case ir::Opcode::kLoad: {
      const Access& access = *loads_[op.result];
      const Access::Positions positions = EvaluatePositions(op, access, chunk);
      llvm::Value* fill = EvaluateOptional(op.operands[0], chunk);
      return access.Load(chunk, positions, EvaluateOptional(op.operands[1], chunk), fill);
    }
    default: {
      llvm::SmallVector<llvm::Value*, 3> operands;
      for (ir::ValueId operand : op.operands) operands.push_back(Evaluate(operand, chunk));
      const ir::ValueId typed = op.operands[op.opcode == ir::Opcode::kSelect ? 1 : 0];
      return codegen::EmitElementwise(b_, op, env_.definitions[typed]->type.dtype, operands);
    }
  }
}

llvm::Value* Statement::EvaluateOptional(ir::ValueId value, const Chunk& chunk) {
  return value == ir::kNoValue ? nullptr : EvaluateBroadcast(value, chunk);
}

llvm::Value* Statement::EvaluateBroadcast(ir::ValueId value, const Chunk& chunk) {
  const std::vector<int64_t>& shape = env_.definitions[value]->type.shape;
  const size_t skipped = chunk.indices.size() - shape.size();
  Chunk part = chunk;
  part.indices.assign(chunk.indices.begin() + skipped, chunk.indices.end());
  part.lane_side = chunk.has_lanes() ? chunk.lane_side - static_cast<int>(skipped) : Chunk::kNoSide;
  if (part.lane_side < 0) part.lane_side = Chunk::kNoSide;
  for (size_t side = 0; side < shape.size(); ++side) {
    if (shape[side] != 1) continue;
    part.indices[side] = env_.Int(0);
    if (part.lane_side == static_cast<int>(side)) part.lane_side = Chunk::kNoSide;
  }
  llvm::Value* result = Evaluate(value, part);
  if (chunk.has_lanes() && !result->getType()->isVectorTy()) {
    result = b_.CreateVectorSplat(chunk.lanes, result);
  }
  return result;
}

Access::Positions Statement::EvaluatePositions(const ir::Op& op, const Access& access,
                                               const Chunk& chunk) {
  Access::Positions positions;
  Chunk part = chunk;
  const auto first = chunk.indices.begin() + access.gather_side();
  part.indices.assign(first, first + access.gather_side_count());
  part.lane_side = chunk.lane_side - access.gather_side();
  if (part.lane_side < 0 || part.lane_side >= access.gather_side_count()) {
    part.lane_side = Chunk::kNoSide;
  }
  for (const ir::Subscript& subscript : op.subscripts) {
    if (subscript.kind == ir::Subscript::Kind::kGather) {
      positions.push_back(EvaluateBroadcast(subscript.position, part));
    }
  }
  return positions;
}

llvm::Value* Statement::EvaluateIota(const Chunk& chunk) {
  if (!chunk.has_lanes()) return chunk.indices[0];
  return b_.CreateAdd(
      b_.CreateVectorSplat(chunk.lanes, chunk.indices[0]),
      b_.CreateStepVector(llvm::FixedVectorType::get(b_.getInt64Ty(), chunk.lanes)));
}

llvm::Value* Statement::HeldAddress(llvm::Value* start, const ir::Type& type,
                                    const Chunk& chunk) const {
  llvm::Value* offset = chunk.indices[0];
  for (size_t side = 1; side < type.shape.size(); ++side) {
    offset = b_.CreateAdd(b_.CreateMul(offset, env_.Int(type.shape[side])), chunk.indices[side]);
  }
  return b_.CreateGEP(codegen::MemoryType(b_.getContext(), type.dtype), start, offset);
}

llvm::Value* Statement::LoadHeld(llvm::Value* start, const ir::Type& type,
                                 const Chunk& chunk) const {
  llvm::Type* element = codegen::MemoryType(b_.getContext(), type.dtype);
  llvm::Type* loaded =
      chunk.has_lanes() ? llvm::FixedVectorType::get(element, chunk.lanes) : element;
  llvm::Value* value = b_.CreateAlignedLoad(loaded, HeldAddress(start, type, chunk),
                                            llvm::Align(ir::ByteSize(type.dtype)));
  return type.dtype == ir::DType::kBool ? b_.CreateIsNotNull(value) : value;
}

void Statement::StoreHeld(llvm::Value* start, const ir::Type& type, const Chunk& chunk,
                          llvm::Value* value) const {
  const llvm::Align align(ir::ByteSize(type.dtype));
  llvm::Type* element = codegen::MemoryType(b_.getContext(), type.dtype);
  llvm::Value* address = HeldAddress(start, type, chunk);
  if (type.dtype == ir::DType::kBool) {
    value = b_.CreateZExt(value, codegen::WithLanesOf(element, value->getType()));
  }
  if (chunk.valid_lanes == chunk.lanes || type.shape.size() == 1) {
    b_.CreateAlignedStore(value, address, align);
    return;
  }
  // The next row begins behind the last valid lane: only those are stored, in pieces.
  unsigned done = 0;
  for (unsigned piece = chunk.lanes / 2; piece > 0; piece /= 2) {
    if ((chunk.valid_lanes & piece) == 0) continue;
    llvm::SmallVector<int, kMaxLanes> lanes(piece);
    for (unsigned i = 0; i < piece; ++i) lanes[i] = static_cast<int>(done + i);
    b_.CreateAlignedStore(b_.CreateShuffleVector(value, lanes),
                          b_.CreateGEP(element, address, env_.Int(done)), align);
    done += piece;
  }
}

}  // namespace

void EmitTileStatement(const Environment& environment, const ir::Op& op) {
  Statement(environment, op).Emit();
}

int64_t HeldBytes(const ir::Type& type) {
  const int64_t bytes = (type.elements() + kMaxLanes) * ir::ByteSize(type.dtype);
  return (bytes + 63) / 64 * 64;
}

}  // namespace phobos::compiler::host
