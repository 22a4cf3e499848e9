// SPDX-License-Identifier: Apache-2.0
//
// How a reduction combines elements: the arithmetic of its opcode on vectors, and the order of
// partial results, on any target. Where elements come from and results go is the back ends'. One
// thread.
#ifndef PHOBOS_COMPILER_CODEGEN_KERNEL_COMBINATION_H_
#define PHOBOS_COMPILER_CODEGEN_KERNEL_COMBINATION_H_

#include <vector>

#include "compiler/ir/ir.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::codegen {

// What some elements combine to: vectors, one partial a lane, or scalars.
struct Partial {
  llvm::Value* value = nullptr;
  llvm::Value* place = nullptr;  // i32, where the value stands; null: nobody asks
};
using Partials = std::vector<Partial>;

class Combination {
 public:
  // Of elements of `dtype`, for the reduction `op`. Both must outlive it. Partials have that type;
  // but where `ranks_floats`, a largest or smallest float is kept as an unsigned integer that is in
  // the same order, NaNs beyond all else.
  Combination(llvm::IRBuilder<>& builder, const ir::Op& op, ir::DType dtype,
              bool ranks_floats = false);

  // What leaves any partial as it is, to the bit, when combined with it. One lane: a scalar.
  Partial Nothing(unsigned lanes) const;

  // The elements of a chunk, the first of which stands at `first` (i64) along the reduced side, and
  // the next ones `step` (0 or 1) further each. Lanes behind the `valid` first are nothing.
  Partial Of(llvm::Value* elements, unsigned lanes, unsigned valid, llvm::Value* first,
             unsigned step) const;

  // `later` stands behind all of `partial`, lane by lane.
  Partial Add(const Partial& partial, const Partial& later) const;

  // Two partials of any elements, lane by lane. Changed about, they give the same.
  Partial Combine(const Partial& low, const Partial& high) const;

  // A power of two of partials, halved until one is left.
  Partial Together(Partials partials) const;

  // The lanes of a vector, halved until one is left: the reduction's result.
  llvm::Value* OverLanes(Partial partial) const;
  // The reduction's results, one a lane.
  llvm::Value* ResultOf(const Partial& partial) const;

 private:
  llvm::Value* Emit(ir::Opcode opcode, llvm::Value* a, llvm::Value* b = nullptr) const;
  llvm::Value* Beats(llvm::Value* a, llvm::Value* b) const;
  ir::ConstantValue Identity() const;
  // Both ways between floats and the integers that are in their order.
  llvm::Value* Ranked(llvm::Value* floats) const;
  llvm::Value* Unranked(llvm::Value* ranks) const;
  llvm::Value* Turned(llvm::Value* bits) const;
  llvm::Constant* LowestRank(llvm::Type* type) const;

  llvm::IRBuilder<>& b_;
  const ir::Opcode reduction_;
  const ir::DType dtype_;
  const bool gives_place_;
  const bool is_ranked_;  // whether partials are integers that are in the order of the floats
};

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_KERNEL_COMBINATION_H_
