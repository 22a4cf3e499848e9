// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/tile/turns.h"

#include <algorithm>

#include "compiler/codegen/arithmetic.h"
#include "llvm/IR/Constants.h"

namespace phobos::compiler::nvptx {
namespace {

// Of statements up to this price, so many elements are under way together where they are done one
// by one.
constexpr int kCheap = 8;
constexpr size_t kElementBatch = 4;

}  // namespace

void EmitEitherWay(const Environment& environment, llvm::Value* inside,
                   llvm::function_ref<void()> emit_inside,
                   llvm::function_ref<void()> emit_clipped) {
  const auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(inside);
  if (inside == nullptr || (constant != nullptr && constant->isOne())) return emit_inside();
  environment.Branch(inside, emit_inside, emit_clipped);
}

Turns::Turns(Environment& environment, const Statement& statement, const Layout& layout,
             int64_t unroll)
    : env_(environment),
      b_(environment.builder),
      statement_(statement),
      layout_(layout),
      unroll_(unroll) {
  for (size_t side = 0; side < statement.type.shape.size(); ++side) {
    if (statement.type.shape[side] > 1) lane_side_ = static_cast<int>(side);
  }
}

void Turns::EmitAll(bool is_inside, const TurnWork& work) const {
  Emit({.first = env_.Int32(0), .count = layout_.whole_turns()}, is_inside, work);
  if (layout_.rest() > 0) EmitRest(is_inside, work);
}

void Turns::Emit(const TurnRange& range, bool is_inside, const TurnWork& work) const {
  const int64_t unroll = std::min(unroll_, std::max<int64_t>(range.count, 1));
  const int64_t batched = range.count / unroll * unroll;
  if (batched == unroll) {
    EmitBatch(range, env_.Int32(0), unroll, is_inside, work);
  } else if (batched > 0) {
    env_.Loop(env_.Int32(0), env_.Int32(batched), unroll,
              [&](llvm::Value* turn) { EmitBatch(range, turn, unroll, is_inside, work); });
  }
  if (batched < range.count) {
    EmitBatch(range, env_.Int32(batched), range.count - batched, is_inside, work);
  }
}

void Turns::EmitBatch(const TurnRange& range, llvm::Value* first, int64_t count, bool is_inside,
                      const TurnWork& work) const {
  std::vector<Place> places;
  for (int64_t i = 0; i < count; ++i) {
    llvm::Value* turn = b_.CreateNSWAdd(first, env_.Int32(i));
    if (range.step > 1) turn = b_.CreateNSWMul(turn, env_.Int32(range.step));
    places.push_back(PlaceAt(b_.CreateNSWAdd(range.first, turn)));
    places.back().is_inside = is_inside;
  }
  if (!is_inside) return EmitElements(places, nullptr, work);
  const auto batch = static_cast<size_t>(statement_.batch);
  for (size_t begin = 0; begin < places.size(); begin += batch) {
    const size_t end = std::min(begin + batch, places.size());
    std::vector<Fragment> values;
    for (size_t i = begin; i < end; ++i) values.push_back(work.compute(places[i]));
    for (size_t i = begin; i < end; ++i) work.store(places[i], values[i - begin]);
  }
}

void Turns::EmitRest(bool is_inside, const TurnWork& work) const {
  Place place = PlaceAt(env_.Int32(layout_.whole_turns()));
  place.is_inside = is_inside;
  llvm::Value* exists = b_.CreateICmpULT(env_.thread, env_.Int32(layout_.rest() / layout_.vector));
  if (!is_inside) return EmitElements({place}, exists, work);
  env_.Branch(
      exists, [&] { work.store(place, work.compute(place)); }, [] {});
}

// The elements of vectors one by one, each if it exists (null: it does) and is wanted.
void Turns::EmitElements(const std::vector<Place>& vectors, llvm::Value* exists,
                         const TurnWork& work) const {
  std::vector<Place> places;
  std::vector<llvm::Value*> wanted;
  for (const Place& vector : vectors) {
    for (int64_t lane = 0; lane < layout_.vector; ++lane) {
      places.push_back(ElementOf(vector, lane));
      wanted.push_back(env_.And(exists, work.is_wanted(places.back())));
    }
  }
  const size_t batch = statement_.cost <= kCheap ? kElementBatch : 1;
  llvm::Value* nothing =
      llvm::PoisonValue::get(codegen::ElementType(b_.getContext(), statement_.type.dtype));
  for (size_t first = 0; first < places.size(); first += batch) {
    const size_t end = std::min(first + batch, places.size());
    std::vector<llvm::Value*> values;
    for (size_t i = first; i < end && batch > 1; ++i) {
      auto compute = [&] { return work.compute(places[i])[0]; };
      values.push_back(env_.Choose(wanted[i], compute, nothing));
    }
    for (size_t i = first; i < end; ++i) {
      auto store = [&] {
        work.store(places[i], batch > 1 ? Fragment{values[i - first]} : work.compute(places[i]));
      };
      env_.Branch(wanted[i], store, [] {});
    }
  }
}

Place Turns::PlaceAt(llvm::Value* turn) const {
  Place place;
  place.held = b_.CreateNSWMul(turn, env_.Int32(layout_.vector));
  SetIndices(turn, &place);
  if (layout_.vector > 1) {
    place.lanes = static_cast<unsigned>(layout_.vector);
    place.lane_side = lane_side_;
  }
  return place;
}

// In blocks: what the digits of the thread and of the turn say about the row and the column.
void Turns::SetBlockIndices(llvm::Value* turn, Place* place) const {
  int row_side = 0;
  for (int side = 0; side < lane_side_; ++side) {
    if (statement_.type.shape[static_cast<size_t>(side)] > 1) row_side = side;
  }
  place->indices.assign(statement_.type.shape.size(), env_.Int32(0));
  place->row = layout_.has_copies ? turn : env_.Int32(0);
  int64_t rows = 1;  // of the turns, by the digits so far
  auto add = [&](llvm::Value* number, const std::vector<Digit>& digits) {
    for (size_t i = 0; i < digits.size(); ++i) {
      const Digit& digit = digits[i];
      llvm::Value* value = number;
      if (i + 1 < digits.size()) value = b_.CreateURem(number, env_.Int32(digit.count));
      number = b_.CreateUDiv(number, env_.Int32(digit.count));
      if (digit.is_row && &digits == &layout_.turn_digits) {
        place->row =
            b_.CreateAdd(place->row, b_.CreateMul(value, env_.Int32(rows)), "", true, true);
        rows *= digit.count;
      }
      value = b_.CreateMul(value, env_.Int32(digit.stride), "", true, true);
      llvm::Value*& index =
          place->indices[static_cast<size_t>(digit.is_row ? row_side : lane_side_)];
      index = b_.CreateAdd(index, value, "", true, true);
    }
  };
  add(env_.thread, layout_.thread_digits);
  add(turn, layout_.turn_digits);
}

// The digits of (turn * threads + thread) * vector in base of the sides. Where a turn is a whole
// part of a side, those of the turn and of the thread do not meet, and the thread's are the same in
// each turn.
void Turns::SetIndices(llvm::Value* turn, Place* place) const {
  if (layout_.is_in_blocks()) return SetBlockIndices(turn, place);
  const std::vector<int64_t>& shape = statement_.type.shape;
  llvm::Value* mine = b_.CreateNUWMul(env_.thread, env_.Int32(layout_.vector));
  llvm::Value* before = b_.CreateMul(turn, env_.Int32(layout_.turn()), "", true, true);
  bool meet = true;
  int64_t inner = 1;
  for (size_t side = shape.size(); side-- > 0 && inner <= layout_.turn(); inner *= shape[side]) {
    if (layout_.turn() % inner != 0) break;
    if (shape[side] % (layout_.turn() / inner) == 0) meet = false;
  }
  auto digit = [&](llvm::Value* number, int64_t unit, size_t side) -> llvm::Value* {
    if (number == nullptr) return env_.Int32(0);
    if (unit > 1) number = b_.CreateUDiv(number, env_.Int32(unit));
    return unit * shape[side] < layout_.elements ? b_.CreateURem(number, env_.Int32(shape[side]))
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
    llvm::Value* low = !meet && unit >= layout_.turn() ? nullptr : mine;
    llvm::Value* high = layout_.turn() % (unit * shape[side]) == 0 ? nullptr : before;
    place->indices[side] =
        b_.CreateAdd(digit(low, unit, side), digit(high, unit, side), "", true, true);
  }
}

Place Turns::ElementOf(const Place& vector, int64_t lane) const {
  if (layout_.vector == 1) return vector;
  Place place = vector;
  place.lanes = 1;
  place.lane_side = Place::kNoSide;
  place.lane = static_cast<unsigned>(lane);
  llvm::Value*& index = place.indices[lane_side_];
  index = b_.CreateAdd(index, env_.Int32(lane), "", true, true);
  place.held = b_.CreateNSWAdd(place.held, env_.Int32(lane));
  return place;
}

}  // namespace phobos::compiler::nvptx
