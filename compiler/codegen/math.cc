// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/math.h"

namespace phobos::compiler::codegen {

llvm::Value* EmitMath(llvm::IRBuilderBase& b, ir::Opcode opcode, llvm::ArrayRef<llvm::Value*> v) {
  llvm::Type* type = v[0]->getType();
  if (opcode == ir::Opcode::kSqrt) return b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, v[0]);
  return llvm::Constant::getNullValue(type);
}

}  // namespace phobos::compiler::codegen
