// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/contraction/product.h"

#include <algorithm>
#include <vector>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/conversion.h"
#include "compiler/codegen/nvptx/contraction/fragments.h"
#include "compiler/codegen/nvptx/tile/evaluator.h"
#include "compiler/codegen/nvptx/tile/held.h"
#include "compiler/codegen/nvptx/tile/turns.h"
#include "llvm/IR/Constants.h"

namespace phobos::compiler::nvptx {
namespace {

// Sums that a thread works on together.
constexpr int64_t kMostSums = 64;
constexpr int64_t kGranuleBytes = 16;

// One product, while it is emitted.
class ProductEmitter {
 public:
  ProductEmitter(Environment& environment, const Statement& statement, CopyEmitter& copies)
      : env_(environment),
        copies_(copies),
        b_(environment.builder),
        statement_(statement),
        dot_(*statement.whole),
        a_type_(environment.definitions[dot_.operands[0]]->type),
        sum_type_(codegen::ElementType(b_.getContext(), statement.type.dtype)),
        evaluator_(environment, statement),
        held_(environment, *statement.op),
        turns_(environment, statement, statement.layout, 1) {}

  void Emit();

 private:
  using Sums = std::vector<Fragment>;  // of a place each

  void EmitByFragments();
  void EmitGroup(llvm::Value* first, int64_t count);
  void AddProducts(const std::vector<Place>& places, llvm::AllocaInst* sums);
  Fragment Start(const Place& place);
  Fragment RowOfA(const HeldTile& a, const Place& place, llvm::Value* k, unsigned depth) const;
  Fragment ColumnsOfB(const HeldTile& b, const Place& place, llvm::Value* k, unsigned depth) const;
  llvm::Value* Widened(llvm::Value* element) const;
  llvm::Value* MultiplyAdd(llvm::Value* a, llvm::Value* b, llvm::Value* sum) const;

  Environment& env_;
  CopyEmitter& copies_;
  llvm::IRBuilder<>& b_;
  const Statement& statement_;
  const ir::Op& dot_;
  const ir::Type& a_type_;
  llvm::Type* const sum_type_;
  Evaluator evaluator_;
  const HeldTile held_;
  const Turns turns_;
};

void ProductEmitter::Emit() {
  evaluator_.Prepare();
  evaluator_.PrepareRanges();
  const Layout& layout = statement_.layout;
  if (statement_.fragments.has_value() && layout.is_in_blocks() && layout.vector == 2) {
    return EmitByFragments();
  }
  const int64_t whole = layout.whole_turns();
  // Where a thread's sums are in registers, each has its own code.
  const bool is_in_registers = statement_.unroll == layout.turns();
  const int64_t at_once = std::max<int64_t>(kMostSums / layout.vector, 1);
  if (is_in_registers || whole <= at_once) {
    for (int64_t first = 0; first < whole; first += at_once) {
      EmitGroup(env_.Int32(first), std::min(at_once, whole - first));
    }
  } else {
    env_.Loop(env_.Int32(0), env_.Int32(whole), 1, [&](llvm::Value* turn) { EmitGroup(turn, 1); });
  }
  if (layout.rest() == 0) return;
  env_.Branch(
      b_.CreateICmpULT(env_.thread, env_.Int32(layout.rest() / layout.vector)),
      [&] { EmitGroup(env_.Int32(whole), 1); }, [] {});
}

// What is added to at a place.
Fragment ProductEmitter::Start(const Place& place) {
  const ir::ValueId start = dot_.operands[2];
  if (start == ir::kNoValue) return Fragment(place.lanes, llvm::Constant::getNullValue(sum_type_));
  evaluator_.Forget();
  Fragment sums;
  if (statement_.loads.empty()) {
    const Fragment made = evaluator_.Evaluate(start, place);
    for (unsigned lane = 0; lane < place.lanes; ++lane) sums.push_back(LaneOf(made, lane));
    return sums;
  }
  // Some of it may lie outside its tensor.
  for (unsigned lane = 0; lane < place.lanes; ++lane) {
    evaluator_.Forget();
    const Place single = place.lanes == 1 ? place : turns_.ElementOf(place, lane);
    sums.push_back(evaluator_.Evaluate(start, single)[0]);
  }
  return sums;
}

void ProductEmitter::EmitByFragments() {
  const auto turns = static_cast<size_t>(statement_.layout.turns());
  std::vector<Place> places;
  std::vector<llvm::Value*> sums;
  for (size_t turn = 0; turn < turns; ++turn) {
    places.push_back(turns_.PlaceAt(env_.Int32(static_cast<int64_t>(turn))));
    const Fragment start = Start(places.back());
    sums.insert(sums.end(), start.begin(), start.end());
  }
  if (statement_.ahead_in != nullptr) {
    AddFragmentsAhead(env_, statement_, copies_, &sums);
  } else {
    AddFragments(env_, dot_, *statement_.fragments, &sums);
  }
  for (size_t turn = 0; turn < turns; ++turn) {
    held_.Store(places[turn], {sums[2 * turn], sums[2 * turn + 1]});
  }
}

void ProductEmitter::EmitGroup(llvm::Value* first, int64_t count) {
  std::vector<Place> places;
  for (int64_t i = 0; i < count; ++i) {
    places.push_back(turns_.PlaceAt(b_.CreateNSWAdd(first, env_.Int32(i))));
  }
  const unsigned lanes = places[0].lanes;
  llvm::AllocaInst* sums =
      env_.Slot(llvm::ArrayType::get(sum_type_, static_cast<uint64_t>(count) * lanes));
  auto sum_at = [&](size_t place, unsigned lane) {
    return b_.CreateConstGEP2_64(sums->getAllocatedType(), sums, 0, place * lanes + lane);
  };
  for (size_t i = 0; i < places.size(); ++i) {
    const Fragment start = Start(places[i]);
    for (unsigned lane = 0; lane < lanes; ++lane) b_.CreateStore(start[lane], sum_at(i, lane));
  }
  AddProducts(places, sums);
  for (size_t i = 0; i < places.size(); ++i) {
    Fragment values;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      values.push_back(b_.CreateLoad(sum_type_, sum_at(i, lane)));
    }
    held_.Store(places[i], values);
  }
}

// For k = 0, 1, ..: a granule of a's row at a time where there are whole ones.
void ProductEmitter::AddProducts(const std::vector<Place>& places, llvm::AllocaInst* sums) {
  const HeldTile a(env_, *env_.definitions[dot_.operands[0]]);
  const HeldTile b(env_, *env_.definitions[dot_.operands[1]]);
  const int64_t length = a_type_.shape.back();
  const int64_t widest = std::min<int64_t>(kGranuleBytes / ir::ByteSize(a_type_.dtype), 4);
  int64_t depth = widest;
  while (length % depth != 0) depth /= 2;
  const unsigned lanes = places[0].lanes;
  env_.Loop(env_.Int32(0), env_.Int32(length), depth, [&](llvm::Value* k) {
    const auto steps = static_cast<unsigned>(depth);
    for (size_t i = 0; i < places.size(); ++i) {
      const Fragment row = RowOfA(a, places[i], k, steps);
      const Fragment columns = ColumnsOfB(b, places[i], k, steps);
      for (unsigned lane = 0; lane < lanes; ++lane) {
        llvm::Value* address =
            b_.CreateConstGEP2_64(sums->getAllocatedType(), sums, 0, i * lanes + lane);
        llvm::Value* sum = b_.CreateLoad(sum_type_, address);
        for (unsigned step = 0; step < steps; ++step) {
          sum = MultiplyAdd(Widened(row[step]), Widened(columns[step * lanes + lane]), sum);
        }
        b_.CreateStore(sum, address);
      }
    }
  });
}

// a[.., m, k .. k + depth - 1].
Fragment ProductEmitter::RowOfA(const HeldTile& a, const Place& place, llvm::Value* k,
                                unsigned depth) const {
  Place row = place;
  row.indices.back() = k;
  row.lanes = depth;
  row.lane_side = static_cast<int>(row.indices.size()) - 1;
  return a.Load(row);
}

// b[.., k + i, n + lane] at i * lanes + lane.
Fragment ProductEmitter::ColumnsOfB(const HeldTile& b, const Place& place, llvm::Value* k,
                                    unsigned depth) const {
  const size_t rank = place.indices.size();
  // The lanes run along n, unless n is a side of 1.
  const bool runs_along_n = place.lane_side == static_cast<int>(rank) - 1;
  Fragment columns;
  if (dot_.axis == 0) {
    for (unsigned step = 0; step < depth; ++step) {
      Place part = place;
      part.indices[rank - 2] = b_.CreateAdd(k, env_.Int32(step), "", true, true);
      if (!runs_along_n) {
        part.lanes = 1;
        part.lane_side = Place::kNoSide;
      }
      const Fragment loaded = b.Load(part);
      for (unsigned lane = 0; lane < place.lanes; ++lane) columns.push_back(LaneOf(loaded, lane));
    }
    return columns;
  }
  columns.resize(size_t{depth} * place.lanes);
  for (unsigned lane = 0; lane < place.lanes; ++lane) {
    Place part = place;
    llvm::Value* n = place.indices[rank - 1];
    part.indices[rank - 2] = runs_along_n ? b_.CreateAdd(n, env_.Int32(lane), "", true, true) : n;
    part.indices[rank - 1] = k;
    part.lanes = depth;
    part.lane_side = static_cast<int>(rank) - 1;
    const Fragment loaded = b.Load(part);
    for (unsigned step = 0; step < depth; ++step) {
      columns[step * place.lanes + lane] = loaded[step];
    }
  }
  return columns;
}

// An element as its products take it: in the type of the sum, rounded.
llvm::Value* ProductEmitter::Widened(llvm::Value* element) const {
  if (a_type_.dtype != statement_.type.dtype) {
    return codegen::EmitCast(b_, element, a_type_.dtype, statement_.type.dtype);
  }
  return codegen::RoundTo(b_, element, static_cast<ir::Precision>(dot_.index));
}

llvm::Value* ProductEmitter::MultiplyAdd(llvm::Value* a, llvm::Value* b, llvm::Value* sum) const {
  if (sum_type_->isIntegerTy()) return b_.CreateAdd(sum, b_.CreateMul(a, b));
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {sum_type_}, {a, b, sum});
}

}  // namespace

void EmitProduct(Environment& environment, const Statement& statement, CopyEmitter& copies) {
  ProductEmitter(environment, statement, copies).Emit();
}

}  // namespace phobos::compiler::nvptx
