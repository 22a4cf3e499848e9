// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/contraction/product.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/conversion.h"
#include "compiler/codegen/nvptx/contraction/fragments.h"
#include "compiler/codegen/nvptx/contraction/operands.h"
#include "compiler/codegen/nvptx/plan/contraction/product.h"
#include "compiler/codegen/nvptx/tile/evaluator.h"
#include "compiler/codegen/nvptx/tile/held.h"
#include "compiler/codegen/nvptx/tile/turns.h"
#include "llvm/IR/Constants.h"

namespace phobos::compiler::nvptx {
namespace {

// Of the sums that a thread works on together: registers hold them and a step's operands.
constexpr int64_t kMostSumBytes = 512;
// Steps along k in straight code. More make faster code of small tiles, and much more of it.
constexpr int64_t kMostDepth = 8;
constexpr int64_t kMostProducts = 512;  // in straight code
// Twice as many, of either, where copies ahead leave the products alone to say how long a turn is.
constexpr int64_t kAheadFactor = 2;

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
  using Values = std::vector<llvm::Value*>;  // sums, a place's after the other

  void EmitByFragments();
  void EmitGroup(llvm::Value* first, int64_t count);
  void AddProducts(const std::vector<Place>& places, int64_t first, Values* sums);
  void AddGranule(const Operands& operands, llvm::Value* k, unsigned depth, Values* sums);
  int64_t MostDepth(int64_t sums) const;
  Fragment Start(const Place& place);
  Fragment Widened(Fragment elements) const;
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
  const int64_t most = kMostSumBytes / ir::ByteSize(statement_.type.dtype);
  const int64_t at_once = std::max<int64_t>(most / layout.vector, 1);
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
  Values sums;
  for (int64_t i = 0; i < count; ++i) {
    places.push_back(turns_.PlaceAt(b_.CreateNSWAdd(first, env_.Int32(i))));
    const Fragment start = Start(places.back());
    sums.insert(sums.end(), start.begin(), start.end());
  }
  const auto* turn = llvm::dyn_cast<llvm::ConstantInt>(first);
  AddProducts(places, turn == nullptr ? 0 : turn->getSExtValue(), &sums);
  const auto lanes = static_cast<std::ptrdiff_t>(places[0].lanes);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto start = sums.begin() + static_cast<std::ptrdiff_t>(i) * lanes;
    held_.Store(places[i], Fragment(start, start + lanes));
  }
}

// For k = 0, 1, ..: some steps in straight code, so that loads of the next ones are under way while
// the products of these are added.
void ProductEmitter::AddProducts(const std::vector<Place>& places, int64_t first, Values* sums) {
  const Operands operands(env_, statement_, places, first);
  const int64_t length = a_type_.shape.back();
  int64_t granule = std::min<int64_t>(Swizzle::kGranuleBytes / ir::ByteSize(a_type_.dtype), 4);
  while (length % granule != 0) granule /= 2;
  int64_t depth = granule;
  const int64_t most = MostDepth(static_cast<int64_t>(sums->size()));
  while (length % (2 * depth) == 0 && 2 * depth <= most) depth *= 2;
  const auto add = [&](llvm::Value* k) {
    for (int64_t i = 0; i < depth; i += granule) {
      AddGranule(operands, b_.CreateAdd(k, env_.Int32(i), "", true, true),
                 static_cast<unsigned>(granule), sums);
    }
  };
  if (depth == length) return add(env_.Int32(0));
  std::vector<llvm::AllocaInst*> slots;
  for (llvm::Value* sum : *sums) {
    slots.push_back(env_.Slot(sum_type_));
    b_.CreateStore(sum, slots.back());
  }
  const auto load = [&] {
    for (size_t i = 0; i < slots.size(); ++i) (*sums)[i] = b_.CreateLoad(sum_type_, slots[i]);
  };
  env_.Loop(env_.Int32(0), env_.Int32(length), depth, [&](llvm::Value* k) {
    load();
    add(k);
    for (size_t i = 0; i < slots.size(); ++i) b_.CreateStore((*sums)[i], slots[i]);
  });
  load();
}

// Steps in straight code, for so many sums of the thread's.
int64_t ProductEmitter::MostDepth(int64_t sums) const {
  const auto is_ahead = [this](size_t operand) {
    return env_.plan.copies.AheadOf(*env_.definitions[dot_.operands[operand]]) != nullptr;
  };
  const bool is_alone = statement_.layout.thread_elements() == sums && is_ahead(0) && is_ahead(1);
  const int64_t factor = is_alone ? kAheadFactor : 1;
  return std::min(factor * kMostDepth, factor * kMostProducts / sums);
}

// For k, k + 1, .. k + depth - 1, what a load of a's row gives.
void ProductEmitter::AddGranule(const Operands& operands, llvm::Value* k, unsigned depth,
                                Values* sums) {
  // Rows of a [K, N] are read when their products are added, those of an [N, K] all at once.
  const bool is_transposed = dot_.axis == 1;
  std::vector<Fragment> rows;
  std::vector<Fragment> columns(operands.columns());
  for (size_t row = 0; row < operands.rows(); ++row) {
    rows.push_back(Widened(operands.LoadRow(row, k, depth)));
  }
  const size_t lanes = sums->size() / operands.places();
  for (unsigned step = 0; step < depth; ++step) {
    llvm::Value* at = b_.CreateAdd(k, env_.Int32(step), "", true, true);
    for (size_t i = 0; i < columns.size() && (step == 0 || !is_transposed); ++i) {
      columns[i] = Widened(operands.LoadColumns(i, at, is_transposed ? depth : 1));
    }
    const size_t first = is_transposed ? step * lanes : 0;
    for (size_t i = 0; i < sums->size(); ++i) {
      const size_t place = i / lanes;
      (*sums)[i] = MultiplyAdd(rows[operands.RowOf(place)][step],
                               columns[operands.ColumnOf(place)][first + i % lanes], (*sums)[i]);
    }
  }
}

// Elements as their products take them: in the type of the sum, rounded.
Fragment ProductEmitter::Widened(Fragment elements) const {
  for (llvm::Value*& element : elements) {
    element = a_type_.dtype != statement_.type.dtype
                  ? codegen::EmitCast(b_, element, a_type_.dtype, statement_.type.dtype)
                  : codegen::RoundTo(b_, element, static_cast<ir::Precision>(dot_.index));
  }
  return elements;
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
