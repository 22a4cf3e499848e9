// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/contraction/contraction.h"

#include <algorithm>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/host/contraction/operands.h"
#include "compiler/codegen/host/contraction/plan.h"
#include "compiler/codegen/host/tile/held.h"
#include "compiler/codegen/host/tile/statement.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::host {
namespace {

using Vectors = llvm::SmallVector<llvm::Value*, 32>;

int64_t CopyBytes(const ContractionPlan& plan, int64_t elements) {
  return (elements * ir::ByteSize(plan.sum_type) + 63) / 64 * 64;
}

ContractionOperands OperandsOf(const Environment& environment, const ir::Op& dot) {
  return {environment.definitions[dot.operands[0]]->type,
          environment.held_tiles[dot.operands[0]] == nullptr,
          environment.held_tiles[dot.operands[1]] == nullptr};
}

class Contraction {
 public:
  // The sums start from what is at `sums`, or from 0.
  Contraction(const Environment& environment, const ir::Op& dot, llvm::Value* sums, bool has_start,
              llvm::Value* workspace);
  void Emit();

 private:
  // A tile of numbers in the sums' type: the address of its first one, elements between rows.
  struct Rows {
    llvm::Value* address = nullptr;
    int64_t stride = 0;
  };
  // What one block of sums after the other is computed from, and where it is stored.
  struct Panel {
    Columns columns;
    llvm::Value* depth = nullptr;  // i64
    Rows a;
    Rows b;
    llvm::Value* sums = nullptr;
  };

  void EmitProduct(llvm::Value* product);
  void EmitStretch(const Stretch& stretch);
  void EmitPanel(const Stretch& stretch, const Rows& a, llvm::Value* column, int64_t width);
  void EmitBlocks(const Panel& panel, int64_t count, int64_t first_row, int64_t rows);
  void EmitBlock(const Panel& panel, llvm::Value* row, int64_t rows);
  Vectors EmitSteps(const Panel& panel, llvm::Value* a, const Vectors& sums);
  Vectors EmitStep(const Panel& panel, llvm::Value* a, llvm::Value* b, const Vectors& sums);
  void Clear();

  llvm::Value* LoadSums(llvm::Value* address, unsigned vector) const;
  void StoreSums(const Panel& panel, llvm::Value* address, unsigned vector,
                 llvm::Value* value) const;
  llvm::Constant* MaskOf(const Panel& panel, unsigned vector) const;
  llvm::Value* MultiplyAdd(llvm::Value* a, llvm::Value* b, llvm::Value* sum) const;
  llvm::Value* At(ir::DType dtype, llvm::Value* address, llvm::Value* index) const {
    return b_.CreateGEP(codegen::MemoryType(b_.getContext(), dtype), address, index);
  }
  llvm::Value* Times(llvm::Value* index, int64_t factor) const {
    return b_.CreateMul(index, env_.Int(factor));
  }

  const Environment& env_;
  llvm::IRBuilder<>& b_;
  const ContractionPlan plan_;
  Operand a_;
  Operand b_tile_;
  const llvm::Align align_;  // of a sum
  llvm::Type* const vector_type_;
  llvm::Value* const sums_;
  bool has_start_;
  llvm::Value* const copy_of_a_;
  llvm::Value* const copy_of_b_;
};

Contraction::Contraction(const Environment& environment, const ir::Op& dot, llvm::Value* sums,
                         bool has_start, llvm::Value* workspace)
    : env_(environment),
      b_(environment.builder),
      plan_(PlanContraction(dot, OperandsOf(environment, dot), environment.chip.vector_bytes)),
      a_(environment, plan_, dot.operands[0]),
      b_tile_(environment, plan_, dot.operands[1]),
      align_(ir::ByteSize(plan_.sum_type)),
      vector_type_(llvm::FixedVectorType::get(codegen::ElementType(b_.getContext(), plan_.sum_type),
                                              plan_.lanes)),
      sums_(sums),
      has_start_(has_start),
      copy_of_a_(workspace),
      copy_of_b_(
          b_.CreateConstGEP1_64(b_.getInt8Ty(), workspace, CopyBytes(plan_, plan_.a_elements()))) {}

void Contraction::Emit() {
  if (!has_start_ && plan_.k > plan_.stretch) Clear();
  if (plan_.batch == 1) return EmitProduct(env_.Int(0));
  env_.Loop(env_.Int(0), env_.Int(plan_.batch), 1,
            [&](llvm::Value* product) { EmitProduct(product); });
}

// All sums, for several stretches add to them. Whole vectors: a tile has room behind it.
void Contraction::Clear() {
  has_start_ = true;
  env_.Loop(env_.Int(0), env_.Int(plan_.batch * plan_.m * plan_.n), plan_.lanes,
            [&](llvm::Value* index) {
              b_.CreateAlignedStore(llvm::Constant::getNullValue(vector_type_),
                                    At(plan_.sum_type, sums_, index), align_);
            });
}

void Contraction::EmitProduct(llvm::Value* product) {
  if (plan_.k == plan_.stretch) return EmitStretch({product, env_.Int(0), env_.Int(plan_.k)});
  env_.Loop(env_.Int(0), env_.Int(plan_.k), plan_.stretch, [&](llvm::Value* first) {
    llvm::Value* left = b_.CreateSub(env_.Int(plan_.k), first);
    EmitStretch({product, first,
                 b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, env_.Int(plan_.stretch))});
  });
}

void Contraction::EmitStretch(const Stretch& stretch) {
  Rows a{copy_of_a_, plan_.a_stride};
  if (plan_.copies_a) {
    a_.CopyRows(stretch, copy_of_a_);
  } else {
    a.address = a_.AddressAt(stretch.product, stretch.first);
  }
  const int64_t width = plan_.panel_width();
  const int64_t whole = plan_.n / width * width;
  if (whole == width) {
    EmitPanel(stretch, a, env_.Int(0), width);
  } else if (whole > 0) {
    env_.Loop(env_.Int(0), env_.Int(whole), width,
              [&](llvm::Value* column) { EmitPanel(stretch, a, column, width); });
  }
  if (whole < plan_.n) EmitPanel(stretch, a, env_.Int(whole), plan_.n - whole);
}

void Contraction::EmitPanel(const Stretch& stretch, const Rows& a, llvm::Value* column,
                            int64_t width) {
  Panel panel;
  panel.columns = {column, width, static_cast<unsigned>((width + plan_.lanes - 1) / plan_.lanes)};
  panel.depth = stretch.depth;
  panel.a = a;
  if (plan_.copies_b) {
    b_tile_.CopyPanel(stretch, panel.columns, copy_of_b_);
    panel.b = {copy_of_b_, int64_t{plan_.lanes} * panel.columns.vectors};
  } else {
    llvm::Value* first = b_.CreateAdd(Times(stretch.first, plan_.n), column);
    panel.b = {b_tile_.AddressAt(stretch.product, first), plan_.n};
  }
  llvm::Value* start = b_.CreateAdd(Times(stretch.product, plan_.m * plan_.n), column);
  panel.sums = At(plan_.sum_type, sums_, start);
  const int64_t taller_rows = plan_.taller_blocks * (plan_.rows + 1);
  EmitBlocks(panel, plan_.taller_blocks, 0, plan_.rows + 1);
  EmitBlocks(panel, plan_.blocks - plan_.taller_blocks, taller_rows, plan_.rows);
}

// So many blocks of `rows` rows, from row `first_row` on.
void Contraction::EmitBlocks(const Panel& panel, int64_t count, int64_t first_row, int64_t rows) {
  if (count == 1) return EmitBlock(panel, env_.Int(first_row), rows);
  if (count == 0) return;
  env_.Loop(env_.Int(first_row), env_.Int(first_row + count * rows), rows,
            [&](llvm::Value* row) { EmitBlock(panel, row, rows); });
}

void Contraction::EmitBlock(const Panel& panel, llvm::Value* row, int64_t rows) {
  const unsigned vectors = panel.columns.vectors;
  llvm::Value* a = At(plan_.sum_type, panel.a.address, Times(row, panel.a.stride));
  llvm::Value* start = At(plan_.sum_type, panel.sums, Times(row, plan_.n));
  auto address = [&](int64_t r) { return At(plan_.sum_type, start, env_.Int(r * plan_.n)); };
  Vectors sums;
  for (int64_t r = 0; r < rows; ++r) {
    for (unsigned v = 0; v < vectors; ++v) {
      sums.push_back(has_start_ ? LoadSums(address(r), v)
                                : llvm::Constant::getNullValue(vector_type_));
    }
  }
  sums = EmitSteps(panel, a, sums);
  for (int64_t r = 0; r < rows; ++r) {
    for (unsigned v = 0; v < vectors; ++v) {
      StoreSums(panel, address(r), v, sums[static_cast<size_t>(r) * vectors + v]);
    }
  }
}

// For each k of the stretch, of which there is one at least. The sums stay in registers, and so do
// two pointers: all else that is read lies constants away from them.
Vectors Contraction::EmitSteps(const Panel& panel, llvm::Value* a, const Vectors& sums) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* inside = env_.NewBlock("steps");
  llvm::BasicBlock* after = env_.NewBlock("summed");
  llvm::Value* end = At(plan_.sum_type, a, panel.depth);
  b_.CreateBr(inside);
  b_.SetInsertPoint(inside);
  auto carry = [&](llvm::Value* first) {
    llvm::PHINode* phi = b_.CreatePHI(first->getType(), 2);
    phi->addIncoming(first, before);
    return phi;
  };
  llvm::PHINode* a_at = carry(a);
  llvm::PHINode* b_at = carry(panel.b.address);
  Vectors carried;
  for (llvm::Value* sum : sums) carried.push_back(carry(sum));
  Vectors next = EmitStep(panel, a_at, b_at, carried);
  for (size_t i = 0; i < next.size(); ++i) {
    llvm::cast<llvm::PHINode>(carried[i])->addIncoming(next[i], inside);
  }
  llvm::Value* next_a = At(plan_.sum_type, a_at, env_.Int(1));
  a_at->addIncoming(next_a, inside);
  b_at->addIncoming(At(plan_.sum_type, b_at, env_.Int(panel.b.stride)), inside);
  b_.CreateCondBr(b_.CreateICmpNE(next_a, end), inside, after);
  b_.SetInsertPoint(after);
  return next;
}

// `a` and `b`: the step's element of the block's first row, and the row of b.
Vectors Contraction::EmitStep(const Panel& panel, llvm::Value* a, llvm::Value* b,
                              const Vectors& sums) {
  const unsigned vectors = panel.columns.vectors;
  Vectors row;
  for (unsigned v = 0; v < vectors; ++v) {
    row.push_back(b_.CreateAlignedLoad(
        vector_type_, At(plan_.sum_type, b, env_.Int(int64_t{plan_.lanes} * v)), align_));
  }
  Vectors next;
  for (size_t i = 0; i < sums.size(); i += vectors) {
    const auto r = static_cast<int64_t>(i / vectors);
    llvm::Value* element = b_.CreateAlignedLoad(
        vector_type_->getScalarType(), At(plan_.sum_type, a, env_.Int(r * panel.a.stride)), align_);
    llvm::Value* spread = b_.CreateVectorSplat(plan_.lanes, element);
    for (unsigned v = 0; v < vectors; ++v) {
      next.push_back(MultiplyAdd(spread, row[v], sums[i + v]));
    }
  }
  return next;
}

llvm::Value* Contraction::MultiplyAdd(llvm::Value* a, llvm::Value* b, llvm::Value* sum) const {
  if (!ir::IsFloat(plan_.sum_type)) return b_.CreateAdd(b_.CreateMul(a, b), sum);
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_type_}, {a, b, sum});
}

// Null: all lanes of the vector are columns of the panel.
llvm::Constant* Contraction::MaskOf(const Panel& panel, unsigned vector) const {
  const int64_t valid = panel.columns.width - int64_t{plan_.lanes} * vector;
  if (valid >= plan_.lanes) return nullptr;
  llvm::SmallVector<llvm::Constant*, 64> lanes;
  for (int64_t lane = 0; lane < plan_.lanes; ++lane) lanes.push_back(b_.getInt1(lane < valid));
  return llvm::ConstantVector::get(lanes);
}

// Reads behind the columns of the last panel: a tile has room there.
llvm::Value* Contraction::LoadSums(llvm::Value* address, unsigned vector) const {
  address = At(plan_.sum_type, address, env_.Int(int64_t{plan_.lanes} * vector));
  return b_.CreateAlignedLoad(vector_type_, address, align_);
}

void Contraction::StoreSums(const Panel& panel, llvm::Value* address, unsigned vector,
                            llvm::Value* value) const {
  address = At(plan_.sum_type, address, env_.Int(int64_t{plan_.lanes} * vector));
  if (llvm::Constant* mask = MaskOf(panel, vector)) {
    b_.CreateMaskedStore(value, address, align_, mask);
  } else {
    b_.CreateAlignedStore(value, address, align_);
  }
}

// Whether the statement writes a variable that `acc` is: then the sums are where they belong.
bool IsInPlace(const Environment& environment, const ir::Op& statement, ir::ValueId acc) {
  const ir::Op& op = *environment.definitions[acc];
  return statement.opcode == ir::Opcode::kWriteVar && op.opcode == ir::Opcode::kReadVar &&
         op.index == statement.index;
}

}  // namespace

int64_t ContractionBytes(const ir::Op& dot, const ContractionOperands& operands,
                         int64_t vector_bytes) {
  const ContractionPlan plan = PlanContraction(dot, operands, vector_bytes);
  return CopyBytes(plan, plan.a_elements()) + CopyBytes(plan, plan.b_elements());
}

void EmitContraction(const Environment& environment, const ir::Op& statement,
                     llvm::Value* workspace) {
  const ir::Op& dot = *environment.definitions[statement.operands[0]];
  const ir::ValueId acc = dot.operands[2];
  if (acc != ir::kNoValue && !IsInPlace(environment, statement, acc)) {
    ir::Op start = statement;
    start.operands[0] = acc;
    EmitTileStatement(environment, start);
  }
  llvm::Value* sums = statement.opcode == ir::Opcode::kStage
                          ? environment.held_tiles[statement.result]
                          : environment.variables[statement.index];
  Contraction(environment, dot, sums, acc != ir::kNoValue, workspace).Emit();
}

}  // namespace phobos::compiler::host
