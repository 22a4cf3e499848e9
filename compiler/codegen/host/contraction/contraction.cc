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

class Contraction {
 public:
  // The sums start from what is at `sums`, or from 0.
  Contraction(const Environment& environment, const ir::Op& dot, llvm::Value* sums, bool has_start,
              llvm::Value* workspace);
  void Emit();

 private:
  // The operands of one stretch of k, and where its sums are.
  struct Stretch {
    llvm::Value* depth = nullptr;  // i64
    Rows a;
    Rows b;
    llvm::Value* sums = nullptr;
    bool starts_from_zero = false;
  };
  // Columns of the result, as wide as a block of sums, and what of b belongs to them.
  struct Panel {
    int64_t width = 0;
    unsigned vectors = 0;
    Rows b;
    llvm::Value* sums = nullptr;
  };

  void EmitProduct(llvm::Value* product);
  void EmitStretch(Stretch stretch);
  void EmitPanel(const Stretch& stretch, llvm::Value* column, int64_t width);
  void EmitBlocks(const Stretch& stretch, const Panel& panel, int64_t first, int64_t count,
                  int64_t first_row, int64_t rows);
  void EmitBlock(const Stretch& stretch, const Panel& panel, llvm::Value* row, int64_t rows);
  Vectors EmitSteps(const Stretch& stretch, const Panel& panel, llvm::Value* a, Vectors sums);
  Vectors EmitStep(const Stretch& stretch, const Panel& panel, llvm::Value* a, llvm::Value* k,
                   const Vectors& sums);
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
  const OperandCopier copier_;
  const llvm::Align align_;  // of a sum
  llvm::Type* const vector_type_;
  llvm::Value* const a_;
  llvm::Value* const b_tile_;
  llvm::Value* const sums_;
  bool has_start_;
  llvm::Value* const copy_of_a_;
  llvm::Value* const copy_of_b_;
};

Contraction::Contraction(const Environment& environment, const ir::Op& dot, llvm::Value* sums,
                         bool has_start, llvm::Value* workspace)
    : env_(environment),
      b_(environment.builder),
      plan_(PlanContraction(dot, environment.definitions[dot.operands[0]]->type,
                            environment.vector_bytes)),
      copier_(environment, plan_),
      align_(ir::ByteSize(plan_.sum_type)),
      vector_type_(llvm::FixedVectorType::get(codegen::ElementType(b_.getContext(), plan_.sum_type),
                                              plan_.lanes)),
      a_(HeldStart(environment, *environment.definitions[dot.operands[0]])),
      b_tile_(HeldStart(environment, *environment.definitions[dot.operands[1]])),
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
  llvm::Value* a = At(plan_.operand_type, a_, Times(product, plan_.m * plan_.k));
  llvm::Value* b = At(plan_.operand_type, b_tile_, Times(product, plan_.k * plan_.n));
  Stretch stretch;
  stretch.sums = At(plan_.sum_type, sums_, Times(product, plan_.m * plan_.n));
  stretch.starts_from_zero = !has_start_;
  auto emit = [&](llvm::Value* begin, llvm::Value* depth) {
    stretch.depth = depth;
    stretch.a = {At(plan_.operand_type, a, begin), plan_.k};
    stretch.b = {At(plan_.operand_type, b, Times(begin, plan_.is_transposed ? 1 : plan_.n)),
                 plan_.is_transposed ? plan_.k : plan_.n};
    EmitStretch(stretch);
  };
  if (plan_.k == plan_.stretch) return emit(env_.Int(0), env_.Int(plan_.k));
  env_.Loop(env_.Int(0), env_.Int(plan_.k), plan_.stretch, [&](llvm::Value* begin) {
    llvm::Value* left = b_.CreateSub(env_.Int(plan_.k), begin);
    emit(begin, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, env_.Int(plan_.stretch)));
  });
}

void Contraction::EmitStretch(Stretch stretch) {
  if (plan_.copies_a) {
    copier_.CopyA(stretch.a, stretch.depth, copy_of_a_);
    stretch.a = {copy_of_a_, plan_.a_stride};
  }
  const int64_t width = plan_.panel_width();
  const int64_t whole = plan_.n / width * width;
  if (whole == width) {
    EmitPanel(stretch, env_.Int(0), width);
  } else if (whole > 0) {
    env_.Loop(env_.Int(0), env_.Int(whole), width,
              [&](llvm::Value* column) { EmitPanel(stretch, column, width); });
  }
  if (whole < plan_.n) EmitPanel(stretch, env_.Int(whole), plan_.n - whole);
}

void Contraction::EmitPanel(const Stretch& stretch, llvm::Value* column, int64_t width) {
  Panel panel;
  panel.width = width;
  panel.vectors = static_cast<unsigned>((width + plan_.lanes - 1) / plan_.lanes);
  panel.sums = At(plan_.sum_type, stretch.sums, column);
  panel.b = {At(plan_.operand_type, stretch.b.address,
                plan_.is_transposed ? Times(column, plan_.k) : column),
             stretch.b.stride};
  if (plan_.copies_b) {
    copier_.CopyB(panel.b, stretch.depth, width, panel.vectors, copy_of_b_);
    panel.b = {copy_of_b_, int64_t{plan_.lanes} * panel.vectors};
  }
  EmitBlocks(stretch, panel, 0, plan_.taller_blocks, 0, plan_.rows + 1);
  EmitBlocks(stretch, panel, plan_.taller_blocks, plan_.blocks,
             plan_.taller_blocks * (plan_.rows + 1), plan_.rows);
}

// The blocks [first, end), all of `rows` rows, from row `first_row` on.
void Contraction::EmitBlocks(const Stretch& stretch, const Panel& panel, int64_t first, int64_t end,
                             int64_t first_row, int64_t rows) {
  if (end - first == 1) return EmitBlock(stretch, panel, env_.Int(first_row), rows);
  if (end == first) return;
  env_.Loop(env_.Int(first_row), env_.Int(first_row + (end - first) * rows), rows,
            [&](llvm::Value* row) { EmitBlock(stretch, panel, row, rows); });
}

void Contraction::EmitBlock(const Stretch& stretch, const Panel& panel, llvm::Value* row,
                            int64_t rows) {
  llvm::Value* a = At(plan_.sum_type, stretch.a.address, Times(row, stretch.a.stride));
  llvm::Value* start = At(plan_.sum_type, panel.sums, Times(row, plan_.n));
  auto address = [&](int64_t r) { return At(plan_.sum_type, start, env_.Int(r * plan_.n)); };
  Vectors sums;
  for (int64_t r = 0; r < rows; ++r) {
    for (unsigned v = 0; v < panel.vectors; ++v) {
      sums.push_back(stretch.starts_from_zero ? llvm::Constant::getNullValue(vector_type_)
                                              : LoadSums(address(r), v));
    }
  }
  sums = EmitSteps(stretch, panel, a, std::move(sums));
  for (int64_t r = 0; r < rows; ++r) {
    for (unsigned v = 0; v < panel.vectors; ++v) {
      StoreSums(panel, address(r), v, sums[static_cast<size_t>(r) * panel.vectors + v]);
    }
  }
}

// for k in [0, depth): at least one; the sums are in registers.
Vectors Contraction::EmitSteps(const Stretch& stretch, const Panel& panel, llvm::Value* a,
                               Vectors sums) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* inside = env_.NewBlock("steps");
  llvm::BasicBlock* after = env_.NewBlock("summed");
  b_.CreateBr(inside);
  b_.SetInsertPoint(inside);
  llvm::PHINode* k = b_.CreatePHI(b_.getInt64Ty(), 2);
  k->addIncoming(env_.Int(0), before);
  Vectors carried;
  for (llvm::Value* sum : sums) {
    llvm::PHINode* phi = b_.CreatePHI(vector_type_, 2);
    phi->addIncoming(sum, before);
    carried.push_back(phi);
  }
  Vectors next = EmitStep(stretch, panel, a, k, carried);
  for (size_t i = 0; i < next.size(); ++i) {
    llvm::cast<llvm::PHINode>(carried[i])->addIncoming(next[i], inside);
  }
  llvm::Value* next_k = b_.CreateAdd(k, env_.Int(1), "", /*HasNUW=*/true, /*HasNSW=*/true);
  k->addIncoming(next_k, inside);
  b_.CreateCondBr(b_.CreateICmpSLT(next_k, stretch.depth), inside, after);
  b_.SetInsertPoint(after);
  return next;
}

Vectors Contraction::EmitStep(const Stretch& stretch, const Panel& panel, llvm::Value* a,
                              llvm::Value* k, const Vectors& sums) {
  llvm::Value* row = At(plan_.sum_type, panel.b.address, Times(k, panel.b.stride));
  Vectors b;
  for (unsigned v = 0; v < panel.vectors; ++v) {
    b.push_back(b_.CreateAlignedLoad(
        vector_type_, At(plan_.sum_type, row, env_.Int(int64_t{plan_.lanes} * v)), align_));
  }
  Vectors next;
  for (size_t i = 0; i < sums.size(); i += panel.vectors) {
    const auto r = static_cast<int64_t>(i / panel.vectors);
    llvm::Value* of_row = At(plan_.sum_type, a, env_.Int(r * stretch.a.stride));
    llvm::Value* element =
        b_.CreateAlignedLoad(vector_type_->getScalarType(), At(plan_.sum_type, of_row, k), align_);
    llvm::Value* spread = b_.CreateVectorSplat(plan_.lanes, element);
    for (unsigned v = 0; v < panel.vectors; ++v) {
      next.push_back(MultiplyAdd(spread, b[v], sums[i + v]));
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
  const int64_t valid = panel.width - int64_t{plan_.lanes} * vector;
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

int64_t ContractionBytes(const ir::Op& dot, const ir::Type& a_type, int64_t vector_bytes) {
  const ContractionPlan plan = PlanContraction(dot, a_type, vector_bytes);
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
