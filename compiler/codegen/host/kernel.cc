// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/kernel.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/host/access.h"
#include "compiler/codegen/host/environment.h"
#include "compiler/codegen/host/tile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace phobos::compiler::host {
namespace {

// Tensors of at least so many bytes are stored past the caches: the caches would not keep them, and
// a plain store reads each line before it is overwritten.
constexpr int64_t kStreamBytes = int64_t{8} << 20;

// Copies of a loop's body at most, whatever the hint says: code size, not speed, grows from there.
constexpr int32_t kMaxUnroll = 16;
// And of what lies in several such loops, about: once there are so many, inner loops stay rolled.
constexpr int32_t kMaxCopies = 64;

// One more than the greatest axis whose block id is read; 0 where none is.
int AxesRead(const ir::Block& block) {
  int axes = 0;
  for (const ir::Op& op : block) {
    if (op.opcode == ir::Opcode::kBlockId) axes = std::max(axes, op.axis + 1);
    for (const ir::Block& region : op.regions) axes = std::max(axes, AxesRead(region));
  }
  return axes;
}

class KernelEmitter {
 public:
  KernelEmitter(const ir::Function& function, const Chip& chip, llvm::Module& module)
      : function_(function),
        builder_(module.getContext()),
        env_(function, builder_, chip.vector_bytes),
        module_(module) {}

  int64_t Emit();

 private:
  struct LoopTargets {
    llvm::BasicBlock* next;   // continue
    llvm::BasicBlock* after;  // break
  };

  void Define(const ir::Block& block);
  void ReadArguments(llvm::Value* slots, llvm::Value* grid);
  void ReadTensor(size_t param, llvm::Value* bits);
  void EmitBlockLoop(llvm::Value* first, llvm::Value* end);
  void EndStreaming();

  void EmitRegion(const ir::Block& block);
  void EmitOp(const ir::Op& op);
  void EmitStatement(const ir::Op& op);
  void EmitFor(const ir::Op& op);
  void EmitForTurns(const ir::Op& op, llvm::Value* turns, int32_t copies, llvm::Value* lo);
  void EmitWhile(const ir::Op& op);
  void EmitIf(const ir::Op& op);
  void Jump(llvm::BasicBlock* target);

  llvm::Value* Scalar(const ir::Op& op);
  llvm::Value* ScalarLoad(const ir::Op& op);
  llvm::Value* TakeScratch(int64_t bytes);

  const ir::Function& function_;
  llvm::IRBuilder<> builder_;
  Environment env_;
  llvm::Module& module_;
  llvm::Value* scratch_ = nullptr;
  int64_t scratch_used_ = 0;
  int64_t scratch_bytes_ = 0;
  llvm::BasicBlock* next_block_ = nullptr;  // of the grid
  std::vector<LoopTargets> loops_;          // innermost last
  llvm::Value* yielded_ = nullptr;
  int32_t copies_around_ = 1;  // of the body at hand, made by the loops around it
  bool is_reachable_ = true;
};

int64_t KernelEmitter::Emit() {
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* i64 = builder_.getInt64Ty();
  llvm::Type* pointer = builder_.getPtrTy();
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer, i64, i64, pointer},
                                       /*isVarArg=*/false);
  llvm::Function* entry =
      llvm::Function::Create(type, llvm::Function::ExternalLinkage, EntryName(function_), module_);
  entry->addFnAttr(llvm::Attribute::NoUnwind);
  if (function_.fast_math) {
    llvm::FastMathFlags flags;
    flags.setAllowContract();
    flags.setAllowReciprocal();
    builder_.setFastMathFlags(flags);
  }
  scratch_ = entry->getArg(4);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", entry));
  env_.definitions.resize(function_.value_count);
  env_.scalars.resize(function_.value_count);
  env_.held_tiles.resize(function_.value_count);
  env_.variables.resize(function_.vars.size());
  env_.loop_indices.resize(function_.loop_count);
  Define(function_.body);
  ReadArguments(entry->getArg(0), entry->getArg(1));
  EmitBlockLoop(entry->getArg(2), entry->getArg(3));
  EndStreaming();
  builder_.CreateRetVoid();
  return scratch_bytes_;
}

void KernelEmitter::Define(const ir::Block& block) {
  for (const ir::Op& op : block) {
    if (op.result != ir::kNoValue) env_.definitions[op.result] = &op;
    for (const ir::Block& region : op.regions) Define(region);
  }
}

void KernelEmitter::ReadArguments(llvm::Value* slots, llvm::Value* grid) {
  llvm::Type* i64 = builder_.getInt64Ty();
  auto slot = [&](size_t i) {
    return builder_.CreateLoad(i64, builder_.CreateConstGEP1_64(i64, slots, i));
  };
  for (int axis = 0; axis < 3; ++axis) {
    env_.grid[axis] = builder_.CreateLoad(i64, builder_.CreateConstGEP1_64(i64, grid, axis));
  }
  const size_t params = function_.params.size();
  for (size_t i = 0; i < function_.extents.size(); ++i) {
    env_.extents.push_back(slot(params + i));
  }
  env_.tensors.resize(params);
  env_.arguments.resize(params);
  for (size_t i = 0; i < params; ++i) {
    llvm::Value* bits = slot(i);
    const ir::Param& param = function_.params[i];
    if (param.is_tensor) {
      ReadTensor(i, bits);
      continue;
    }
    llvm::Type* type = codegen::ElementType(builder_.getContext(), param.dtype);
    if (param.dtype == ir::DType::kBool) {
      env_.arguments[i] =
          builder_.CreateIsNotNull(builder_.CreateTrunc(bits, builder_.getInt8Ty()));
    } else {
      llvm::Type* raw = builder_.getIntNTy(type->getPrimitiveSizeInBits());
      env_.arguments[i] = builder_.CreateBitCast(builder_.CreateTrunc(bits, raw), type);
    }
  }
}

void KernelEmitter::ReadTensor(size_t param, llvm::Value* bits) {
  const ir::Param& declared = function_.params[param];
  Tensor& tensor = env_.tensors[param];
  tensor.address = builder_.CreateIntToPtr(bits, builder_.getPtrTy());
  for (const ir::Dim& dim : declared.dims) {
    tensor.sides.push_back(dim.extent < 0 ? env_.Int(dim.literal) : env_.extents[dim.extent]);
  }
  llvm::Value* stride = env_.Int(1);
  tensor.strides.resize(tensor.sides.size());
  for (size_t d = tensor.sides.size(); d-- > 0;) {
    tensor.strides[d] = stride;
    stride = builder_.CreateMul(stride, tensor.sides[d]);
  }
  if (declared.is_written && !declared.is_read) {
    const int64_t elements = kStreamBytes / ir::ByteSize(declared.dtype);
    tensor.is_streamed = builder_.CreateICmpSGE(stride, env_.Int(elements));
  }
}

// Streaming stores are not ordered with what follows the launch: one fence a call orders them.
void KernelEmitter::EndStreaming() {
  llvm::Value* any = nullptr;
  for (const Tensor& tensor : env_.tensors) {
    if (tensor.is_streamed == nullptr) continue;
    any = any == nullptr ? tensor.is_streamed : builder_.CreateOr(any, tensor.is_streamed);
  }
  if (any == nullptr) return;
  env_.Branch(
      any, [&] { builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); }, [] {});
}

// The blocks [first, end) of the linear order, counted along x, then y, then z: one division an
// axis at the start, then carries. Axes behind the last one that the kernel reads are not counted.
void KernelEmitter::EmitBlockLoop(llvm::Value* first, llvm::Value* end) {
  llvm::Type* i64 = builder_.getInt64Ty();
  llvm::BasicBlock* before = env_.NewBlock("blocks");
  llvm::BasicBlock* body = env_.NewBlock("block");
  llvm::BasicBlock* after = env_.NewBlock("after_blocks");
  next_block_ = env_.NewBlock("next_block");
  builder_.CreateCondBr(builder_.CreateICmpSLT(first, end), before, after);

  builder_.SetInsertPoint(before);
  const int axes = AxesRead(function_.body);
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
  EmitRegion(function_.body);
  Jump(next_block_);

  builder_.SetInsertPoint(next_block_);
  llvm::Value* carry = env_.Int(1);
  for (int axis = 0; axis < axes; ++axis) {
    llvm::Value* next = builder_.CreateAdd(ids[axis], carry);
    if (axis < 2) {
      llvm::Value* wraps = builder_.CreateICmpEQ(next, env_.grid[axis]);
      next = builder_.CreateSelect(wraps, env_.Int(0), next);
      carry = builder_.CreateZExt(wraps, i64);
    }
    ids[axis]->addIncoming(next, next_block_);
  }
  llvm::Value* next = builder_.CreateAdd(block, env_.Int(1));
  block->addIncoming(next, next_block_);
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), body, after);
  builder_.SetInsertPoint(after);
}

llvm::Value* KernelEmitter::TakeScratch(int64_t bytes) {
  llvm::Value* address = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), scratch_, scratch_used_);
  scratch_used_ += bytes;
  scratch_bytes_ = std::max(scratch_bytes_, scratch_used_);
  return address;
}

// Goes to `target` from here, if here can be reached.
void KernelEmitter::Jump(llvm::BasicBlock* target) {
  if (is_reachable_) builder_.CreateBr(target);
  is_reachable_ = true;
}

void KernelEmitter::EmitRegion(const ir::Block& block) {
  const int64_t scratch_used = scratch_used_;
  for (const ir::Op& op : block) EmitOp(op);
  scratch_used_ = scratch_used;
}

void KernelEmitter::EmitOp(const ir::Op& op) {
  switch (op.opcode) {
    case ir::Opcode::kFor:
      return EmitFor(op);
    case ir::Opcode::kWhile:
      return EmitWhile(op);
    case ir::Opcode::kIf:
      return EmitIf(op);
    case ir::Opcode::kYield:
      yielded_ = env_.scalars[op.operands[0]];
      return;
    case ir::Opcode::kBreak:
      builder_.CreateBr(loops_.back().after);
      is_reachable_ = false;
      return;
    case ir::Opcode::kContinue:
      builder_.CreateBr(loops_.back().next);
      is_reachable_ = false;
      return;
    case ir::Opcode::kReturn:
      builder_.CreateBr(next_block_);
      is_reachable_ = false;
      return;
    case ir::Opcode::kAssume:
      return;
    case ir::Opcode::kStore:
    case ir::Opcode::kDeclareVar:
    case ir::Opcode::kWriteVar:
      return EmitStatement(op);
    case ir::Opcode::kStage:
      env_.held_tiles[op.result] = TakeScratch(HeldBytes(op.type));
      return EmitTileStatement(env_, op);
    default:
      // Tiles wait until a statement needs them.
      if (op.type.is_scalar()) env_.scalars[op.result] = Scalar(op);
  }
}

void KernelEmitter::EmitStatement(const ir::Op& op) {
  if (op.opcode == ir::Opcode::kStore) {
    if (!op.type.is_scalar()) return EmitTileStatement(env_, op);
    llvm::Value* mask = op.operands[1] == ir::kNoValue ? nullptr : env_.scalars[op.operands[1]];
    Access(env_, op).Store(Chunk(), {}, mask, env_.scalars[op.operands[0]], false);
    return;
  }
  const ir::Type& type = function_.vars[op.index].type;
  llvm::Value*& variable = env_.variables[op.index];
  if (!type.is_scalar()) {
    if (op.opcode == ir::Opcode::kDeclareVar) variable = TakeScratch(HeldBytes(type));
    return EmitTileStatement(env_, op);
  }
  if (variable == nullptr) {
    variable = env_.Slot(codegen::ElementType(builder_.getContext(), type.dtype));
  }
  builder_.CreateStore(env_.scalars[op.operands[0]], variable);
}

llvm::Value* KernelEmitter::ScalarLoad(const ir::Op& op) {
  llvm::Value* fill = op.operands[0] == ir::kNoValue ? nullptr : env_.scalars[op.operands[0]];
  llvm::Value* mask = op.operands[1] == ir::kNoValue ? nullptr : env_.scalars[op.operands[1]];
  return Access(env_, op).Load(Chunk(), {}, mask, fill);
}

llvm::Value* KernelEmitter::Scalar(const ir::Op& op) {
  llvm::Type* type = codegen::ElementType(builder_.getContext(), op.type.dtype);
  switch (op.opcode) {
    case ir::Opcode::kConstant:
      return codegen::ConstantOf(builder_.getContext(), op.type.dtype, op.constant);
    case ir::Opcode::kBlockId:
      return env_.block_id[op.axis];
    case ir::Opcode::kGridSize:
      return env_.grid[op.axis];
    case ir::Opcode::kExtent:
      return env_.extents[op.index];
    case ir::Opcode::kScalarParam:
      return env_.arguments[op.index];
    case ir::Opcode::kLoopIndex:
      return env_.loop_indices[op.index];
    case ir::Opcode::kReadVar:
      return builder_.CreateLoad(type, env_.variables[op.index]);
    case ir::Opcode::kBroadcast:
      return env_.scalars[op.operands[0]];
    case ir::Opcode::kLoad:
      return ScalarLoad(op);
    default: {
      llvm::SmallVector<llvm::Value*, 3> operands;
      for (ir::ValueId operand : op.operands) operands.push_back(env_.scalars[operand]);
      const ir::ValueId typed = op.operands[op.opcode == ir::Opcode::kSelect ? 1 : 0];
      return codegen::EmitElementwise(builder_, op, env_.definitions[typed]->type.dtype, operands);
    }
  }
}

// Counts turns rather than comparing the index, which may pass the largest i64.
void KernelEmitter::EmitFor(const ir::Op& op) {
  llvm::Value* lo = env_.scalars[op.operands[0]];
  llvm::Value* hi = env_.scalars[op.operands[1]];
  const int64_t step = llvm::cast<llvm::ConstantInt>(env_.scalars[op.operands[2]])->getSExtValue();
  llvm::Value* runs = step > 0 ? builder_.CreateICmpSLT(lo, hi) : builder_.CreateICmpSGT(lo, hi);
  llvm::Value* distance = step > 0 ? builder_.CreateSub(hi, lo) : builder_.CreateSub(lo, hi);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  llvm::Value* turns = builder_.CreateAdd(
      builder_.CreateUDiv(builder_.CreateSub(distance, env_.Int(1)), builder_.getInt64(stride)),
      env_.Int(1));
  turns = builder_.CreateSelect(runs, turns, env_.Int(0));
  const int32_t copies = std::min({op.unroll, kMaxUnroll, kMaxCopies / copies_around_});
  loops_.push_back({nullptr, env_.NewBlock("after_for")});
  if (copies <= 1) {
    EmitForTurns(op, turns, 1, lo);
  } else {
    llvm::Value* rest = builder_.CreateURem(turns, env_.Int(copies));
    const auto* known_rest = llvm::dyn_cast<llvm::ConstantInt>(rest);
    const bool has_rest = known_rest == nullptr || !known_rest->isZero();
    const int32_t copies_around = copies_around_;
    copies_around_ *= copies + (has_rest ? 1 : 0);
    llvm::Value* whole = builder_.CreateSub(turns, rest);
    EmitForTurns(op, whole, copies, lo);
    llvm::Value* next = builder_.CreateAdd(lo, builder_.CreateMul(whole, env_.Int(step)));
    EmitForTurns(op, rest, 1, next);
    copies_around_ = copies_around;
  }
  Jump(loops_.back().after);
  builder_.SetInsertPoint(loops_.back().after);
  loops_.pop_back();
}

// `turns`, a multiple of `copies`, from index `lo` on; goes on behind the last one.
void KernelEmitter::EmitForTurns(const ir::Op& op, llvm::Value* turns, int32_t copies,
                                 llvm::Value* lo) {
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(turns);
      constant != nullptr && constant->isZero()) {
    return;
  }
  llvm::Type* i64 = builder_.getInt64Ty();
  llvm::Value* step = env_.scalars[op.operands[2]];
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* body = env_.NewBlock("for");
  llvm::BasicBlock* done = env_.NewBlock("for_done");
  builder_.CreateCondBr(builder_.CreateIsNotNull(turns), body, done);
  builder_.SetInsertPoint(body);
  llvm::PHINode* left = builder_.CreatePHI(i64, 2);
  llvm::PHINode* start = builder_.CreatePHI(i64, 2);
  left->addIncoming(turns, before);
  start->addIncoming(lo, before);
  llvm::Value* index = start;
  for (int32_t copy = 0; copy < copies; ++copy) {
    llvm::BasicBlock* next = env_.NewBlock("for_next");
    loops_.back().next = next;
    env_.loop_indices[op.index] = index;
    EmitRegion(op.regions[0]);
    Jump(next);
    builder_.SetInsertPoint(next);
    index = builder_.CreateAdd(index, step);
  }
  llvm::Value* next_left = builder_.CreateSub(left, env_.Int(copies));
  left->addIncoming(next_left, builder_.GetInsertBlock());
  start->addIncoming(index, builder_.GetInsertBlock());
  builder_.CreateCondBr(builder_.CreateIsNotNull(next_left), body, done);
  builder_.SetInsertPoint(done);
}

void KernelEmitter::EmitWhile(const ir::Op& op) {
  llvm::BasicBlock* condition = env_.NewBlock("while");
  llvm::BasicBlock* body = env_.NewBlock("while_body");
  llvm::BasicBlock* after = env_.NewBlock("after_while");
  builder_.CreateBr(condition);
  builder_.SetInsertPoint(condition);
  EmitRegion(op.regions[0]);
  builder_.CreateCondBr(yielded_, body, after);
  builder_.SetInsertPoint(body);
  loops_.push_back({condition, after});
  EmitRegion(op.regions[1]);
  loops_.pop_back();
  Jump(condition);
  builder_.SetInsertPoint(after);
}

void KernelEmitter::EmitIf(const ir::Op& op) {
  llvm::BasicBlock* then = env_.NewBlock("if_then");
  llvm::BasicBlock* otherwise = env_.NewBlock("if_else");
  llvm::BasicBlock* after = env_.NewBlock("after_if");
  builder_.CreateCondBr(env_.scalars[op.operands[0]], then, otherwise);
  builder_.SetInsertPoint(then);
  EmitRegion(op.regions[0]);
  Jump(after);
  builder_.SetInsertPoint(otherwise);
  EmitRegion(op.regions[1]);
  Jump(after);
  builder_.SetInsertPoint(after);
}

}  // namespace

std::string EntryName(const ir::Function& function) {
  std::string name = "phobos_";
  for (char c : function.name) name += llvm::isAlnum(c) ? c : '_';
  return name;
}

int64_t EmitKernel(const ir::Function& function, const Chip& chip, llvm::Module& module) {
  return KernelEmitter(function, chip, module).Emit();
}

}  // namespace phobos::compiler::host
