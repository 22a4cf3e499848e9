// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/reduction/scan.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/host/tile/evaluator.h"
#include "compiler/codegen/host/tile/held.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::host {
namespace {

class Scan {
 public:
  Scan(const Environment& environment, const ir::Op& op, llvm::Value* held)
      : env_(environment),
        b_(environment.builder),
        op_(op),
        held_(held),
        shape_(op.type.shape),
        lane_side_(LaneSide(shape_)),
        evaluator_(environment) {
    evaluator_.CollectOperands(op);
    lanes_ = evaluator_.LanesFor(shape_[lane_side_]);
  }

  void Emit() {
    Chunk chunk;
    chunk.lane_side = lane_side_;
    chunk.lanes = lanes_;
    evaluator_.EmitBothWays(evaluator_.PrepareLoads(), [&](bool is_inside) {
      chunk.is_inside = is_inside;
      evaluator_.EmitPlaces(shape_, op_.axis, lane_side_, chunk, [this](const Chunk& start) {
        op_.axis == lane_side_ ? EmitAlongLanes(start) : EmitAcrossRows(start);
      });
    });
  }

 private:
  void EmitAlongLanes(Chunk chunk);
  void EmitAcrossRows(Chunk chunk);
  void EmitColumns(Chunk chunk);
  llvm::Value* Carry(llvm::Value* sum, int64_t begin, int64_t end, int64_t step,
                     llvm::function_ref<llvm::Value*(llvm::Value* index, llvm::Value* sum)> body);
  llvm::Value* Elements(const Chunk& chunk);
  llvm::Value* Add(llvm::Value* a, llvm::Value* b) const;
  llvm::Value* SumsOf(llvm::Value* elements, llvm::Value* sum) const;
  void Store(const Chunk& chunk, llvm::Value* sums) {
    StoreHeld(env_, held_, op_.type, chunk, sums);
  }

  const Environment& env_;
  llvm::IRBuilder<>& b_;
  const ir::Op& op_;
  llvm::Value* const held_;
  const std::vector<int64_t>& shape_;
  const int lane_side_;
  Evaluator evaluator_;
  unsigned lanes_ = 1;
};

// A vector after the other; the last sum of one goes into the next.
void Scan::EmitAlongLanes(Chunk chunk) {
  const int64_t length = shape_[lane_side_];
  const int64_t whole = length / lanes_ * lanes_;
  chunk.valid_lanes = lanes_;
  auto next = [&](llvm::Value* index, llvm::Value* sum) -> llvm::Value* {
    chunk.indices[lane_side_] = index;
    llvm::Value* sums = SumsOf(Elements(chunk), sum);
    Store(chunk, sums);
    return b_.CreateExtractElement(sums, uint64_t{lanes_ - 1});
  };
  // -0.0 leaves any first element as it is.
  const bool is_float = ir::IsFloat(op_.type.dtype);
  llvm::Value* sum =
      codegen::ConstantOf(b_.getContext(), op_.type.dtype,
                          is_float ? ir::ConstantValue(-0.0) : ir::ConstantValue(int64_t{0}));
  sum = Carry(sum, 0, whole, lanes_, next);
  if (whole == length) return;
  chunk.valid_lanes = static_cast<unsigned>(length - whole);
  next(env_.Int(whole), sum);
}

// The sums of a vector's elements, behind `sum`. Integers may be added in any order; floats one
// after the other.
llvm::Value* Scan::SumsOf(llvm::Value* elements, llvm::Value* sum) const {
  if (ir::IsFloat(op_.type.dtype)) {
    llvm::Value* sums = llvm::PoisonValue::get(elements->getType());
    for (uint64_t lane = 0; lane < lanes_; ++lane) {
      sum = Add(sum, b_.CreateExtractElement(elements, lane));
      sums = b_.CreateInsertElement(sums, sum, lane);
    }
    return sums;
  }
  llvm::Value* zeros = llvm::Constant::getNullValue(elements->getType());
  for (unsigned distance = 1; distance < lanes_; distance *= 2) {
    llvm::SmallVector<int, kMaxLanes> moved(lanes_);
    for (unsigned lane = 0; lane < lanes_; ++lane) {
      moved[lane] = static_cast<int>(lane < distance ? lane : lanes_ + lane - distance);
    }
    elements = b_.CreateAdd(elements, b_.CreateShuffleVector(zeros, elements, moved));
  }
  return b_.CreateAdd(elements, b_.CreateVectorSplat(lanes_, sum));
}

void Scan::EmitAcrossRows(Chunk chunk) {
  const int64_t row = shape_[lane_side_];
  const int64_t whole = row / lanes_ * lanes_;
  chunk.valid_lanes = lanes_;
  env_.Loop(env_.Int(0), env_.Int(whole), lanes_, [&](llvm::Value* index) {
    chunk.indices[lane_side_] = index;
    EmitColumns(chunk);
  });
  if (whole == row) return;
  chunk.indices[lane_side_] = env_.Int(whole);
  chunk.valid_lanes = static_cast<unsigned>(row - whole);
  EmitColumns(chunk);
}

void Scan::EmitColumns(Chunk chunk) {
  chunk.indices[op_.axis] = env_.Int(0);
  llvm::Value* first = Elements(chunk);
  Store(chunk, first);
  Carry(first, 1, shape_[op_.axis], 1, [&](llvm::Value* index, llvm::Value* sum) {
    chunk.indices[op_.axis] = index;
    llvm::Value* sums = Add(sum, Elements(chunk));
    Store(chunk, sums);
    return sums;
  });
}

// Runs `body` for begin, begin + step ... < end, each with what the last one returned; gives what
// the last of all returned.
llvm::Value* Scan::Carry(
    llvm::Value* sum, int64_t begin, int64_t end, int64_t step,
    llvm::function_ref<llvm::Value*(llvm::Value* index, llvm::Value* sum)> body) {
  if (begin >= end) return sum;
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* inside = env_.NewBlock("scan");
  llvm::BasicBlock* after = env_.NewBlock("scanned");
  b_.CreateBr(inside);
  b_.SetInsertPoint(inside);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2);
  llvm::PHINode* carried = b_.CreatePHI(sum->getType(), 2);
  index->addIncoming(env_.Int(begin), before);
  carried->addIncoming(sum, before);
  llvm::Value* last = body(index, carried);
  llvm::Value* next = b_.CreateAdd(index, env_.Int(step));
  index->addIncoming(next, b_.GetInsertBlock());
  carried->addIncoming(last, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, env_.Int(end)), inside, after);
  b_.SetInsertPoint(after);
  return last;
}

llvm::Value* Scan::Elements(const Chunk& chunk) {
  evaluator_.Forget();
  return evaluator_.EvaluateBroadcast(op_.operands[0], chunk);
}

llvm::Value* Scan::Add(llvm::Value* a, llvm::Value* b) const {
  return codegen::EmitElementwise(b_, ir::Opcode::kAdd, op_.type.dtype, {a, b});
}

}  // namespace

void EmitScan(const Environment& environment, const ir::Op& op, llvm::Value* held) {
  Scan(environment, op, held).Emit();
}

}  // namespace phobos::compiler::host
