// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/reduction/reduction.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/host/tile/evaluator.h"
#include "compiler/codegen/host/tile/held.h"
#include "compiler/codegen/kernel/combination.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::host {
namespace {

using codegen::Combination;
using codegen::Partial;
using codegen::Partials;

// Chunks of a row of results that are reduced side by side.
constexpr int64_t kChunksSideBySide = 2;

void ForEachValue(Partials* partials, llvm::function_ref<void(llvm::Value*&)> body) {
  for (Partial& partial : *partials) {
    body(partial.value);
    if (partial.place != nullptr) body(partial.place);
  }
}

class Reduction {
 public:
  Reduction(const Environment& environment, const ir::Op& op, llvm::Value* held);
  llvm::Value* Emit();

 private:
  void PreparePrefix();
  void EmitAlongLanes(Chunk chunk);
  void EmitAcrossRows(Chunk chunk);
  void EmitColumns(Chunk chunk, int64_t chunks, unsigned valid_lanes);
  Partials Start(size_t count) const;
  void Add(const Chunk& chunk, Partial* partial);
  void Repeat(llvm::Value* begin, llvm::Value* end, Partials* partials,
              llvm::function_ref<void(llvm::Value* start, Partials* partials)> body) const;
  void Store(const Chunk& chunk, llvm::Value* value);

  const Environment& env_;
  llvm::IRBuilder<>& b_;
  const ir::Op& op_;
  llvm::Value* const held_;
  const std::vector<int64_t>& shape_;  // of the operand
  const int axis_;
  const int lane_side_;
  const int64_t length_;    // of the reduced side
  const int64_t partials_;  // that the opcode asks for
  Evaluator evaluator_;
  const Combination combination_;
  unsigned lanes_ = 1;
  llvm::AllocaInst* scalar_ = nullptr;
  llvm::Value* prefix_ =
      nullptr;  // elements of each row that are inside, from the first on, or null
};

Reduction::Reduction(const Environment& environment, const ir::Op& op, llvm::Value* held)
    : env_(environment),
      b_(environment.builder),
      op_(op),
      held_(held),
      shape_(environment.definitions[op.operands[0]]->type.shape),
      axis_(op.axis),
      lane_side_(LaneSide(shape_)),
      length_(shape_[op.axis]),
      partials_(op.index),
      evaluator_(environment),
      combination_(environment.builder, op, environment.definitions[op.operands[0]]->type.dtype,
                   /*ranks_floats=*/true) {
  evaluator_.CollectOperands(op);
  lanes_ = evaluator_.LanesFor(shape_[lane_side_]);
  if (axis_ == lane_side_) {
    lanes_ = static_cast<unsigned>(std::min<int64_t>(lanes_, partials_));
  }
}

llvm::Value* Reduction::Emit() {
  llvm::Type* element = codegen::ElementType(b_.getContext(), op_.type.dtype);
  if (held_ == nullptr) scalar_ = env_.Slot(element);
  Chunk chunk;
  chunk.lanes = lanes_;
  chunk.lane_side = lanes_ > 1 ? lane_side_ : Chunk::kNoSide;
  evaluator_.EmitBothWays(evaluator_.PrepareLoads(), [&](bool is_inside) {
    chunk.is_inside = is_inside;
    if (!is_inside) PreparePrefix();
    evaluator_.EmitPlaces(shape_, axis_, lane_side_, chunk, [this](const Chunk& start) {
      axis_ == lane_side_ ? EmitAlongLanes(start) : EmitAcrossRows(start);
    });
  });
  return held_ == nullptr ? b_.CreateLoad(element, scalar_) : nullptr;
}

void Reduction::PreparePrefix() {
  if (axis_ != lane_side_ || length_ < 2 * partials_) return;
  evaluator_.TraceLanes(op_.operands[0], shape_.size(), lane_side_);
  prefix_ = evaluator_.PreparePrefix(length_, /*target=*/nullptr, lane_side_);
}

// Lanes run along the reduced side: a partial of the opcode is a lane of one of several vectors.
void Reduction::EmitAlongLanes(Chunk chunk) {
  const auto vectors = static_cast<size_t>(partials_ / lanes_);
  Partials partials = Start(vectors);
  chunk.valid_lanes = lanes_;
  auto turn = [&](llvm::Value* start, Partials* sums) {
    for (size_t v = 0; v < vectors; ++v) {
      chunk.indices[axis_] = b_.CreateAdd(start, env_.Int(static_cast<int64_t>(v) * lanes_));
      Add(chunk, &(*sums)[v]);
    }
  };
  const bool is_inside = chunk.is_inside;
  llvm::Value* begin = env_.Int(0);
  if (!is_inside && prefix_ != nullptr) {
    llvm::Value* end = b_.CreateAnd(prefix_, env_.Int(-partials_));
    chunk.is_inside = true;
    Repeat(begin, end, &partials, turn);
    chunk.is_inside = false;
    begin = end;
  }
  Repeat(begin, env_.Int(length_ / partials_ * partials_), &partials, turn);
  int64_t start = length_ / partials_ * partials_;
  for (size_t v = 0; v < vectors && start < length_; ++v, start += lanes_) {
    chunk.indices[axis_] = env_.Int(start);
    chunk.valid_lanes = static_cast<unsigned>(std::min<int64_t>(lanes_, length_ - start));
    Add(chunk, &partials[v]);
  }
  chunk.indices[axis_] = env_.Int(0);
  chunk.lane_side = Chunk::kNoSide;
  chunk.valid_lanes = chunk.lanes = 1;
  Store(chunk, combination_.OverLanes(combination_.Together(std::move(partials))));
}

// Lanes run along a side that stays: a partial of the opcode is a vector, for each of a row's
// chunks.
void Reduction::EmitAcrossRows(Chunk chunk) {
  const int64_t row = shape_[lane_side_];
  const int64_t turn = kChunksSideBySide * lanes_;
  const int64_t whole = row / turn * turn;
  env_.Loop(env_.Int(0), env_.Int(whole), turn, [&](llvm::Value* index) {
    chunk.indices[lane_side_] = index;
    EmitColumns(chunk, kChunksSideBySide, lanes_);
  });
  for (int64_t start = whole; start < row; start += lanes_) {
    chunk.indices[lane_side_] = env_.Int(start);
    EmitColumns(chunk, 1, static_cast<unsigned>(std::min<int64_t>(lanes_, row - start)));
  }
}

void Reduction::EmitColumns(Chunk chunk, int64_t chunks, unsigned valid_lanes) {
  llvm::Value* const first = chunk.indices[lane_side_];
  chunk.valid_lanes = valid_lanes;
  Partials partials = Start(static_cast<size_t>(partials_ * chunks));
  auto add = [&](llvm::Value* start, int64_t count, Partials* sums) {
    for (int64_t k = 0; k < count; ++k) {
      chunk.indices[axis_] = b_.CreateAdd(start, env_.Int(k));
      for (int64_t c = 0; c < chunks; ++c) {
        chunk.indices[lane_side_] = b_.CreateAdd(first, env_.Int(c * lanes_));
        Add(chunk, &(*sums)[c * partials_ + k]);
      }
    }
  };
  Repeat(env_.Int(0), env_.Int(length_ / partials_ * partials_), &partials,
         [&](llvm::Value* start, Partials* sums) { add(start, partials_, sums); });
  add(env_.Int(length_ / partials_ * partials_), length_ % partials_, &partials);
  chunk.indices[axis_] = env_.Int(0);
  for (int64_t c = 0; c < chunks; ++c) {
    const auto begin = partials.begin() + c * partials_;
    const Partial all = combination_.Together(Partials(begin, begin + partials_));
    chunk.indices[lane_side_] = b_.CreateAdd(first, env_.Int(c * lanes_));
    Store(chunk, combination_.ResultOf(all));
  }
}

Partials Reduction::Start(size_t count) const {
  return Partials(count, combination_.Nothing(lanes_));
}

// Combines a chunk of the operand into a partial; lanes that are no elements leave it as it is.
void Reduction::Add(const Chunk& chunk, Partial* partial) {
  evaluator_.Forget();
  llvm::Value* elements = evaluator_.EvaluateBroadcast(op_.operands[0], chunk);
  const unsigned valid = axis_ == lane_side_ ? chunk.valid_lanes : chunk.lanes;
  const unsigned step = axis_ == lane_side_ ? 1 : 0;
  *partial = combination_.Add(
      *partial, combination_.Of(elements, chunk.lanes, valid, chunk.indices[axis_], step));
}

// Runs `body` for begin, begin + L ... < end (L partials of the opcode), one after the other, each
// with the partials that the last one left.
void Reduction::Repeat(
    llvm::Value* begin, llvm::Value* end, Partials* partials,
    llvm::function_ref<void(llvm::Value* start, Partials* partials)> body) const {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* inside = env_.NewBlock("reduce");
  llvm::BasicBlock* after = env_.NewBlock("reduced");
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), inside, after);
  b_.SetInsertPoint(inside);
  llvm::PHINode* start = b_.CreatePHI(b_.getInt64Ty(), 2);
  start->addIncoming(begin, before);
  std::vector<llvm::Value*> given;
  std::vector<llvm::PHINode*> carried;
  ForEachValue(partials, [&](llvm::Value*& value) {
    given.push_back(value);
    carried.push_back(b_.CreatePHI(value->getType(), 2));
    carried.back()->addIncoming(value, before);
    value = carried.back();
  });
  body(start, partials);
  llvm::Value* next = b_.CreateAdd(start, env_.Int(partials_));
  llvm::BasicBlock* last = b_.GetInsertBlock();
  start->addIncoming(next, last);
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), inside, after);
  b_.SetInsertPoint(after);
  size_t i = 0;
  ForEachValue(partials, [&](llvm::Value*& value) {
    carried[i]->addIncoming(value, last);
    llvm::PHINode* left = b_.CreatePHI(value->getType(), 2);
    left->addIncoming(given[i++], before);
    left->addIncoming(value, last);
    value = left;
  });
}

// `chunk` is of the operand; its index along the reduced side does not count.
void Reduction::Store(const Chunk& chunk, llvm::Value* value) {
  if (held_ == nullptr) {
    b_.CreateStore(value, scalar_);
    return;
  }
  Chunk place = chunk;
  place.indices.erase(place.indices.begin() + axis_);
  if (place.lane_side > axis_) --place.lane_side;
  StoreHeld(env_, held_, op_.type, place, value);
}

}  // namespace

llvm::Value* EmitReduction(const Environment& environment, const ir::Op& op, llvm::Value* held) {
  return Reduction(environment, op, held).Emit();
}

}  // namespace phobos::compiler::host
