// SPDX-License-Identifier: Apache-2.0
//
// Copies of a product's operands as the sums take them: in their type, rounded, rows of b one
// behind the other. Each goes through one stretch of k. What is copied is a tile in memory, or is
// computed here, element by element. One thread a product.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_OPERANDS_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_OPERANDS_H_

#include <cstdint>
#include <vector>

#include "compiler/codegen/host/contraction/plan.h"
#include "compiler/codegen/host/tile/access.h"
#include "compiler/codegen/host/tile/environment.h"
#include "compiler/codegen/host/tile/evaluator.h"
#include "compiler/ir/ir.h"
#include "llvm/IR/Value.h"

namespace phobos::compiler::host {

// A part of the k of one product: which product, the first k, and how many; i64.
struct Stretch {
  llvm::Value* product = nullptr;
  llvm::Value* first = nullptr;
  llvm::Value* depth = nullptr;
};

// Columns of b and of the result, at most as wide as a block of sums.
struct Columns {
  llvm::Value* first = nullptr;  // i64
  int64_t width = 0;
  unsigned vectors = 0;
};

class Operand {
 public:
  // `value` is an operand of the kDot. Environment and plan must outlive it. Emits what does not
  // depend on the stretch.
  Operand(const Environment& environment, const ContractionPlan& plan, ir::ValueId value);

  // The address of a row of the tile in memory, from the first k of a stretch on, where that is
  // `at`: i64 elements from the start of the product. REQUIRES: it is not fused.
  llvm::Value* AddressAt(llvm::Value* product, llvm::Value* at) const;

  // As a: the stretch of each row, rows plan.a_stride apart; writes up to a vector more of each.
  void CopyRows(const Stretch& stretch, llvm::Value* to);
  // As b: row k of the copy has the k-th number of each column, and anything behind them.
  void CopyPanel(const Stretch& stretch, const Columns& columns, llvm::Value* to);

 private:
  void CopyColumns(const Stretch& stretch, const Columns& columns, llvm::Value* to) const;
  llvm::Value* Evaluate(const Stretch& stretch, llvm::Value* row, llvm::Value* column,
                        int64_t valid, bool is_inside);
  llvm::Value* Prepared(llvm::Value* vector) const;
  void Store(llvm::Value* vector, llvm::Value* to, llvm::Value* index) const;

  const Environment& env_;
  llvm::IRBuilder<>& b_;
  const ContractionPlan& plan_;
  const ir::ValueId value_;  // what is copied
  const std::vector<int64_t>& shape_;
  llvm::Value* const held_;  // where it is in memory; null: it is computed here
  Evaluator evaluator_;
  llvm::Value* inside_ = nullptr;  // i1: all that it is computed from is inside; null: always
};

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_OPERANDS_H_
