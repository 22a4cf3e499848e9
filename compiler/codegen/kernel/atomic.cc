// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/kernel/atomic.h"

#include <optional>

#include "compiler/codegen/arithmetic.h"
#include "llvm/IR/Instructions.h"

namespace phobos::compiler::codegen {
namespace {

using llvm::AtomicRMWInst;

constexpr llvm::AtomicOrdering kRelaxed = llvm::AtomicOrdering::Monotonic;

// The instruction that does all of a step.
std::optional<AtomicRMWInst::BinOp> InstructionFor(ir::Opcode opcode, ir::DType dtype) {
  const bool is_signed = ir::IsSigned(dtype);
  if (ir::IsFloat(dtype)) {
    // LLVM's largest and smallest of floats pass a NaN over.
    if (opcode != ir::Opcode::kAtomicAdd || ir::BitWidth(dtype) == 16) return std::nullopt;
    return AtomicRMWInst::FAdd;
  }
  switch (opcode) {
    case ir::Opcode::kAtomicAdd:
      return AtomicRMWInst::Add;
    case ir::Opcode::kAtomicMaximum:
      return is_signed ? AtomicRMWInst::Max : AtomicRMWInst::UMax;
    case ir::Opcode::kAtomicMinimum:
      return is_signed ? AtomicRMWInst::Min : AtomicRMWInst::UMin;
    case ir::Opcode::kAtomicAnd:
      return AtomicRMWInst::And;
    case ir::Opcode::kAtomicOr:
      return AtomicRMWInst::Or;
    case ir::Opcode::kAtomicXor:
      return AtomicRMWInst::Xor;
    default:
      return std::nullopt;
  }
}

// Of floats.
ir::Opcode CombinationOf(ir::Opcode opcode) {
  if (opcode == ir::Opcode::kAtomicAdd) return ir::Opcode::kAdd;
  return opcode == ir::Opcode::kAtomicMaximum ? ir::Opcode::kMaximum : ir::Opcode::kMinimum;
}

class Step {
 public:
  Step(const Environment& environment, const ir::Op& op, llvm::Value* address)
      : env_(environment),
        b_(environment.builder),
        op_(op),
        address_(address),
        bits_(b_.getIntNTy(static_cast<unsigned>(ir::BitWidth(op.type.dtype)))),
        align_(static_cast<uint64_t>(ir::ByteSize(op.type.dtype))),
        scope_(b_.getContext().getOrInsertSyncScopeID("device")) {}

  llvm::Value* Emit(llvm::ArrayRef<llvm::Value*> operands) {
    if (op_.opcode == ir::Opcode::kAtomicCompareSwap) {
      llvm::Value* before = b_.CreateExtractValue(Swap(Bits(operands[0]), Bits(operands[1])), 0);
      return b_.CreateBitCast(before, operands[0]->getType());
    }
    if (const auto instruction = InstructionFor(op_.opcode, op_.type.dtype)) {
      return b_.CreateAtomicRMW(*instruction, address_, operands[0], align_, kRelaxed, scope_);
    }
    return Loop(operands[0]);
  }

 private:
  llvm::Value* Bits(llvm::Value* value) const { return b_.CreateBitCast(value, bits_); }

  // {what was there, whether it was expected}
  llvm::Value* Swap(llvm::Value* expected, llvm::Value* wanted) const {
    return b_.CreateAtomicCmpXchg(address_, expected, wanted, align_, kRelaxed, kRelaxed, scope_);
  }

  llvm::Value* Loop(llvm::Value* operand) const {
    llvm::LoadInst* first = b_.CreateAlignedLoad(bits_, address_, align_);
    first->setAtomic(kRelaxed, scope_);
    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::BasicBlock* turn = env_.NewBlock("swap");
    llvm::BasicBlock* after = env_.NewBlock("swapped");
    b_.CreateBr(turn);
    b_.SetInsertPoint(turn);
    llvm::PHINode* present = b_.CreatePHI(bits_, 2);
    present->addIncoming(first, before);
    llvm::Value* value = b_.CreateBitCast(present, operand->getType());
    llvm::Value* changed =
        EmitElementwise(b_, CombinationOf(op_.opcode), op_.type.dtype, {value, operand});
    llvm::Value* swapped = Swap(present, Bits(changed));
    present->addIncoming(b_.CreateExtractValue(swapped, 0), b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateExtractValue(swapped, 1), after, turn);
    b_.SetInsertPoint(after);
    return value;
  }

  const Environment& env_;
  llvm::IRBuilder<>& b_;
  const ir::Op& op_;
  llvm::Value* const address_;
  llvm::Type* const bits_;
  const llvm::Align align_;
  const llvm::SyncScope::ID scope_;
};

}  // namespace

llvm::Value* EmitAtomicStep(const Environment& environment, const ir::Op& op, llvm::Value* address,
                            llvm::ArrayRef<llvm::Value*> operands) {
  return Step(environment, op, address).Emit(operands);
}

}  // namespace phobos::compiler::codegen
