// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/reduction/reduction.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/codegen/nvptx/reduction/partials.h"
#include "compiler/codegen/nvptx/tile/evaluator.h"
#include "compiler/codegen/nvptx/tile/held.h"
#include "compiler/codegen/nvptx/tile/turns.h"
#include "llvm/IR/Constants.h"

namespace phobos::compiler::nvptx {
namespace {

using codegen::Partial;
using codegen::Partials;

class Reduction {
 public:
  Reduction(Environment& environment, const Statement& statement);
  llvm::Value* Emit();

 private:
  void EmitByLayout();
  void EmitTurns(llvm::function_ref<void(bool is_inside)> turns);
  llvm::Value* FirstTurnOf(llvm::Value* part) const;
  void AccumulatePart(llvm::Value* part, bool is_rest, size_t slot, bool is_inside);
  void FinishPart(llvm::Value* part, size_t slot);
  void EmitApart();
  void EmitApartResult(llvm::Value* first);
  void Accumulate(const Place& place, const Fragment& value, size_t slot);
  void Hand(const Place& place, const Partials& partials);
  llvm::Value* NumberOfResult(const Place& place) const;
  Place PlaceOfResult(llvm::Value* number) const;
  void StoreResult(llvm::Value* number, const Partial& partial);
  void Meet();
  llvm::Value* MeetInOne();

  Environment& env_;
  llvm::IRBuilder<>& b_;
  const Statement& statement_;
  const ir::Op& op_;
  const ReductionDealing& dealing_;
  const int64_t results_;
  Evaluator evaluator_;
  PartialsEmitter partials_;
  std::optional<HeldTile> held_;   // a tile's
  llvm::Value* scalar_ = nullptr;  // a scalar's
  llvm::Value* inside_ = nullptr;
};

Reduction::Reduction(Environment& environment, const Statement& statement)
    : env_(environment),
      b_(environment.builder),
      statement_(statement),
      op_(*statement.whole),
      dealing_(statement.reduction),
      results_(statement.reduction.sides.results()),
      evaluator_(environment, statement),
      partials_(environment, statement) {
  if (!op_.type.is_scalar()) held_.emplace(environment, *statement.op);
}

llvm::Value* Reduction::Emit() {
  inside_ = evaluator_.Prepare();
  if (dealing_.is_apart) {
    EmitApart();
  } else {
    EmitByLayout();
  }
  if (dealing_.left() > 1) {
    env_.Meet();
    Meet();
  }
  return scalar_;
}

void Reduction::EmitByLayout() {
  const Layout& layout = statement_.layout;
  const auto slots = static_cast<size_t>(layout.vector);
  // The last part may be a last turn in which some threads have nothing.
  const int64_t whole = dealing_.parts - (dealing_.parts > 1 && layout.rest() > 0 ? 1 : 0);
  if (dealing_.parts == 1 || statement_.unroll == layout.turns()) {
    // All parts at once, so that their loads are under way together.
    partials_.MakeSlots(slots * static_cast<size_t>(dealing_.parts));
    EmitTurns([&](bool is_inside) {
      for (int64_t part = 0; part < dealing_.parts; ++part) {
        AccumulatePart(env_.Int32(part), part == whole, slots * static_cast<size_t>(part),
                       is_inside);
      }
    });
    for (int64_t part = 0; part < dealing_.parts; ++part) {
      FinishPart(env_.Int32(part), slots * static_cast<size_t>(part));
    }
    return;
  }
  partials_.MakeSlots(slots);
  evaluator_.PrepareRanges();
  const auto emit = [&](llvm::Value* part, bool is_rest) {
    EmitTurns([&](bool is_inside) { AccumulatePart(part, is_rest, 0, is_inside); });
    FinishPart(part, 0);
  };
  env_.Loop(env_.Int32(0), env_.Int32(whole), 1,
            [&](llvm::Value* part) { emit(part, /*is_rest=*/false); });
  if (whole < dealing_.parts) emit(env_.Int32(whole), /*is_rest=*/true);
}

void Reduction::EmitTurns(llvm::function_ref<void(bool is_inside)> turns) {
  partials_.Clear();
  EmitEitherWay(
      env_, inside_, [&] { turns(/*is_inside=*/true); },
      [&] {
        evaluator_.PrepareRanges();
        turns(/*is_inside=*/false);
      });
}

llvm::Value* Reduction::FirstTurnOf(llvm::Value* part) const {
  const int64_t stride = dealing_.stride;
  llvm::Value* outer = stride > 1 ? b_.CreateUDiv(part, env_.Int32(stride)) : part;
  llvm::Value* first = b_.CreateMul(outer, env_.Int32(dealing_.turns * stride));
  return stride > 1 ? b_.CreateAdd(first, b_.CreateURem(part, env_.Int32(stride))) : first;
}

void Reduction::AccumulatePart(llvm::Value* part, bool is_rest, size_t slot, bool is_inside) {
  const auto compute = [&](const Place& place) {
    evaluator_.Forget();
    return evaluator_.Evaluate(op_.operands[0], place);
  };
  const auto store = [&](const Place& place, const Fragment& value) {
    Accumulate(place, value, slot);
  };
  const auto is_wanted = [](const Place&) -> llvm::Value* { return nullptr; };
  const TurnWork work{compute, store, is_wanted};
  const bool in_registers = statement_.unroll == statement_.layout.turns();
  const Turns turns(env_, statement_, statement_.layout,
                    is_inside || in_registers ? statement_.unroll : 1);
  if (is_rest) return turns.EmitRest(is_inside, work);
  if (dealing_.parts == 1) return turns.EmitAll(is_inside, work);
  turns.Emit({FirstTurnOf(part), dealing_.stride, dealing_.turns}, is_inside, work);
}

void Reduction::Accumulate(const Place& place, const Fragment& value, size_t slot) {
  for (unsigned lane = 0; lane < place.lanes; ++lane) {
    llvm::Value* number = place.indices[op_.axis];
    if (place.lane_side == op_.axis) {
      number = b_.CreateAdd(number, env_.Int32(lane), "", true, true);
    }
    partials_.Add(slot + place.lane + lane, LaneOf(value, lane), number);
  }
}

// What the threads have of a part's results, from slot `slot` on.
void Reduction::FinishPart(llvm::Value* part, size_t slot) {
  Partials partials;
  for (int64_t lane = 0; lane < statement_.layout.vector; ++lane) {
    partials.push_back(partials_.Read(slot + static_cast<size_t>(lane)));
  }
  if (dealing_.over_lanes) partials = {partials_.Together(std::move(partials))};
  for (Partial& partial : partials) {
    partial = partials_.Fold(partial, dealing_.folded, dealing_.group);
  }
  if (dealing_.left() == 1 && !held_.has_value()) {
    scalar_ = partials_.ResultOf(partials[0]);
    return;
  }
  if (env_.plan.KeepsRows(*statement_.op)) {
    return held_->StoreAt(part, partials_.ResultOf(partials[0]));
  }
  Hand(Turns(env_, statement_, statement_.layout, 1).PlaceAt(FirstTurnOf(part)), partials);
}

// One of the threads that have the results at `place` stores them, or hands them to Meet.
void Reduction::Hand(const Place& place, const Partials& partials) {
  llvm::Value* group = b_.CreateUDiv(env_.thread, env_.Int32(dealing_.group));
  llvm::Value* mine = b_.CreateURem(group, env_.Int32(dealing_.partials));
  llvm::Value* number = NumberOfResult(place);
  llvm::Value* in_fold = b_.CreateURem(mine, env_.Int32(dealing_.folded));
  llvm::Value* writes =
      b_.CreateAnd(b_.CreateICmpULT(number, env_.Int32(results_)), b_.CreateIsNull(in_fold));
  llvm::Value* row = b_.CreateUDiv(mine, env_.Int32(dealing_.folded));
  env_.Branch(
      writes,
      [&] {
        for (size_t lane = 0; lane < partials.size(); ++lane) {
          llvm::Value* result = b_.CreateAdd(number, env_.Int32(static_cast<int64_t>(lane)));
          if (dealing_.left() == 1) {
            held_->StoreAt(result, partials_.ResultOf(partials[lane]));
          } else {
            llvm::Value* start = b_.CreateMul(row, env_.Int32(results_));
            partials_.Put(b_.CreateAdd(start, result), partials[lane]);
          }
        }
      },
      [] {});
}

llvm::Value* Reduction::NumberOfResult(const Place& place) const {
  llvm::Value* number = env_.Int32(0);
  for (size_t side = 0; side < statement_.type.shape.size(); ++side) {
    if (static_cast<int>(side) == op_.axis) continue;
    number = b_.CreateMul(number, env_.Int32(statement_.type.shape[side]), "", true, true);
    number = b_.CreateAdd(number, place.indices[side], "", true, true);
  }
  return number;
}

// Partials of each result lie `results_` apart, the near ones first.
void Reduction::Meet() {
  if (!held_.has_value()) {
    scalar_ = MeetInOne();
    return;
  }
  const auto meet = [&](llvm::Value* number) {
    Partials partials;
    for (int64_t k = 0; k < dealing_.left(); ++k) {
      partials.push_back(partials_.Get(b_.CreateAdd(number, env_.Int32(k * results_))));
    }
    held_->StoreAt(number, partials_.ResultOf(partials_.Together(std::move(partials))));
  };
  if (results_ > env_.function.threads) {
    return env_.Loop(env_.thread, env_.Int32(results_), env_.function.threads, meet);
  }
  env_.Branch(
      b_.CreateICmpULT(env_.thread, env_.Int32(results_)), [&] { meet(env_.thread); }, [] {});
}

// Each warp does it for itself, so that all threads have the result at once.
llvm::Value* Reduction::MeetInOne() {
  const int64_t left = dealing_.left();
  const auto all = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(left)));
  llvm::Value* lane = b_.CreateAnd(env_.thread, env_.Int32(all - 1));
  llvm::Value* exists = all == left ? nullptr : b_.CreateICmpULT(lane, env_.Int32(left));
  Partial partial;
  if (exists == nullptr) {
    partial = partials_.Get(lane);
  } else {
    // What is read beside them is not used.
    partial = partials_.Get(b_.CreateSelect(exists, lane, env_.Int32(0)));
    const Partial nothing = partials_.Nothing();
    partial.value = b_.CreateSelect(exists, partial.value, nothing.value);
    if (partial.place != nullptr) {
      partial.place = b_.CreateSelect(exists, partial.place, nothing.place);
    }
  }
  return partials_.ResultOf(partials_.Fold(partial, all, /*group=*/1));
}

// A warp a result, or a thread a result. Threads without one do the last one again.
void Reduction::EmitApart() {
  partials_.MakeSlots(1);
  evaluator_.PrepareRanges();
  const int64_t step = env_.function.threads / dealing_.partials;
  if (results_ <= step) return EmitApartResult(env_.Int32(0));
  env_.Loop(env_.Int32(0), env_.Int32(results_), step,
            [&](llvm::Value* first) { EmitApartResult(first); });
}

void Reduction::EmitApartResult(llvm::Value* first) {
  const int64_t width = dealing_.partials;
  const int64_t length = dealing_.sides.length;
  llvm::Value* mine = b_.CreateAdd(first, b_.CreateUDiv(env_.thread, env_.Int32(width)));
  llvm::Value* lane = b_.CreateURem(env_.thread, env_.Int32(width));
  llvm::Value* exists = b_.CreateICmpULT(mine, env_.Int32(results_));
  llvm::Value* number = b_.CreateSelect(exists, mine, env_.Int32(results_ - 1));
  Place place = PlaceOfResult(number);
  partials_.Clear();
  const auto add = [&](llvm::Value* start) {
    llvm::Value* index = b_.CreateAdd(start, lane);
    llvm::Value* is_element = b_.CreateICmpULT(index, env_.Int32(length));
    place.indices[op_.axis] = b_.CreateSelect(is_element, index, env_.Int32(length - 1));
    evaluator_.Forget();
    llvm::Value* element = evaluator_.Evaluate(op_.operands[0], place)[0];
    env_.Branch(
        width == 1 ? nullptr : is_element, [&] { partials_.Add(0, element, index); }, [] {});
  };
  env_.Loop(env_.Int32(0), env_.Int32(length), width, add);
  const Partial all = partials_.Fold(partials_.Read(0), dealing_.folded, /*group=*/1);
  if (!held_.has_value()) {
    scalar_ = partials_.ResultOf(all);
    return;
  }
  env_.Branch(
      b_.CreateAnd(exists, b_.CreateIsNull(lane)),
      [&] { held_->StoreAt(number, partials_.ResultOf(all)); }, [] {});
}

Place Reduction::PlaceOfResult(llvm::Value* number) const {
  Place place;
  place.indices.resize(statement_.type.shape.size());
  for (size_t side = statement_.type.shape.size(); side-- > 0;) {
    if (static_cast<int>(side) == op_.axis) continue;
    const int64_t length = statement_.type.shape[side];
    place.indices[side] = b_.CreateURem(number, env_.Int32(length));
    number = b_.CreateUDiv(number, env_.Int32(length));
  }
  return place;
}

}  // namespace

llvm::Value* EmitReduction(Environment& environment, const Statement& statement) {
  return Reduction(environment, statement).Emit();
}

}  // namespace phobos::compiler::nvptx
