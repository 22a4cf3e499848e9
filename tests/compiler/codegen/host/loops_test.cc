// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/object/loops.h"

#include <gtest/gtest.h>

#include <string>

#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

namespace phobos::compiler::host {
namespace {

// for (i = 0; i < 64; i += 8) out[row OP stride + (i + 3)] = i.
class LoopTest : public testing::Test {
 protected:
  LoopTest() {
    llvm::Type* i64 = b_.getInt64Ty();
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), i64, i64}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module_);
    before_ = llvm::BasicBlock::Create(context_, "before", function_);
    loop_ = llvm::BasicBlock::Create(context_, "loop", function_);
    after_ = llvm::BasicBlock::Create(context_, "after", function_);
  }

  void Emit(llvm::Instruction::BinaryOps of_row) {
    b_.SetInsertPoint(before_);
    b_.CreateBr(loop_);
    b_.SetInsertPoint(loop_);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(b_.getInt64(0), before_);
    of_row_ = llvm::cast<llvm::Instruction>(
        b_.CreateBinOp(of_row, function_->getArg(1), function_->getArg(2)));
    llvm::Value* index = b_.CreateAdd(of_row_, b_.CreateAdd(i, b_.getInt64(3)));
    store_ = b_.CreateStore(i, b_.CreateGEP(b_.getInt64Ty(), function_->getArg(0), index));
    next_ = llvm::cast<llvm::Instruction>(b_.CreateNSWAdd(i, b_.getInt64(8)));
    i->addIncoming(next_, loop_);
    b_.CreateCondBr(b_.CreateICmpSLT(next_, b_.getInt64(64)), loop_, after_);
    b_.SetInsertPoint(after_);
    b_.CreateRetVoid();
    PrepareLoops(module_);
    std::string errors;
    llvm::raw_string_ostream stream(errors);
    EXPECT_FALSE(llvm::verifyModule(module_, &stream)) << stream.str();
  }

  llvm::LLVMContext context_;
  llvm::Module module_{"m", context_};
  llvm::IRBuilder<> b_{context_};
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* before_ = nullptr;
  llvm::BasicBlock* loop_ = nullptr;
  llvm::BasicBlock* after_ = nullptr;
  llvm::Instruction* of_row_ = nullptr;
  llvm::StoreInst* store_ = nullptr;
  llvm::Instruction* next_ = nullptr;
};

TEST_F(LoopTest, WhatIsTheSameInEachTurnIsComputedBefore) {
  Emit(llvm::Instruction::Mul);
  EXPECT_EQ(of_row_->getParent(), before_);
}

TEST_F(LoopTest, WhatMayTrapStays) {
  Emit(llvm::Instruction::UDiv);
  EXPECT_EQ(of_row_->getParent(), loop_);
}

TEST_F(LoopTest, AnAddressIsABaseTheIndexAndAConstant) {
  Emit(llvm::Instruction::Mul);
  const auto* outer = llvm::dyn_cast<llvm::GetElementPtrInst>(store_->getPointerOperand());
  ASSERT_NE(outer, nullptr);
  EXPECT_EQ(outer->getOperand(1), b_.getInt64(3));
  const auto* middle = llvm::dyn_cast<llvm::GetElementPtrInst>(outer->getPointerOperand());
  ASSERT_NE(middle, nullptr);
  EXPECT_TRUE(llvm::isa<llvm::PHINode>(middle->getOperand(1)));
  const auto* base = llvm::dyn_cast<llvm::GetElementPtrInst>(middle->getPointerOperand());
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(base->getParent(), before_);
  EXPECT_EQ(base->getOperand(1), of_row_);
}

TEST_F(LoopTest, TheNextIndexIsComparedAsItIs) {
  Emit(llvm::Instruction::Mul);
  EXPECT_FALSE(next_->hasNoSignedWrap());
}

}  // namespace
}  // namespace phobos::compiler::host
