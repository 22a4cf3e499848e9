// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/kernel/environment.h"

#include "compiler/codegen/arithmetic.h"
#include "llvm/ADT/StringExtras.h"

namespace phobos::compiler::codegen {

Environment::Environment(const ir::Function& ir_function, llvm::IRBuilder<>& ir_builder)
    : function(ir_function),
      builder(ir_builder),
      tensors(ir_function.params.size()),
      arguments(ir_function.params.size()),
      definitions(ir_function.value_count),
      scalars(ir_function.value_count),
      variables(ir_function.vars.size()),
      loop_indices(ir_function.loop_count) {
  Define(function.body);
  if (!function.fast_math) return;
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  flags.setAllowReciprocal();
  flags.setApproxFunc();
  builder.setFastMathFlags(flags);
}

void Environment::Define(const ir::Block& block) {
  for (const ir::Op& op : block) {
    if (op.result != ir::kNoValue) definitions[op.result] = &op;
    for (const ir::Block& region : op.regions) Define(region);
  }
}

void Environment::ReadSlots(llvm::function_ref<llvm::Value*(size_t)> address,
                            llvm::function_ref<llvm::Value*(size_t)> bits) {
  const size_t params = function.params.size();
  for (size_t i = 0; i < function.extents.size(); ++i) extents.push_back(bits(params + i));
  for (size_t i = 0; i < params; ++i) {
    const ir::Param& param = function.params[i];
    if (!param.is_tensor) {
      llvm::Type* type = ElementType(builder.getContext(), param.dtype);
      llvm::Type* raw = builder.getIntNTy(static_cast<unsigned>(ir::BitWidth(param.dtype)));
      llvm::Value* low = builder.CreateTrunc(bits(i), raw);
      arguments[i] = param.dtype == ir::DType::kBool ? builder.CreateIsNotNull(low)
                                                     : builder.CreateBitCast(low, type);
      continue;
    }
    Tensor& tensor = tensors[i];
    tensor.address = address(i);
    for (const ir::Dim& dim : param.dims) {
      tensor.sides.push_back(dim.extent < 0 ? Int(dim.literal) : extents[dim.extent]);
    }
    tensor.elements = Int(1);
    tensor.strides.resize(tensor.sides.size());
    for (size_t d = tensor.sides.size(); d-- > 0;) {
      tensor.strides[d] = tensor.elements;
      tensor.elements = builder.CreateMul(tensor.elements, tensor.sides[d]);
    }
  }
}

llvm::AllocaInst* Environment::Slot(llvm::Type* type) const {
  llvm::BasicBlock& entry = builder.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  return at_entry.CreateAlloca(type);
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

llvm::Value* Environment::Choose(llvm::Value* condition, llvm::function_ref<llvm::Value*()> then,
                                 llvm::Value* otherwise) const {
  llvm::Value* made = nullptr;
  llvm::BasicBlock* from = nullptr;
  Branch(
      condition,
      [&] {
        made = then();
        from = builder.GetInsertBlock();
      },
      [] {});
  if (condition == nullptr) return made;
  llvm::PHINode* joined = builder.CreatePHI(made->getType(), 2);
  for (llvm::BasicBlock* block : llvm::predecessors(builder.GetInsertBlock())) {
    joined->addIncoming(block == from ? made : otherwise, block);
  }
  return joined;
}

std::string EntryName(const ir::Function& function) {
  std::string name = "phobos_";
  for (char c : function.name) name += llvm::isAlnum(c) ? c : '_';
  return name;
}

}  // namespace phobos::compiler::codegen
