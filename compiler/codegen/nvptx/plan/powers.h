// SPDX-License-Identifier: Apache-2.0
//
// Which powers of two divide the scalars and sides of a function at every launch. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_POWERS_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_POWERS_H_

#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

class Powers {
 public:
  // The function must outlive this.
  explicit Powers(const ir::Function& function);

  // A number n such that 2^n divides the scalar; at most 32.
  int In(ir::ValueId value);
  int In(const ir::Dim& dim) const;

 private:
  void FindLoops(const ir::Block& block);
  int Find(const ir::Op& op);

  const ir::Function& function_;
  const std::vector<const ir::Op*> definitions_;
  std::vector<const ir::Op*> loops_;  // by loop id
  std::vector<int> powers_;           // by ValueId, where found already
};

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_POWERS_H_
