// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/environment.h"

namespace phobos::compiler::host {

llvm::Value* Environment::Slot(llvm::Type* type) const {
  llvm::BasicBlock& entry = builder.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  llvm::AllocaInst* slot = at_entry.CreateAlloca(type);
  if (type->isArrayTy()) slot->setAlignment(llvm::Align(64));
  return slot;
}

llvm::Value* Environment::And(llvm::Value* a, llvm::Value* b) const {
  if (a == nullptr) return b;
  return b == nullptr ? a : builder.CreateAnd(a, b);
}

llvm::BasicBlock* Environment::NewBlock(const char* name) const {
  return llvm::BasicBlock::Create(builder.getContext(), name,
                                  builder.GetInsertBlock()->getParent());
}

void Environment::Loop(llvm::Value* begin, llvm::Value* end, int64_t step,
                       llvm::function_ref<void(llvm::Value*)> body) const {
  llvm::BasicBlock* before = builder.GetInsertBlock();
  llvm::BasicBlock* inside = NewBlock("loop");
  llvm::BasicBlock* after = NewBlock("after_loop");
  builder.CreateCondBr(builder.CreateICmpSLT(begin, end), inside, after);
  builder.SetInsertPoint(inside);
  llvm::PHINode* index = builder.CreatePHI(begin->getType(), 2);
  index->addIncoming(begin, before);
  body(index);
  llvm::Value* next = builder.CreateAdd(index, llvm::ConstantInt::get(index->getType(), step), "",
                                        /*HasNUW=*/false, /*HasNSW=*/true);
  index->addIncoming(next, builder.GetInsertBlock());
  builder.CreateCondBr(builder.CreateICmpSLT(next, end), inside, after);
  builder.SetInsertPoint(after);
}

void Environment::Branch(llvm::Value* condition, llvm::function_ref<void()> then,
                         llvm::function_ref<void()> otherwise) const {
  if (condition == nullptr) {
    then();
    return;
  }
  llvm::BasicBlock* yes = NewBlock("then");
  llvm::BasicBlock* no = NewBlock("else");
  llvm::BasicBlock* after = NewBlock("after_if");
  builder.CreateCondBr(condition, yes, no);
  builder.SetInsertPoint(yes);
  then();
  builder.CreateBr(after);
  builder.SetInsertPoint(no);
  otherwise();
  builder.CreateBr(after);
  builder.SetInsertPoint(after);
}

}  // namespace phobos::compiler::host
