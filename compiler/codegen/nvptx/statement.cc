// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/statement.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/nvptx/access.h"
#include "compiler/ir/shape.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::nvptx {
namespace {

// Of statements up to this price, so many elements are under way together where they are done one
// by one.
constexpr int kCheap = 8;
constexpr int64_t kElementBatch = 4;

// One statement, while it is emitted.
class StatementEmitter {
 public:
  StatementEmitter(Environment& environment, const Statement& statement);
  void Emit();

 private:
  // A value at a place: what is known already where code is being emitted.
  using Known = std::tuple<ir::ValueId, unsigned, std::vector<llvm::Value*>>;

  llvm::Value* PrepareAccesses();
  void EmitInside();
  void EmitClipped();
  void EmitTurns(const Layout& layout, int64_t unroll, bool is_inside);
  void EmitBatch(const Layout& layout, llvm::Value* turn, int64_t count, bool is_inside);
  void EmitRest(const Layout& layout, bool is_inside);
  void EmitElements(const std::vector<Place>& vectors, const Layout& layout, llvm::Value* exists);

  Place PlaceAt(const Layout& layout, llvm::Value* turn) const;
  void SetIndices(const Layout& layout, llvm::Value* turn, Place* place) const;
  Place ElementOf(const Place& vector, const Layout& layout, int64_t lane) const;

  // What is stored at a place, in code that knows nothing of other places.
  Fragment Compute(const Place& place);
  void StoreAt(const Place& place, const Fragment& value);

  Fragment Evaluate(ir::ValueId value, const Place& place);
  Fragment EvaluateNew(const ir::Op& op, const Place& place);
  Fragment EvaluateElementwise(const ir::Op& op, const Place& place);
  // The same at a place of a tile that the value is broadcast to.
  Fragment EvaluateBroadcast(ir::ValueId value, const Place& place);
  Fragment EvaluateReshape(const ir::Op& op, const Place& place);
  Fragment EvaluateOptional(ir::ValueId value, const Place& place);
  Fragment EvaluateLoad(const ir::Op& op, const Place& place);
  Access::Positions EvaluatePositions(const ir::Op& op, const Access& access, const Place& place);
  llvm::Value* HeldAddress(llvm::Value* start, const ir::Type& type, const Place& place,
                           unsigned lane) const;
  Fragment LoadHeld(llvm::Value* start, const ir::Type& type, const Place& place) const;
  void StoreHeld(const Place& place, const Fragment& value) const;

  Environment& env_;
  llvm::IRBuilder<>& b_;
  const Statement& statement_;
  const ir::Op& op_;
  const ir::Type type_;           // of the tile that is stored
  int lane_side_ = 0;             // the last long side
  llvm::Value* held_ = nullptr;   // where it is stored, unless to a tensor
  std::optional<Access> target_;  // the tensor's
  std::map<ir::ValueId, std::optional<Access>> loads_;
  std::map<Known, Fragment> known_;
};

StatementEmitter::StatementEmitter(Environment& environment, const Statement& statement)
    : env_(environment),
      b_(environment.builder),
      statement_(statement),
      op_(*statement.op),
      type_(codegen::StoredType(environment.function, *statement.op)) {
  for (size_t side = 0; side < type_.shape.size(); ++side) {
    if (type_.shape[side] > 1) lane_side_ = static_cast<int>(side);
  }
  if (op_.opcode == ir::Opcode::kStage) {
    held_ = env_.held_tiles[op_.result];
  } else if (op_.opcode != ir::Opcode::kStore) {
    held_ = env_.variables[op_.index];
  }
}

// i1: all slices are inside their tensors and vectors are aligned; null: they are.
llvm::Value* StatementEmitter::PrepareAccesses() {
  const auto lanes = static_cast<unsigned>(statement_.layout.vector);
  llvm::Value* inside = nullptr;
  llvm::Value* misaligned = nullptr;
  auto add = [&](Access& access) {
    inside = env_.And(inside, access.inside());
    llvm::Value* bits = access.Misalignment(lanes);
    if (bits == nullptr) return;
    misaligned = misaligned == nullptr ? bits : b_.CreateOr(misaligned, bits);
  };
  for (const ir::Op* load : statement_.loads) {
    std::optional<Access>& access = loads_[load->result];
    access.emplace(env_, *load);
    add(*access);
  }
  if (op_.opcode == ir::Opcode::kStore) {
    target_.emplace(env_, op_);
    add(*target_);
  }
  if (misaligned != nullptr) inside = env_.And(inside, b_.CreateIsNull(misaligned));
  return inside;
}

void StatementEmitter::Emit() {
  llvm::Value* inside = PrepareAccesses();
  const auto* constant = inside == nullptr ? nullptr : llvm::dyn_cast<llvm::ConstantInt>(inside);
  if (inside == nullptr || (constant != nullptr && constant->isOne())) return EmitInside();
  env_.Branch(
      inside, [&] { EmitInside(); }, [&] { EmitClipped(); });
}

void StatementEmitter::EmitInside() {
  EmitTurns(statement_.layout, statement_.unroll, /*is_inside=*/true);
}

// Where a part may lie outside, or vectors are not aligned: element by element. Unless another
// statement counts on the layout, neighbouring threads take neighbouring elements.
void StatementEmitter::EmitClipped() {
  for (auto& [value, access] : loads_) access->PrepareRanges();
  if (target_.has_value()) target_->PrepareRanges();
  if (statement_.keeps_layout) {
    const bool in_registers = statement_.unroll == statement_.layout.turns();
    return EmitTurns(statement_.layout, in_registers ? statement_.unroll : 1, /*is_inside=*/false);
  }
  Layout single = statement_.layout;
  single.vector = 1;
  const int64_t unroll = statement_.cost <= kCheap ? kElementBatch : 1;
  EmitTurns(single, std::min(unroll, single.turns()), /*is_inside=*/false);
}

void StatementEmitter::EmitTurns(const Layout& layout, int64_t unroll, bool is_inside) {
  const int64_t whole = layout.whole_turns();
  const int64_t batched = whole / unroll * unroll;
  if (batched == unroll) {
    EmitBatch(layout, env_.Int32(0), unroll, is_inside);
  } else if (batched > 0) {
    env_.Loop(env_.Int32(0), env_.Int32(batched), unroll,
              [&](llvm::Value* turn) { EmitBatch(layout, turn, unroll, is_inside); });
  }
  if (batched < whole) EmitBatch(layout, env_.Int32(batched), whole - batched, is_inside);
  if (layout.rest() > 0) EmitRest(layout, is_inside);
}

// Turns in which every thread has a vector. What a few of them store is computed before any of it
// is stored, so that their loads are under way together.
void StatementEmitter::EmitBatch(const Layout& layout, llvm::Value* turn, int64_t count,
                                 bool is_inside) {
  std::vector<Place> places;
  for (int64_t i = 0; i < count; ++i) {
    places.push_back(PlaceAt(layout, b_.CreateNSWAdd(turn, env_.Int32(i))));
    places.back().is_inside = is_inside;
  }
  if (!is_inside) return EmitElements(places, layout, nullptr);
  const auto batch = static_cast<size_t>(statement_.batch);
  for (size_t first = 0; first < places.size(); first += batch) {
    const size_t end = std::min(first + batch, places.size());
    std::vector<Fragment> values;
    for (size_t i = first; i < end; ++i) values.push_back(Compute(places[i]));
    for (size_t i = first; i < end; ++i) StoreAt(places[i], values[i - first]);
  }
}

// The last turn, in which only some threads have a vector.
void StatementEmitter::EmitRest(const Layout& layout, bool is_inside) {
  Place place = PlaceAt(layout, env_.Int32(layout.whole_turns()));
  place.is_inside = is_inside;
  llvm::Value* exists = b_.CreateICmpULT(env_.thread, env_.Int32(layout.rest() / layout.vector));
  if (!is_inside) return EmitElements({place}, layout, exists);
  env_.Branch(
      exists, [&] { StoreAt(place, Compute(place)); }, [] {});
}

// The elements of vectors one by one, each if it exists (null: it does) and would be stored.
void StatementEmitter::EmitElements(const std::vector<Place>& vectors, const Layout& layout,
                                    llvm::Value* exists) {
  std::vector<Place> places;
  std::vector<llvm::Value*> wanted;
  for (const Place& vector : vectors) {
    for (int64_t lane = 0; lane < layout.vector; ++lane) {
      places.push_back(ElementOf(vector, layout, lane));
      llvm::Value* inside = target_.has_value() ? target_->IsInside(places.back()) : nullptr;
      wanted.push_back(env_.And(exists, inside));
    }
  }
  const size_t batch = statement_.cost <= kCheap ? kElementBatch : 1;
  llvm::Value* nothing = llvm::PoisonValue::get(codegen::ElementType(b_.getContext(), type_.dtype));
  for (size_t first = 0; first < places.size(); first += batch) {
    const size_t end = std::min(first + batch, places.size());
    std::vector<llvm::Value*> values;
    for (size_t i = first; i < end && batch > 1; ++i) {
      auto compute = [&] { return Compute(places[i])[0]; };
      values.push_back(env_.Choose(wanted[i], compute, nothing));
    }
    for (size_t i = first; i < end; ++i) {
      auto store = [&] {
        StoreAt(places[i], batch > 1 ? Fragment{values[i - first]} : Compute(places[i]));
      };
      env_.Branch(wanted[i], store, [] {});
    }
  }
}

Place StatementEmitter::PlaceAt(const Layout& layout, llvm::Value* turn) const {
  Place place;
  place.held = b_.CreateNSWMul(turn, env_.Int32(layout.vector));
  SetIndices(layout, turn, &place);
  if (layout.vector > 1) {
    place.lanes = static_cast<unsigned>(layout.vector);
    place.lane_side = lane_side_;
  }
  return place;
}

// The digits of (turn * threads + thread) * vector in base of the sides. Where a turn is a whole
// part of a side, those of the turn and of the thread do not meet, and the thread's are the same in
// each turn.
void StatementEmitter::SetIndices(const Layout& layout, llvm::Value* turn, Place* place) const {
  const std::vector<int64_t>& shape = type_.shape;
  llvm::Value* mine = b_.CreateNUWMul(env_.thread, env_.Int32(layout.vector));
  llvm::Value* before = b_.CreateMul(turn, env_.Int32(layout.turn()), "", true, true);
  bool meet = true;
  int64_t inner = 1;
  for (size_t side = shape.size(); side-- > 0 && inner <= layout.turn(); inner *= shape[side]) {
    if (layout.turn() % inner != 0) break;
    if (shape[side] % (layout.turn() / inner) == 0) meet = false;
  }
  auto digit = [&](llvm::Value* number, int64_t unit, size_t side) -> llvm::Value* {
    if (number == nullptr) return env_.Int32(0);
    if (unit > 1) number = b_.CreateUDiv(number, env_.Int32(unit));
    return unit * shape[side] < layout.elements ? b_.CreateURem(number, env_.Int32(shape[side]))
                                                : number;
  };
  if (meet) {
    mine = b_.CreateAdd(before, mine, "", true, true);
    before = nullptr;
  }
  place->indices.resize(shape.size());
  int64_t unit = 1;
  for (size_t side = shape.size(); side-- > 0; unit *= shape[side]) {
    if (shape[side] == 1) {
      place->indices[side] = env_.Int32(0);
      continue;
    }
    // Where they do not meet, the thread's digits are all below the turn's.
    llvm::Value* low = !meet && unit >= layout.turn() ? nullptr : mine;
    llvm::Value* high = layout.turn() % (unit * shape[side]) == 0 ? nullptr : before;
    place->indices[side] =
        b_.CreateAdd(digit(low, unit, side), digit(high, unit, side), "", true, true);
  }
}

Place StatementEmitter::ElementOf(const Place& vector, const Layout& layout, int64_t lane) const {
  if (layout.vector == 1) return vector;
  Place place = vector;
  place.lanes = 1;
  place.lane_side = Place::kNoSide;
  llvm::Value*& index = place.indices[lane_side_];
  index = b_.CreateAdd(index, env_.Int32(lane), "", true, true);
  place.held = b_.CreateNSWAdd(place.held, env_.Int32(lane));
  return place;
}

Fragment StatementEmitter::Compute(const Place& place) {
  known_.clear();
  return Evaluate(op_.operands[0], place);
}

void StatementEmitter::StoreAt(const Place& place, const Fragment& value) {
  if (!target_.has_value()) return StoreHeld(place, value);
  known_.clear();
  const Access::Positions positions = EvaluatePositions(op_, *target_, place);
  target_->Store(place, positions, EvaluateOptional(op_.operands[1], place), value);
}

Fragment StatementEmitter::Evaluate(ir::ValueId value, const Place& place) {
  const ir::Op& op = *env_.definitions[value];
  if (op.type.is_scalar()) return {env_.scalars[value]};
  Known key(value, place.lanes, {place.indices.begin(), place.indices.end()});
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  return known_[std::move(key)] = EvaluateNew(op, place);
}

Fragment StatementEmitter::EvaluateNew(const ir::Op& op, const Place& place) {
  switch (op.opcode) {
    case ir::Opcode::kIota: {
      Fragment numbers;
      for (unsigned lane = 0; lane < place.lanes; ++lane) {
        llvm::Value* number = b_.CreateAdd(place.indices[0], env_.Int32(lane), "", true, true);
        numbers.push_back(b_.CreateZExt(number, b_.getInt64Ty()));
      }
      return numbers;
    }
    case ir::Opcode::kBroadcast:
      return EvaluateBroadcast(op.operands[0], place);
    case ir::Opcode::kReshape:
      return EvaluateReshape(op, place);
    case ir::Opcode::kStage:
      return LoadHeld(env_.held_tiles[op.result], op.type, place);
    case ir::Opcode::kReadVar:
      return LoadHeld(env_.variables[op.index], op.type, place);
    case ir::Opcode::kLoad:
      return EvaluateLoad(op, place);
    default:
      return EvaluateElementwise(op, place);
  }
}

Fragment StatementEmitter::EvaluateElementwise(const ir::Op& op, const Place& place) {
  llvm::SmallVector<Fragment, 3> operands;
  size_t lanes = 1;
  for (ir::ValueId operand : op.operands) {
    operands.push_back(Evaluate(operand, place));
    lanes = std::max(lanes, operands.back().size());
  }
  const ir::ValueId typed = op.operands[op.opcode == ir::Opcode::kSelect ? 1 : 0];
  const ir::DType dtype = env_.definitions[typed]->type.dtype;
  Fragment result;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    llvm::SmallVector<llvm::Value*, 3> values;
    for (const Fragment& operand : operands) values.push_back(LaneOf(operand, lane));
    result.push_back(codegen::EmitElementwise(b_, op, dtype, values));
  }
  return result;
}

Fragment StatementEmitter::EvaluateOptional(ir::ValueId value, const Place& place) {
  return value == ir::kNoValue ? Fragment() : EvaluateBroadcast(value, place);
}

Fragment StatementEmitter::EvaluateBroadcast(ir::ValueId value, const Place& place) {
  const std::vector<int64_t>& shape = env_.definitions[value]->type.shape;
  const size_t skipped = place.indices.size() - shape.size();
  Place part = place;
  part.indices.assign(place.indices.begin() + skipped, place.indices.end());
  part.lane_side -= static_cast<int>(skipped);
  for (size_t side = 0; side < shape.size(); ++side) {
    if (shape[side] != 1) continue;
    part.indices[side] = env_.Int32(0);
    if (part.lane_side == static_cast<int>(side)) part.lane_side = Place::kNoSide;
  }
  if (part.lane_side < 0) {
    part.lane_side = Place::kNoSide;
    part.lanes = 1;
  }
  return Evaluate(value, part);
}

// Of tiles with the same long sides.
Fragment StatementEmitter::EvaluateReshape(const ir::Op& op, const Place& place) {
  const std::vector<int> sides =
      ir::MapLongSides(env_.definitions[op.operands[0]]->type.shape, op.type.shape);
  Place part = place;
  part.indices.clear();
  part.lane_side = Place::kNoSide;
  for (size_t side = 0; side < sides.size(); ++side) {
    part.indices.push_back(sides[side] < 0 ? env_.Int32(0) : place.indices[sides[side]]);
    if (sides[side] >= 0 && sides[side] == place.lane_side) part.lane_side = static_cast<int>(side);
  }
  if (part.lane_side == Place::kNoSide) part.lanes = 1;
  return Evaluate(op.operands[0], part);
}

Fragment StatementEmitter::EvaluateLoad(const ir::Op& op, const Place& place) {
  const Access& access = *loads_.at(op.result);
  const Access::Positions positions = EvaluatePositions(op, access, place);
  const Fragment fill = EvaluateOptional(op.operands[0], place);
  const Fragment mask = EvaluateOptional(op.operands[1], place);
  const bool is_tested = place.is_inside || (target_.has_value() && op.type.shape == type_.shape &&
                                             target_->Implies(access));
  return access.Load(place, is_tested, positions, mask, fill);
}

Access::Positions StatementEmitter::EvaluatePositions(const ir::Op& op, const Access& access,
                                                      const Place& place) {
  Access::Positions positions;
  Place part = place;
  const auto first = place.indices.begin() + access.gather_side();
  part.indices.assign(first, first + access.gather_side_count());
  part.lane_side = place.lane_side - access.gather_side();
  if (part.lane_side < 0 || part.lane_side >= access.gather_side_count()) {
    part.lane_side = Place::kNoSide;
    part.lanes = 1;
  }
  for (const ir::Subscript& subscript : op.subscripts) {
    if (subscript.kind == ir::Subscript::Kind::kGather) {
      positions.push_back(EvaluateBroadcast(subscript.position, part));
    }
  }
  return positions;
}

// In shared memory a tile lies whole, in row-major order; with a thread lies what it holds.
llvm::Value* StatementEmitter::HeldAddress(llvm::Value* start, const ir::Type& type,
                                           const Place& place, unsigned lane) const {
  const bool is_shared = start->getType()->getPointerAddressSpace() == kSharedSpace;
  llvm::Value* offset = place.held;
  if (is_shared) {
    offset = env_.Int32(0);
    for (size_t side = 0; side < type.shape.size(); ++side) {
      offset = b_.CreateMul(offset, env_.Int32(type.shape[side]), "", true, true);
      offset = b_.CreateAdd(offset, place.indices[side], "", true, true);
    }
  }
  offset = b_.CreateAdd(offset, env_.Int32(lane), "", true, true);
  llvm::Type* element = codegen::MemoryType(b_.getContext(), type.dtype);
  return b_.CreateGEP(element, start, b_.CreateZExt(offset, b_.getInt64Ty()));
}

Fragment StatementEmitter::LoadHeld(llvm::Value* start, const ir::Type& type,
                                    const Place& place) const {
  llvm::Type* element = codegen::MemoryType(b_.getContext(), type.dtype);
  Fragment loaded;
  for (unsigned lane = 0; lane < place.lanes; ++lane) {
    llvm::Value* value = b_.CreateAlignedLoad(element, HeldAddress(start, type, place, lane),
                                              llvm::Align(ir::ByteSize(type.dtype)));
    loaded.push_back(type.dtype == ir::DType::kBool ? b_.CreateIsNotNull(value) : value);
  }
  return loaded;
}

void StatementEmitter::StoreHeld(const Place& place, const Fragment& value) const {
  for (unsigned lane = 0; lane < place.lanes; ++lane) {
    llvm::Value* stored = LaneOf(value, lane);
    if (type_.dtype == ir::DType::kBool) stored = b_.CreateZExt(stored, b_.getInt8Ty());
    b_.CreateAlignedStore(stored, HeldAddress(held_, type_, place, lane),
                          llvm::Align(ir::ByteSize(type_.dtype)));
  }
}

}  // namespace

void EmitStatement(Environment& environment, const Statement& statement) {
  StatementEmitter(environment, statement).Emit();
}

}  // namespace phobos::compiler::nvptx
