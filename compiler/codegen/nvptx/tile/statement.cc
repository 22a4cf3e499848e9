// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/tile/statement.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/nvptx/plan/contraction/product.h"
#include "compiler/codegen/nvptx/tile/evaluator.h"
#include "compiler/codegen/nvptx/tile/held.h"
#include "compiler/codegen/nvptx/tile/turns.h"
#include "compiler/codegen/nvptx/tile/words.h"

namespace phobos::compiler::nvptx {
namespace {

// Copies of a turn in the code where elements are done one by one, of statements up to this price.
constexpr int kCheap = 8;
constexpr int64_t kSingleUnroll = 4;
// Turns in registers that have code of their own where a part may lie outside.
constexpr int64_t kMostClippedTurns = 8;

// What a thread stores at once of what it got from its neighbours.
constexpr int64_t kPooledBytes = 16;

// A thread's elements at a place as 32-bit words, and back.
Fragment ToWords(llvm::IRBuilder<>& b, const Fragment& values, llvm::Type* element,
                 unsigned lanes) {
  llvm::Value* packed = PackWords(b, values, element, lanes);
  if (!packed->getType()->isVectorTy()) return {packed};
  Fragment words;
  for (unsigned i = 0; i < lanes; ++i) {
    words.push_back(b.CreateBitCast(b.CreateExtractElement(packed, i), b.getInt32Ty()));
  }
  return words;
}

Fragment FromWords(llvm::IRBuilder<>& b, const Fragment& words, llvm::Type* element,
                   unsigned lanes) {
  if (words.size() == 1) return UnpackWords(b, words[0], element, lanes);
  Fragment elements;
  for (llvm::Value* word : words) elements.push_back(b.CreateBitCast(word, element));
  return elements;
}

// One statement, while it is emitted.
class StatementEmitter {
 public:
  StatementEmitter(Environment& environment, const Statement& statement);
  void Emit();

 private:
  void EmitTurns(const Layout& layout, int64_t unroll, bool is_inside);
  size_t PooledTurns();
  void EmitPooled(size_t count);
  void EmitClipped();
  void EmitClippedFromMemory();
  void StoreAt(const Place& place, const Fragment& value);
  void StepAt(const Place& place, const Fragment& value);
  Place Permuted(const Place& place) const;

  Environment& env_;
  const Statement& statement_;
  const ir::Op& op_;        // a kStage of an atomic's result: the atomic
  const ir::Op& computed_;  // whose operand it computes
  Evaluator evaluator_;
  // Where it is stored, unless to a tensor; of an atomic with a result, where that is.
  std::optional<HeldTile> held_;
};

StatementEmitter::StatementEmitter(Environment& environment, const Statement& statement)
    : env_(environment),
      statement_(statement),
      op_(codegen::DoneBy(environment.definitions, *statement.op)),
      computed_(statement.whole != nullptr ? *statement.whole : op_),
      evaluator_(environment, statement) {
  if (!ir::WritesTensor(statement.op->opcode)) held_.emplace(env_, *statement.op);
}

void StatementEmitter::Emit() {
  EmitEitherWay(
      env_, evaluator_.Prepare(),
      [&] {
        if (const size_t pooled = PooledTurns(); pooled > 1) return EmitPooled(pooled);
        EmitTurns(statement_.layout, statement_.unroll, /*is_inside=*/true);
      },
      [&] { EmitClipped(); });
}

// Where a part may lie outside, or vectors are not aligned: element by element. Unless another
// statement counts on the layout, neighbouring threads take neighbouring elements.
void StatementEmitter::EmitClipped() {
  evaluator_.PrepareRanges();
  if (statement_.keeps_layout) {
    const bool in_registers = statement_.unroll == statement_.layout.turns();
    if (statement_.layout.is_in_blocks() && in_registers && statement_.unroll > kMostClippedTurns &&
        !held_.has_value()) {
      return EmitClippedFromMemory();
    }
    return EmitTurns(statement_.layout, in_registers ? statement_.unroll : 1, /*is_inside=*/false);
  }
  const Layout single{.elements = statement_.layout.elements, .threads = statement_.layout.threads};
  const int64_t unroll = statement_.cost <= kCheap ? kSingleUnroll : 1;
  EmitTurns(single, std::min(unroll, single.turns()), /*is_inside=*/false);
}

// A product's tile: a loop over the turns, for which what the thread holds in registers is copied
// to its memory. That is much less code, for what blocks at a tensor's edge do once.
void StatementEmitter::EmitClippedFromMemory() {
  llvm::IRBuilder<>& b = env_.builder;
  const std::vector<llvm::Value*> held_tiles = env_.held_tiles;
  const std::vector<llvm::Value*> variables = env_.variables;
  for (const HeldRead& read : statement_.held) {
    const bool is_stage = read.op->opcode == ir::Opcode::kStage;
    llvm::Value*& start =
        is_stage ? env_.held_tiles[read.op->result] : env_.variables[read.op->index];
    auto* registers = llvm::dyn_cast<llvm::AllocaInst>(start);
    const bool is_copied =
        start != (is_stage ? held_tiles[read.op->result] : variables[read.op->index]);
    if (registers == nullptr || is_copied) continue;
    auto* type = llvm::cast<llvm::ArrayType>(registers->getAllocatedType());
    llvm::AllocaInst* memory = env_.Slot(type);
    for (uint64_t i = 0; i < type->getNumElements(); ++i) {
      llvm::Value* element =
          b.CreateLoad(type->getElementType(), b.CreateConstGEP2_64(type, registers, 0, i));
      b.CreateStore(element, b.CreateConstGEP2_64(type, memory, 0, i));
    }
    start = memory;
  }
  EmitTurns(statement_.layout, 1, /*is_inside=*/false);
  env_.held_tiles = held_tiles;
  env_.variables = variables;
}

void StatementEmitter::EmitTurns(const Layout& layout, int64_t unroll, bool is_inside) {
  const auto compute = [&](const Place& place) {
    evaluator_.Forget();
    return evaluator_.Evaluate(computed_.operands[0], place);
  };
  const auto store = [&](const Place& place, const Fragment& value) { StoreAt(place, value); };
  const auto is_wanted = [&](const Place& place) {
    return held_.has_value() ? nullptr : evaluator_.target()->IsInside(place);
  };
  Turns(env_, statement_, layout, unroll).EmitAll(is_inside, {compute, store, is_wanted});
}

// Turns whose vectors neighbouring threads exchange, so that each stores up to 16 bytes: a matrix
// instruction leaves them with pairs of columns, and stores of half a sector cost as much as those
// of whole ones. 1: none.
size_t StatementEmitter::PooledTurns() {
  const Layout& layout = statement_.layout;
  if (statement_.op->opcode != ir::Opcode::kStore || statement_.whole != nullptr ||
      statement_.is_relied_on || op_.operands[1] != ir::kNoValue ||
      op_.subscripts.back().kind != ir::Subscript::Kind::kSlice ||
      evaluator_.target()->gather_side_count() > 0) {
    return 1;
  }
  const int64_t bytes = ir::ByteSize(statement_.type.dtype);
  if ((bytes != 2 && bytes != 4) || !IsOfFragments(layout) || statement_.unroll != layout.turns()) {
    return 1;
  }
  int64_t count = kPooledBytes / (layout.vector * bytes);
  while (layout.turn_digits[1].count % count != 0) count /= 2;
  const bool is_aligned =
      evaluator_.target()->Misalignment(static_cast<unsigned>(count * layout.vector)) == nullptr;
  return is_aligned ? static_cast<size_t>(count) : 1;
}

// `count` fragments next to each other at a time; each thread of a group of as many gets what the
// group has of one of them.
void StatementEmitter::EmitPooled(size_t count) {
  llvm::IRBuilder<>& b = env_.builder;
  const Layout& layout = statement_.layout;
  const Turns turns(env_, statement_, layout, statement_.unroll);
  llvm::Type* const element = codegen::MemoryType(b.getContext(), statement_.type.dtype);
  llvm::Value* number = b.CreateURem(env_.thread, env_.Int32(static_cast<int64_t>(count)));
  const int64_t between = layout.turn_digits[1].stride - layout.vector;
  const int64_t halves = layout.turn_digits[0].count;
  const auto group = static_cast<int64_t>(count) * halves;
  for (int64_t first = 0; first < layout.turns(); ++first) {
    if (first % group >= halves) continue;
    Place place;
    std::vector<Fragment> words(count);
    for (size_t i = 0; i < count; ++i) {
      Place own = turns.PlaceAt(env_.Int32(first + static_cast<int64_t>(i) * halves));
      own.is_inside = true;
      evaluator_.Forget();
      const Fragment values = evaluator_.Evaluate(computed_.operands[0], own);
      words[i] = ToWords(b, values, element, own.lanes);
      if (i == 0) place = own;
    }
    TransposeWords(b, env_.thread, &words);
    Fragment stored;
    for (const Fragment& part : words) {
      const Fragment elements = FromWords(b, part, element, place.lanes);
      stored.insert(stored.end(), elements.begin(), elements.end());
    }
    llvm::Value*& column = place.indices[static_cast<size_t>(place.lane_side)];
    column = b.CreateAdd(column, b.CreateMul(number, env_.Int32(between), "", true, true), "", true,
                         true);
    place.lanes *= static_cast<unsigned>(count);
    StoreAt(place, stored);
  }
}

void StatementEmitter::StoreAt(const Place& place, const Fragment& value) {
  if (ir::IsAtomic(op_.opcode)) return StepAt(place, value);
  if (held_.has_value()) {
    const bool is_transpose = computed_.opcode == ir::Opcode::kTranspose;
    return held_->Store(is_transpose ? Permuted(place) : place, value);
  }
  evaluator_.Forget();
  const Access& target = *evaluator_.target();
  const Access::Positions positions = evaluator_.EvaluatePositions(op_, target, place);
  target.Store(place, positions, evaluator_.EvaluateOptional(op_.operands[1], place), value);
}

// An atomic's steps at a place.
void StatementEmitter::StepAt(const Place& place, const Fragment& value) {
  evaluator_.Forget();
  const Access& target = *evaluator_.target();
  const Access::Positions positions = evaluator_.EvaluatePositions(op_, target, place);
  llvm::SmallVector<Fragment, 2> operands = {value};
  if (op_.operands.size() > 1) {
    operands.push_back(evaluator_.EvaluateOptional(op_.operands[1], place));
  }
  const Fragment before = target.Atomic(place, positions, operands);
  if (held_.has_value()) held_->Store(place, before);
}

// Where a transpose's result has what its operand has at `place`.
Place StatementEmitter::Permuted(const Place& place) const {
  Place permuted = place;
  for (size_t side = 0; side < computed_.permutation.size(); ++side) {
    const int32_t from = computed_.permutation[side];
    permuted.indices[side] = place.indices[from];
    if (from == place.lane_side) permuted.lane_side = static_cast<int>(side);
  }
  return permuted;
}

}  // namespace

void EmitStatement(Environment& environment, const Statement& statement) {
  StatementEmitter(environment, statement).Emit();
}

}  // namespace phobos::compiler::nvptx
