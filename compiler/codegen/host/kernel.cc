// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/kernel.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/host/contraction/contraction.h"
#include "compiler/codegen/host/contraction/fusion.h"
#include "compiler/codegen/host/reduction/reduction.h"
#include "compiler/codegen/host/reduction/scan.h"
#include "compiler/codegen/host/tile/access.h"
#include "compiler/codegen/host/tile/environment.h"
#include "compiler/codegen/host/tile/held.h"
#include "compiler/codegen/host/tile/statement.h"
#include "compiler/codegen/kernel/body.h"
#include "compiler/codegen/kernel/held_memory.h"
#include "compiler/ir/printer.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

namespace phobos::compiler::host {
namespace {

// One more than the greatest axis whose block id is read; 0 where none is.
int AxesRead(const ir::Function& function, const ir::Block& block) {
  int axes = 0;
  for (const ir::Op& op : block) {
    if (op.opcode == ir::Opcode::kBlockId) axes = std::max(axes, op.axis + 1);
    if (op.opcode == ir::Opcode::kPrint) axes = std::max(axes, ir::PrintedAxes(function));
    for (const ir::Block& region : op.regions) axes = std::max(axes, AxesRead(function, region));
  }
  return axes;
}

// Tiles and memory of a body; held tiles are in the scratch memory of the calling thread.
class HostMemory : public codegen::MemoryEmitter {
 public:
  HostMemory(Environment& environment, const codegen::HeldMemory& held, llvm::Value* scratch)
      : env_(environment), b_(environment.builder), held_(held), scratch_(scratch) {}

  void EmitTileStatement(const ir::Op& op) override {
    if (op.opcode == ir::Opcode::kStage) {
      if (held_.offsets.count(&op) == 0) return;  // a product's, computed there
      env_.held_tiles[op.result] = AddressOf(op);
    }
    if (op.opcode == ir::Opcode::kDeclareVar) env_.variables[op.index] = AddressOf(op);
    const ir::Op& held = *env_.definitions[op.operands[0]];
    if (held.opcode == ir::Opcode::kDot && !ir::WritesTensor(op.opcode)) {
      const bool has_place = held_.offsets.count(&held) > 0;
      return EmitContraction(env_, op, has_place ? AddressOf(held) : scratch_);
    }
    if (op.opcode == ir::Opcode::kStage) {
      if (held.opcode == ir::Opcode::kCumulativeSum) {
        return EmitScan(env_, held, env_.held_tiles[op.result]);
      }
      if (ir::IsReduction(held.opcode)) {
        EmitReduction(env_, held, env_.held_tiles[op.result]);
        return;
      }
    }
    host::EmitTileStatement(env_, op);
  }
  llvm::Value* LoadScalar(const ir::Op& op) override {
    return Access(env_, op).Load(Chunk(), {}, Optional(op.operands[1]), Optional(op.operands[0]));
  }
  llvm::Value* ReduceToScalar(const ir::Op& op) override {
    return EmitReduction(env_, op, nullptr);
  }
  void StoreScalar(const ir::Op& op) override {
    Access(env_, op).Store(Chunk(), {}, Optional(op.operands[1]), env_.scalars[op.operands[0]]);
  }
  void Print(const ir::Op& op) override {
    llvm::Value* function = b_.CreateLoad(b_.getPtrTy(), PrintFunction());
    env_.Branch(
        b_.CreateIsNotNull(function), [&] { CallPrint(op, function); }, [] {});
  }
  llvm::Value* AtomicScalar(const ir::Op& op) override {
    llvm::SmallVector<llvm::Value*, 2> operands;
    for (ir::ValueId operand : op.operands) operands.push_back(env_.scalars[operand]);
    return Access(env_, op).Atomic(Chunk(), {}, operands);
  }

 private:
  llvm::Value* AddressOf(const ir::Op& op) const {
    return env_.builder.CreateConstGEP1_64(env_.builder.getInt8Ty(), scratch_,
                                           held_.offsets.at(&op));
  }
  llvm::Value* Optional(ir::ValueId value) const {
    return value == ir::kNoValue ? nullptr : env_.scalars[value];
  }

  // The variable that whoever loads the artifact may set: see Printing in the ABI.
  llvm::Value* PrintFunction() {
    constexpr const char* kName = "phobos_print";
    llvm::Module& module = *b_.GetInsertBlock()->getModule();
    if (llvm::GlobalVariable* known = module.getNamedGlobal(kName)) return known;
    auto* made = new llvm::GlobalVariable(module, b_.getPtrTy(), /*isConstant=*/false,
                                          llvm::GlobalValue::ExternalLinkage,
                                          llvm::ConstantPointerNull::get(b_.getPtrTy()), kName);
    made->setVisibility(llvm::GlobalValue::ProtectedVisibility);
    made->setDSOLocal(true);
    return made;
  }

  void CallPrint(const ir::Op& op, llvm::Value* function) {
    llvm::SmallVector<llvm::Value*, 8> places;
    const auto add_scalar = [&](llvm::Value* value, ir::DType dtype) {
      llvm::Type* type = codegen::MemoryType(b_.getContext(), dtype);
      if (dtype == ir::DType::kBool) value = b_.CreateZExt(value, type);
      places.push_back(env_.Slot(type));
      b_.CreateStore(value, places.back());
    };
    for (int axis = 0; axis < ir::PrintedAxes(env_.function); ++axis) {
      add_scalar(env_.block_id[axis], ir::DType::kI64);
    }
    for (ir::ValueId operand : op.operands) {
      const ir::Op& value = *env_.definitions[operand];
      if (value.type.is_scalar()) {
        add_scalar(env_.scalars[operand], value.type.dtype);
      } else {
        places.push_back(HeldStart(env_, value));
      }
    }
    llvm::Type* list_type = llvm::ArrayType::get(b_.getPtrTy(), places.size());
    llvm::Value* list = env_.Slot(list_type);
    for (size_t i = 0; i < places.size(); ++i) {
      b_.CreateStore(places[i], b_.CreateConstGEP2_64(list_type, list, 0, i));
    }
    const std::string format = ir::PrintFormat(env_.function, env_.definitions, op);
    auto* type = llvm::FunctionType::get(
        b_.getVoidTy(), {b_.getPtrTy(), b_.getInt64Ty(), b_.getPtrTy()}, /*isVarArg=*/false);
    llvm::Value* size = env_.Int(static_cast<int64_t>(format.size()));
    b_.CreateCall(type, function, {b_.CreateGlobalString(format), size, list});
  }

  Environment& env_;
  llvm::IRBuilder<>& b_;
  const codegen::HeldMemory& held_;
  llvm::Value* const scratch_;
};

class KernelEmitter {
 public:
  KernelEmitter(const ir::Function& function, const Chip& chip, llvm::Module& module)
      : function_(function),
        builder_(module.getContext()),
        env_(function, builder_, chip),
        module_(module) {}

  int64_t Emit();

 private:
  void ReadArguments(llvm::Value* slots, llvm::Value* grid);
  void EmitBlockLoop(llvm::Value* first, llvm::Value* end, codegen::BodyEmitter& body);
  void EndStreaming();

  const ir::Function& function_;
  llvm::IRBuilder<> builder_;
  Environment env_;
  llvm::Module& module_;
};

int64_t KernelEmitter::Emit() {
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* i64 = builder_.getInt64Ty();
  llvm::Type* pointer = builder_.getPtrTy();
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer, i64, i64, pointer},
                                       /*isVarArg=*/false);
  llvm::Function* entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                                 codegen::EntryName(function_), module_);
  entry->addFnAttr(llvm::Attribute::NoUnwind);
  // codegen/math.cc looks there for what the chip has.
  if (env_.has_avx512()) entry->addFnAttr("target-features", "+avx512f,+avx512vl");
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", entry));
  ReadArguments(entry->getArg(0), entry->getArg(1));
  const std::vector<bool> is_fused = FindFusedStages(function_);
  const codegen::HeldMemory held = codegen::PlaceHeldTiles(function_, [&](const ir::Op& op) {
    if (op.opcode == ir::Opcode::kStage && is_fused[op.result]) return int64_t{0};
    if (ir::IsAtomic(op.opcode)) return int64_t{0};
    if (op.opcode != ir::Opcode::kDot) return HeldBytes(codegen::StoredType(function_, op));
    const ContractionOperands operands{env_.definitions[op.operands[0]]->type,
                                       is_fused[op.operands[0]], is_fused[op.operands[1]]};
    return ContractionBytes(op, operands, env_.chip.vector_bytes);
  });
  llvm::Value* tiles =
      builder_.CreateConstGEP1_64(builder_.getInt8Ty(), entry->getArg(4), kRoomBefore);
  HostMemory memory(env_, held, tiles);
  codegen::BodyEmitter body(env_, memory);
  EmitBlockLoop(entry->getArg(2), entry->getArg(3), body);
  EndStreaming();
  builder_.CreateRetVoid();
  return held.bytes == 0 ? 0 : kRoomBefore + held.bytes;
}

void KernelEmitter::ReadArguments(llvm::Value* slots, llvm::Value* grid) {
  llvm::Type* i64 = builder_.getInt64Ty();
  auto slot = [&](size_t i) -> llvm::Value* {
    return builder_.CreateLoad(i64, builder_.CreateConstGEP1_64(i64, slots, i));
  };
  for (int axis = 0; axis < 3; ++axis) {
    env_.grid[axis] = builder_.CreateLoad(i64, builder_.CreateConstGEP1_64(i64, grid, axis));
  }
  auto address = [&](size_t i) { return builder_.CreateIntToPtr(slot(i), builder_.getPtrTy()); };
  env_.ReadSlots(address, slot);
  for (size_t i = 0; i < function_.params.size(); ++i) {
    const ir::Param& param = function_.params[i];
    if (!param.is_tensor || !param.is_written || param.is_read) continue;
    const int64_t elements = env_.chip.streamed_bytes / ir::ByteSize(param.dtype);
    env_.is_streamed[i] = builder_.CreateICmpSGE(env_.tensors[i].elements, env_.Int(elements));
  }
}

// Streaming stores are not ordered with what follows the launch: one fence a call orders them.
void KernelEmitter::EndStreaming() {
  llvm::Value* any = nullptr;
  for (llvm::Value* is_streamed : env_.is_streamed) {
    if (is_streamed == nullptr) continue;
    any = any == nullptr ? is_streamed : builder_.CreateOr(any, is_streamed);
  }
  if (any == nullptr) return;
  env_.Branch(
      any, [&] { builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); }, [] {});
}

// The blocks [first, end) of the linear order, counted along x, then y, then z: one division an
// axis at the start, then carries. Axes behind the last one that the kernel reads are not counted.
void KernelEmitter::EmitBlockLoop(llvm::Value* first, llvm::Value* end,
                                  codegen::BodyEmitter& body_emitter) {
  llvm::Type* i64 = builder_.getInt64Ty();
  llvm::BasicBlock* before = env_.NewBlock("blocks");
  llvm::BasicBlock* body = env_.NewBlock("block");
  llvm::BasicBlock* after = env_.NewBlock("after_blocks");
  llvm::BasicBlock* next_block = env_.NewBlock("next_block");
  builder_.CreateCondBr(builder_.CreateICmpSLT(first, end), before, after);

  builder_.SetInsertPoint(before);
  const int axes = AxesRead(function_, function_.body);
  llvm::SmallVector<llvm::Value*, 3> starts;
  llvm::Value* rest = first;
  for (int axis = 0; axis < axes; ++axis) {
    starts.push_back(axis == 2 ? rest : builder_.CreateURem(rest, env_.grid[axis]));
    if (axis + 1 < axes) rest = builder_.CreateUDiv(rest, env_.grid[axis]);
  }
  builder_.CreateBr(body);

  builder_.SetInsertPoint(body);
  llvm::PHINode* block = builder_.CreatePHI(i64, 2);
  block->addIncoming(first, before);
  llvm::SmallVector<llvm::PHINode*, 3> ids;
  for (int axis = 0; axis < axes; ++axis) {
    ids.push_back(builder_.CreatePHI(i64, 2));
    ids[axis]->addIncoming(starts[axis], before);
    env_.block_id[axis] = ids[axis];
  }
  body_emitter.Emit(next_block);

  builder_.SetInsertPoint(next_block);
  llvm::Value* carry = env_.Int(1);
  for (int axis = 0; axis < axes; ++axis) {
    llvm::Value* next = builder_.CreateAdd(ids[axis], carry);
    if (axis < 2) {
      llvm::Value* wraps = builder_.CreateICmpEQ(next, env_.grid[axis]);
      next = builder_.CreateSelect(wraps, env_.Int(0), next);
      carry = builder_.CreateZExt(wraps, i64);
    }
    ids[axis]->addIncoming(next, next_block);
  }
  llvm::Value* next = builder_.CreateAdd(block, env_.Int(1));
  block->addIncoming(next, next_block);
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), body, after);
  builder_.SetInsertPoint(after);
}

}  // namespace

int64_t EmitKernel(const ir::Function& function, const Chip& chip, llvm::Module& module) {
  return KernelEmitter(function, chip, module).Emit();
}

}  // namespace phobos::compiler::host
