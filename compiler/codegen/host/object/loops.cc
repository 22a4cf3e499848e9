// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/object/loops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

namespace phobos::compiler::host {
namespace {

class Loop {
 public:
  Loop(llvm::BasicBlock& block, llvm::BasicBlock& before) : block_(block), before_(before) {}
  void Prepare();

 private:
  // What an index is the sum of.
  struct Parts {
    llvm::SmallVector<llvm::Value*, 4> invariant;  // but for constants
    llvm::SmallVector<llvm::Value*, 4> variant;
    llvm::SmallVector<llvm::Value*, 4> constant;
  };

  bool IsInside(const llvm::Value* value) const {
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
    return instruction != nullptr && instruction->getParent() == &block_;
  }
  bool IsInvariant(const llvm::Instruction& instruction) const;
  void Split(llvm::Value* sum, Parts* parts) const;
  void SplitAddress(llvm::GetElementPtrInst& address);
  void CompareNextIndex();

  llvm::BasicBlock& block_;
  llvm::BasicBlock& before_;
};

void Loop::Prepare() {
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(block_)) {
    if (IsInvariant(instruction)) {
      instruction.moveBefore(before_.getTerminator());
    } else if (auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction)) {
      SplitAddress(*address);
    }
  }
  CompareNextIndex();
}

// Vectors stay: LLVM moves those for which registers are left.
bool Loop::IsInvariant(const llvm::Instruction& instruction) const {
  const llvm::Type* type = instruction.getType();
  if (!type->isIntegerTy() && !type->isPointerTy()) return false;
  if (llvm::isa<llvm::PHINode>(instruction) || instruction.mayReadOrWriteMemory()) return false;
  if (!llvm::isSafeToSpeculativelyExecute(&instruction)) return false;
  return llvm::none_of(instruction.operands(),
                       [this](const llvm::Use& use) { return IsInside(use.get()); });
}

void Loop::Split(llvm::Value* sum, Parts* parts) const {
  if (llvm::isa<llvm::ConstantInt>(sum)) return parts->constant.push_back(sum);
  if (!IsInside(sum)) return parts->invariant.push_back(sum);
  auto* instruction = llvm::cast<llvm::Instruction>(sum);
  if (instruction->getOpcode() != llvm::Instruction::Add) return parts->variant.push_back(sum);
  for (llvm::Value* operand : instruction->operands()) Split(operand, parts);
}

void Loop::SplitAddress(llvm::GetElementPtrInst& address) {
  if (address.getNumIndices() != 1 || IsInside(address.getPointerOperand())) return;
  llvm::Value* index = *address.idx_begin();
  llvm::Type* element = address.getSourceElementType();
  llvm::IRBuilder<> b(before_.getTerminator());
  if (index->getType() != b.getInt64Ty()) return;
  Parts parts;
  Split(index, &parts);
  if (parts.variant.empty() || parts.invariant.size() + parts.constant.size() == 0) return;
  llvm::Value* place = address.getPointerOperand();
  for (llvm::Value* part : parts.invariant) place = b.CreateGEP(element, place, part);
  b.SetInsertPoint(&address);
  llvm::Value* turn = parts.variant[0];
  for (llvm::Value* part : llvm::drop_begin(parts.variant)) turn = b.CreateAdd(turn, part);
  place = b.CreateGEP(element, place, turn);
  for (llvm::Value* part : parts.constant) place = b.CreateGEP(element, place, part);
  address.replaceAllUsesWith(place);
  address.eraseFromParent();
}

// What cannot be known not to overflow is not compared by way of the index before it, which would
// have to be kept beside the next one.
void Loop::CompareNextIndex() {
  const auto* branch = llvm::cast<llvm::BranchInst>(block_.getTerminator());
  const auto* compared = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
  if (compared == nullptr) return;
  auto* next = llvm::dyn_cast<llvm::BinaryOperator>(compared->getOperand(0));
  if (next != nullptr && next->getOpcode() == llvm::Instruction::Add && IsInside(next)) {
    next->dropPoisonGeneratingFlags();
  }
}

}  // namespace

void PrepareLoops(llvm::Module& module) {
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      if (!llvm::is_contained(llvm::successors(&block), &block)) continue;
      llvm::SmallVector<llvm::BasicBlock*, 4> others;
      for (llvm::BasicBlock* from : llvm::predecessors(&block)) {
        if (from != &block) others.push_back(from);
      }
      if (others.size() == 1) Loop(block, *others[0]).Prepare();
    }
  }
}

}  // namespace phobos::compiler::host
