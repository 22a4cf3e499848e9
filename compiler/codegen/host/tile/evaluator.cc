// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/tile/evaluator.h"

#include <algorithm>
#include <utility>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/host/tile/held.h"
#include "compiler/ir/shape.h"
#include "compiler/passes/cost.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::host {

void Evaluator::CollectOperands(const ir::Op& op) {
  is_store_ |= op.opcode == ir::Opcode::kStore;
  for (ir::ValueId operand : op.operands) {
    if (operand != ir::kNoValue) Collect(operand);
  }
  for (const ir::Subscript& subscript : op.subscripts) {
    if (subscript.kind == ir::Subscript::Kind::kGather) Collect(subscript.position);
  }
}

void Evaluator::Collect(ir::ValueId value) {
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

unsigned Evaluator::LanesFor(int64_t length) const {
  const int bytes = float_bytes_ > 0 ? float_bytes_ : integer_bytes_;
  const uint64_t whole = static_cast<uint64_t>(env_.chip.vector_bytes / bytes);
  const uint64_t wanted = llvm::bit_ceil(static_cast<uint64_t>(length));
  return static_cast<unsigned>(std::clamp<uint64_t>(std::min(whole, wanted), 2, kMaxLanes));
}

llvm::Value* Evaluator::PrepareLoads() {
  llvm::Value* inside = nullptr;
  for (auto& [value, access] : loads_) {
    access.emplace(env_, *env_.definitions[value]);
    inside = env_.And(inside, access->inside());
    PrepareAhead(*env_.definitions[value], *access);
    env_.was_read[value] = true;
  }
  return inside;
}

void Evaluator::EmitBothWays(llvm::Value* inside, llvm::function_ref<void(bool)> body) {
  const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(inside);
  if (constant != nullptr && constant->isOne()) inside = nullptr;
  env_.Branch(
      inside, [&] { body(true); },
      [&] {
        PrepareRanges();
        body(false);
      });
}

void Evaluator::EmitPlaces(const std::vector<int64_t>& shape, int one, int other, Chunk chunk,
                           llvm::function_ref<void(const Chunk&)> body) const {
  chunk.indices.resize(shape.size());
  EmitPlacesFrom(0, shape, one, other, std::move(chunk), body);
}

void Evaluator::EmitPlacesFrom(size_t side, const std::vector<int64_t>& shape, int one, int other,
                               Chunk chunk, llvm::function_ref<void(const Chunk&)> body) const {
  if (side == shape.size()) return body(chunk);
  if (static_cast<int>(side) == one || static_cast<int>(side) == other) {
    return EmitPlacesFrom(side + 1, shape, one, other, std::move(chunk), body);
  }
  env_.Loop(env_.Int(0), env_.Int(shape[side]), 1, [&](llvm::Value* index) {
    chunk.indices[side] = index;
    EmitPlacesFrom(side + 1, shape, one, other, chunk, body);
  });
}

void Evaluator::TraceLanes(ir::ValueId value, size_t rank, int lane_side) {
  if (value == ir::kNoValue) return;
  const std::vector<int64_t>& shape = env_.definitions[value]->type.shape;
  const int side = lane_side - static_cast<int>(rank - shape.size());
  TraceLanesOf(value, side >= 0 && shape[side] > 1 ? side : Chunk::kNoSide);
}

void Evaluator::TraceLanesOf(ir::ValueId value, int lane_side) {
  const ir::Op& op = *env_.definitions[value];
  const std::vector<int64_t>& shape = op.type.shape;
  if (op.type.is_scalar() || !lane_sides_.insert({value, lane_side}).second) return;
  switch (op.opcode) {
    case ir::Opcode::kStage:
    case ir::Opcode::kReadVar:
    case ir::Opcode::kIota:
      return;
    case ir::Opcode::kReshape: {
      const std::vector<int64_t>& from = env_.definitions[op.operands[0]]->type.shape;
      if (ir::LongSides(from) != ir::LongSides(shape)) return;  // of a tile in memory
      const std::vector<int> sides = ir::MapLongSides(from, shape);
      const auto found = std::find(sides.begin(), sides.end(), lane_side);
      const bool has_lanes = lane_side != Chunk::kNoSide && found != sides.end();
      TraceLanesOf(op.operands[0],
                   has_lanes ? static_cast<int>(found - sides.begin()) : Chunk::kNoSide);
      return;
    }
    default:
      for (ir::ValueId operand : op.operands) TraceLanes(operand, shape.size(), lane_side);
      for (const ir::Subscript& subscript : op.subscripts) {
        TraceLanesOf(subscript.position, Chunk::kNoSide);
      }
  }
}

llvm::Value* Evaluator::PreparePrefix(int64_t length, const Access* target, int lane_side) const {
  llvm::Value* is_inside = nullptr;
  llvm::Value* elements = nullptr;
  auto shorten = [&](const Access& access, int side) {
    const Access::Reach reach = access.ReachAlong(side);
    is_inside = env_.And(is_inside, reach.is_inside);
    if (reach.elements == nullptr) return;
    elements = elements == nullptr
                   ? reach.elements
                   : b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, elements, reach.elements);
  };
  bool has_rows = false;
  for (const auto& [value, access] : loads_) {
    const ir::Op& load = *env_.definitions[value];
    if (access->gather_side_count() > 0) return nullptr;
    has_rows |= load.subscripts.size() > 1;
    // Where lanes run along several sides of it, in several places, all of it has to be inside.
    std::set<int> sides;
    for (const auto& [traced, side] : lane_sides_) {
      if (traced == value) sides.insert(side);
    }
    shorten(*access, sides.size() == 1 ? *sides.begin() : Chunk::kNoSide);
  }
  if (target != nullptr) {
    if (target->gather_side_count() > 0) return nullptr;
    has_rows |= target->dimensions() > 1;
    shorten(*target, lane_side);
  }
  if (!has_rows || elements == nullptr) return nullptr;
  elements = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, elements, env_.Int(0));
  elements = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, elements, env_.Int(length));
  return is_inside == nullptr ? elements : b_.CreateSelect(is_inside, elements, env_.Int(0));
}

void Evaluator::PrepareRanges() {
  for (auto& [value, access] : loads_) access->PrepareRanges();
}

llvm::Value* Evaluator::Evaluate(ir::ValueId value, const Chunk& chunk) {
  const ir::Op& op = *env_.definitions[value];
  if (op.type.is_scalar()) return env_.scalars[value];
  const Known key(value, chunk.has_lanes(), {chunk.indices.begin(), chunk.indices.end()});
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  llvm::Value* made = EvaluateNew(op, chunk);
  known_[key] = made;
  return made;
}

llvm::Value* Evaluator::EvaluateNew(const ir::Op& op, const Chunk& chunk) {
  switch (op.opcode) {
    case ir::Opcode::kIota:
      return EvaluateIota(chunk);
    case ir::Opcode::kBroadcast:
      return EvaluateBroadcast(op.operands[0], chunk);
    case ir::Opcode::kReshape:
      return EvaluateReshape(op, chunk);
    case ir::Opcode::kStage:
    case ir::Opcode::kReadVar:
      return LoadHeld(env_, HeldStart(env_, op), op.type, chunk);
    case ir::Opcode::kLoad:
      return EvaluateLoad(op, chunk);
    default: {
      llvm::SmallVector<llvm::Value*, 3> operands;
      for (ir::ValueId operand : op.operands) operands.push_back(Evaluate(operand, chunk));
      const ir::ValueId typed = op.operands[op.opcode == ir::Opcode::kSelect ? 1 : 0];
      return codegen::EmitElementwise(b_, op, env_.definitions[typed]->type.dtype, operands);
    }
  }
}

llvm::Value* Evaluator::EvaluateBroadcast(ir::ValueId value, const Chunk& chunk) {
  if (value == ir::kNoValue) return nullptr;
  const std::vector<int64_t>& shape = env_.definitions[value]->type.shape;
  const Chunk part = chunk.At(codegen::BeforeBroadcast(chunk, shape, env_.Int(0)));
  return Spread(Evaluate(value, part), chunk);
}

// The value of all lanes of a chunk that has some, where it is one for all of them.
llvm::Value* Evaluator::Spread(llvm::Value* value, const Chunk& chunk) {
  if (!chunk.has_lanes() || value->getType()->isVectorTy()) return value;
  return b_.CreateVectorSplat(chunk.lanes, value);
}

// The elements of a tile in memory are found by their place; those of any other tile, which has the
// same long sides, by their indices.
llvm::Value* Evaluator::EvaluateReshape(const ir::Op& op, const Chunk& chunk) {
  const ir::Op& operand = *env_.definitions[op.operands[0]];
  const std::vector<int64_t>& shape = operand.type.shape;
  if (ir::LongSides(shape) != ir::LongSides(op.type.shape)) {
    return LoadHeld(env_, HeldStart(env_, operand), op.type, chunk);
  }
  const Chunk part = chunk.At(codegen::BeforeReshape(chunk, shape, op.type.shape, env_.Int(0)));
  return Spread(Evaluate(op.operands[0], part), chunk);
}

// Where a tile is used several times and much is computed on it, an earlier statement has brought
// it into the cache as a rule, and memory would be idle meanwhile.
void Evaluator::PrepareAhead(const ir::Op& load, const Access& access) {
  if (cost_ <= kDear || !env_.was_read[load.result] || access.gather_side_count() > 0) return;
  Ahead& ahead = ahead_[load.result];
  ahead.bytes_to_next = BytesToNext(access);
  const ir::Op* store = is_store_ ? nullptr : env_.StoreBeside(load);
  if (store == nullptr) return;
  ahead.store.emplace(env_, *store);
  ahead.bytes_to_store = env_.Int(0);
  if (env_.is_streamed[store->index] == nullptr) return;
  // What goes past the caches must not be in them: then the load's own place is named once more.
  auto bits = [&](llvm::Value* address) { return b_.CreatePtrToInt(address, b_.getInt64Ty()); };
  llvm::Value* start = ahead.store->start();
  llvm::Value* row = env_.Int(load.type.shape[LaneSide(load.type.shape)]);
  ahead.bytes_to_store =
      b_.CreateSelect(env_.IsRowStreamed(*store, start, row),
                      b_.CreateSub(bits(access.start()), bits(start)), ahead.bytes_to_store);
}

// i64: how far the tile is from where it was when the statement ran before, which is where it will
// be the next time, as a rule; 0 the first time.
llvm::Value* Evaluator::BytesToNext(const Access& access) const {
  llvm::AllocaInst* before = env_.Slot(b_.getInt64Ty());
  llvm::IRBuilder<>(before->getNextNode()).CreateStore(env_.Int(0), before);
  llvm::Value* last = b_.CreateLoad(b_.getInt64Ty(), before);
  llvm::Value* start = b_.CreatePtrToInt(access.start(), b_.getInt64Ty());
  b_.CreateStore(start, before);
  return b_.CreateSelect(b_.CreateIsNull(last), env_.Int(0), b_.CreateSub(start, last));
}

// Addresses that are nobody's do no harm.
void Evaluator::Prefetch(const Access& access, const Chunk& chunk, llvm::Value* bytes_ahead) const {
  if (!access.IsContiguousAlong(chunk.lane_side)) return;
  llvm::Type* byte = b_.getInt8Ty();
  llvm::Value* address = b_.CreateGEP(byte, access.AddressOf(chunk), bytes_ahead);
  for (int64_t at = 0; at < chunk.lanes * access.element_bytes(); at += kLineBytes) {
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {b_.CreateConstGEP1_64(byte, address, at), /*read*/ b_.getInt32(0),
                        /*all caches*/ b_.getInt32(3), /*of data*/ b_.getInt32(1)});
  }
}

llvm::Value* Evaluator::EvaluateLoad(const ir::Op& op, const Chunk& chunk) {
  const Access& access = *loads_[op.result];
  const Access::Positions positions = EvaluatePositions(op, access, chunk);
  llvm::Value* fill = EvaluateBroadcast(op.operands[0], chunk);
  if (const auto ahead = ahead_.find(op.result); ahead != ahead_.end() && chunk.is_inside) {
    Prefetch(access, chunk, ahead->second.bytes_to_next);
    if (ahead->second.store.has_value()) {
      Prefetch(*ahead->second.store, chunk, ahead->second.bytes_to_store);
    }
  }
  return access.Load(chunk, positions, EvaluateBroadcast(op.operands[1], chunk), fill);
}

Access::Positions Evaluator::EvaluatePositions(const ir::Op& op, const Access& access,
                                               const Chunk& chunk) {
  Access::Positions positions;
  const Chunk part =
      chunk.At(codegen::AlongSides(chunk, access.gather_side(), access.gather_side_count()));
  for (const ir::Subscript& subscript : op.subscripts) {
    if (subscript.kind == ir::Subscript::Kind::kGather) {
      positions.push_back(EvaluateBroadcast(subscript.position, part));
    }
  }
  return positions;
}

llvm::Value* Evaluator::EvaluateIota(const Chunk& chunk) {
  if (!chunk.has_lanes()) return chunk.indices[0];
  return b_.CreateAdd(
      b_.CreateVectorSplat(chunk.lanes, chunk.indices[0]),
      b_.CreateStepVector(llvm::FixedVectorType::get(b_.getInt64Ty(), chunk.lanes)));
}

}  // namespace phobos::compiler::host
