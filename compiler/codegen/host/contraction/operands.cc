// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/contraction/operands.h"

#include <algorithm>
#include <utility>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/conversion.h"
#include "compiler/codegen/host/tile/transpose.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::host {
namespace {

// The value that `operand`, a kStage, stands for where it is not held.
ir::ValueId Source(const Environment& environment, ir::ValueId operand) {
  return environment.held_tiles[operand] != nullptr ? operand
                                                    : environment.definitions[operand]->operands[0];
}

}  // namespace

Operand::Operand(const Environment& environment, const ContractionPlan& plan, ir::ValueId value)
    : env_(environment),
      b_(environment.builder),
      plan_(plan),
      value_(Source(environment, value)),
      shape_(environment.definitions[value]->type.shape),
      held_(environment.held_tiles[value]),
      evaluator_(environment) {
  evaluator_.Collect(value_);
  inside_ = evaluator_.PrepareLoads();
  evaluator_.PrepareRanges();
}

llvm::Value* Operand::AddressAt(llvm::Value* product, llvm::Value* at) const {
  const int64_t elements = shape_[shape_.size() - 2] * shape_.back();
  llvm::Value* offset = b_.CreateAdd(b_.CreateMul(product, env_.Int(elements)), at);
  return b_.CreateGEP(codegen::MemoryType(b_.getContext(), plan_.operand_type), held_, offset);
}

// A vector along the last side, the first `valid` lanes of which are of the tile.
llvm::Value* Operand::Evaluate(const Stretch& stretch, llvm::Value* row, llvm::Value* column,
                               int64_t valid, bool is_inside) {
  Chunk chunk;
  llvm::Value* product = stretch.product;
  for (size_t side = shape_.size() - 2; side-- > 0;) {
    llvm::Value* length = env_.Int(shape_[side]);
    chunk.indices.insert(chunk.indices.begin(),
                         side == 0 ? product : b_.CreateURem(product, length));
    if (side > 0) product = b_.CreateUDiv(product, length);
  }
  chunk.indices.push_back(row);
  chunk.indices.push_back(column);
  chunk.lane_side = static_cast<int>(shape_.size()) - 1;
  chunk.lanes = plan_.lanes;
  chunk.valid_lanes = static_cast<unsigned>(std::min<int64_t>(valid, plan_.lanes));
  chunk.is_inside = is_inside;
  evaluator_.Forget();
  return Prepared(evaluator_.EvaluateBroadcast(value_, chunk));
}

llvm::Value* Operand::Prepared(llvm::Value* value) const {
  if (plan_.precision != ir::Precision::kExact) {
    return codegen::RoundTo(b_, value, plan_.precision);
  }
  if (plan_.operand_type == plan_.sum_type) return value;
  return codegen::EmitCast(b_, value, plan_.operand_type, plan_.sum_type);
}

void Operand::Store(llvm::Value* vector, llvm::Value* to, llvm::Value* index) const {
  llvm::Type* element = codegen::ElementType(b_.getContext(), plan_.sum_type);
  b_.CreateAlignedStore(vector, b_.CreateGEP(element, to, index),
                        llvm::Align(ir::ByteSize(plan_.sum_type)));
}

// The last stretch may end within a vector.
void Operand::CopyRows(const Stretch& stretch, llvm::Value* to) {
  const int64_t lanes = plan_.lanes;
  const int64_t rest = plan_.k % lanes;
  llvm::Value* whole = b_.CreateAnd(stretch.depth, env_.Int(-lanes));
  evaluator_.EmitBothWays(inside_, [&](bool is_inside) {
    env_.Loop(env_.Int(0), env_.Int(plan_.m), 1, [&](llvm::Value* row) {
      llvm::Value* target = b_.CreateMul(row, env_.Int(plan_.a_stride));
      auto copy = [&](llvm::Value* k, int64_t valid) {
        llvm::Value* column = b_.CreateAdd(stretch.first, k);
        Store(Evaluate(stretch, row, column, valid, is_inside), to, b_.CreateAdd(target, k));
      };
      env_.Loop(env_.Int(0), whole, lanes, [&](llvm::Value* k) { copy(k, lanes); });
      if (rest == 0) return;
      env_.Branch(
          b_.CreateICmpSLT(whole, stretch.depth), [&] { copy(whole, rest); }, [] {});
    });
  });
}

void Operand::CopyPanel(const Stretch& stretch, const Columns& columns, llvm::Value* to) {
  if (plan_.is_transposed) return CopyColumns(stretch, columns, to);
  evaluator_.EmitBothWays(inside_, [&](bool is_inside) {
    env_.Loop(env_.Int(0), stretch.depth, 1, [&](llvm::Value* k) {
      llvm::Value* row = b_.CreateAdd(stretch.first, k);
      llvm::Value* target = b_.CreateMul(k, env_.Int(int64_t{plan_.lanes} * columns.vectors));
      for (unsigned v = 0; v < columns.vectors; ++v) {
        const int64_t skipped = int64_t{plan_.lanes} * v;
        llvm::Value* column = b_.CreateAdd(columns.first, env_.Int(skipped));
        Store(Evaluate(stretch, row, column, columns.width - skipped, is_inside), to,
              b_.CreateAdd(target, env_.Int(skipped)));
      }
    });
  });
}

// A row of b is a column of the copy: squares of vectors are turned. Reads up to a vector behind
// the stretch: the tile is in memory, and has room behind it. For a row behind the last one of the
// panel, that one is read once more: nobody asks for what becomes of it.
void Operand::CopyColumns(const Stretch& stretch, const Columns& columns, llvm::Value* to) const {
  llvm::Type* element = codegen::MemoryType(b_.getContext(), plan_.operand_type);
  llvm::Type* vector = llvm::FixedVectorType::get(element, plan_.lanes);
  const llvm::Align align(ir::ByteSize(plan_.operand_type));
  const int64_t lanes = plan_.lanes;
  const int64_t width = lanes * columns.vectors;  // of a row of the copy
  const bool is_cut = columns.width % lanes != 0;
  llvm::Value* from = AddressAt(
      stretch.product, b_.CreateAdd(b_.CreateMul(columns.first, env_.Int(plan_.k)), stretch.first));
  auto start_of = [&](llvm::Value* column, llvm::Value* k, int64_t lane) {
    llvm::Value* row = column;
    if (is_cut) {
      row = b_.CreateAdd(row, env_.Int(std::exchange(lane, 0)));
      row = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, row, env_.Int(columns.width - 1));
    }
    llvm::Value* start = b_.CreateAdd(b_.CreateMul(row, env_.Int(plan_.k)), k);
    return b_.CreateGEP(element, b_.CreateGEP(element, from, start), env_.Int(lane * plan_.k));
  };
  auto copy = [&](llvm::Value* column) {
    env_.Loop(env_.Int(0), stretch.depth, lanes, [&](llvm::Value* k) {
      VectorRows rows;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        rows.push_back(Prepared(b_.CreateAlignedLoad(vector, start_of(column, k, lane), align)));
      }
      TransposeRows(b_, &rows);
      llvm::Value* target = b_.CreateAdd(b_.CreateMul(k, env_.Int(width)), column);
      for (int64_t step = 0; step < lanes; ++step) {
        Store(rows[static_cast<size_t>(step)], to, b_.CreateAdd(target, env_.Int(step * width)));
      }
    });
  };
  if (columns.width <= lanes) return copy(env_.Int(0));
  env_.Loop(env_.Int(0), env_.Int(columns.width), lanes, copy);
}

}  // namespace phobos::compiler::host
