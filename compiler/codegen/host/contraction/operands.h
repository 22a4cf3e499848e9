// SPDX-License-Identifier: Apache-2.0
//
// Copies of a product's operands as the sums take them: in their type, rounded, rows of b one
// behind the other. Each goes through one stretch of k. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_OPERANDS_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_OPERANDS_H_

#include <cstdint>

#include "compiler/codegen/host/contraction/plan.h"
#include "compiler/codegen/host/tile/environment.h"
#include "llvm/IR/Value.h"

namespace phobos::compiler::host {

// Elements of a tile that lies in memory: `address` is that of the first one of the stretch, rows
// are `stride` elements apart.
struct Rows {
  llvm::Value* address = nullptr;
  int64_t stride = 0;
};

class OperandCopier {
 public:
  // Both must outlive it.
  OperandCopier(const Environment& environment, const ContractionPlan& plan)
      : env_(environment), b_(environment.builder), plan_(plan) {}

  // The first `depth` (i64) elements of each of the m rows of a; writes and reads up to a vector
  // beyond them.
  void CopyA(const Rows& from, llvm::Value* depth, llvm::Value* to) const;
  // `width` columns of b from the first element of `from` on, `vectors` vectors: row k of the copy
  // has the k-th number of each column, and anything behind them.
  void CopyB(const Rows& from, llvm::Value* depth, int64_t width, unsigned vectors,
             llvm::Value* to) const;

 private:
  void CopyRowsOfB(const Rows& from, llvm::Value* depth, unsigned vectors, llvm::Value* to) const;
  void CopyColumnsOfB(const Rows& from, llvm::Value* depth, int64_t width, unsigned vectors,
                      llvm::Value* to) const;
  llvm::Value* LoadPrepared(llvm::Value* address) const;
  void Store(llvm::Value* vector, llvm::Value* to, llvm::Value* index) const;
  llvm::Value* At(llvm::Value* address, llvm::Value* index) const;

  const Environment& env_;
  llvm::IRBuilder<>& b_;
  const ContractionPlan& plan_;
};

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_CONTRACTION_OPERANDS_H_
