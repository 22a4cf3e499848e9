// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/streaming.h"

#include <vector>

#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"

namespace phobos::compiler::nvptx {
namespace {

constexpr unsigned kWords = 4;

void Replace(llvm::LoadInst* load) {
  llvm::IRBuilder<> b(load);
  auto* words =
      llvm::StructType::get(b.getContext(), std::vector<llvm::Type*>(kWords, b.getInt32Ty()));
  auto* type = llvm::FunctionType::get(words, {load->getPointerOperandType()}, /*isVarArg=*/false);
  auto* instruction = llvm::InlineAsm::get(type, "ld.global.cs.nc.v4.b32 {$0, $1, $2, $3}, [$4];",
                                           "=r,=r,=r,=r,l,~{memory}", /*hasSideEffects=*/false);
  llvm::CallInst* call = b.CreateCall(type, instruction, {load->getPointerOperand()});
  // It touches memory, as far as machine passes are told: none takes it out from behind the tests
  // that it stands behind. Before them, it only reads.
  call->setOnlyReadsMemory();
  call->setDoesNotThrow();
  llvm::Value* loaded = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getInt32Ty(), kWords));
  for (unsigned i = 0; i < kWords; ++i) {
    loaded = b.CreateInsertElement(loaded, b.CreateExtractValue(call, i), i);
  }
  load->replaceAllUsesWith(b.CreateBitCast(loaded, load->getType()));
  load->eraseFromParent();
}

}  // namespace

void MakeStreamingLoads(llvm::Module& module) {
  const llvm::DataLayout& layout = module.getDataLayout();
  std::vector<llvm::LoadInst*> loads;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
        if (load == nullptr || !load->hasMetadata(llvm::LLVMContext::MD_nontemporal)) continue;
        if (layout.getTypeStoreSize(load->getType()) == 4 * kWords) loads.push_back(load);
      }
    }
  }
  for (llvm::LoadInst* load : loads) Replace(load);
}

}  // namespace phobos::compiler::nvptx
