// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/kernel/body.h"

#include <algorithm>

#include "compiler/codegen/arithmetic.h"
#include "llvm/IR/Constants.h"

namespace phobos::compiler::codegen {
namespace {

// Copies of a loop's body at most, whatever the hint says: code size, not speed, grows from there.
constexpr int32_t kMaxUnroll = 16;
// And of what lies in several such loops, about: once there are so many, inner loops stay rolled.
constexpr int32_t kMaxCopies = 64;

}  // namespace

llvm::Value* EmitPureScalar(Environment& env, const ir::Op& op) {
  llvm::IRBuilder<>& builder = env.builder;
  switch (op.opcode) {
    case ir::Opcode::kConstant:
      return ConstantOf(builder.getContext(), op.type.dtype, op.constant);
    case ir::Opcode::kBlockId:
      return env.block_id[op.axis];
    case ir::Opcode::kGridSize:
      return env.grid[op.axis];
    case ir::Opcode::kExtent:
      return env.extents[op.index];
    case ir::Opcode::kScalarParam:
      return env.arguments[op.index];
    case ir::Opcode::kLoopIndex:
      return env.loop_indices[op.index];
    case ir::Opcode::kBroadcast:
      return env.scalars[op.operands[0]];
    default: {
      llvm::SmallVector<llvm::Value*, 3> operands;
      for (ir::ValueId operand : op.operands) operands.push_back(env.scalars[operand]);
      const ir::ValueId typed = op.operands[op.opcode == ir::Opcode::kSelect ? 1 : 0];
      return EmitElementwise(builder, op, env.definitions[typed]->type.dtype, operands);
    }
  }
}

void BodyEmitter::Emit(llvm::BasicBlock* end) {
  end_ = end;
  EmitRegion(env_.function.body);
  Jump(end);
}

// Goes to `target` from here, if here can be reached.
void BodyEmitter::Jump(llvm::BasicBlock* target) {
  if (is_reachable_) builder_.CreateBr(target);
  is_reachable_ = true;
}

void BodyEmitter::EmitRegion(const ir::Block& block) {
  for (const ir::Op& op : block) EmitOp(op);
}

void BodyEmitter::EmitOp(const ir::Op& op) {
  if (env_.debug_scope != nullptr) {
    builder_.SetCurrentDebugLocation(
        llvm::DILocation::get(builder_.getContext(), static_cast<unsigned>(op.line),
                              static_cast<unsigned>(op.column), env_.debug_scope));
  }
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
      builder_.CreateBr(end_);
      is_reachable_ = false;
      return;
    case ir::Opcode::kAssume:
      return;
    case ir::Opcode::kStore:
    case ir::Opcode::kDeclareVar:
    case ir::Opcode::kWriteVar:
      return EmitStatement(op);
    case ir::Opcode::kStage:
      return memory_.EmitTileStatement(op);
    case ir::Opcode::kPrint:
      return memory_.Print(op);
    default:
      if (ir::IsAtomic(op.opcode)) return EmitAtomic(op);
      // Tiles wait until a statement needs them.
      if (op.type.is_scalar()) env_.scalars[op.result] = Scalar(op);
  }
}

void BodyEmitter::EmitStatement(const ir::Op& op) {
  if (op.opcode == ir::Opcode::kStore) {
    return op.type.is_scalar() ? memory_.StoreScalar(op) : memory_.EmitTileStatement(op);
  }
  const ir::Type& type = env_.function.vars[op.index].type;
  if (!type.is_scalar()) return memory_.EmitTileStatement(op);
  llvm::Value*& variable = env_.variables[op.index];
  if (variable == nullptr) {
    variable = env_.Slot(ElementType(builder_.getContext(), type.dtype));
  }
  builder_.CreateStore(env_.scalars[op.operands[0]], variable);
}

// One on a tile with a result is done where the result is held, in the statement that follows.
void BodyEmitter::EmitAtomic(const ir::Op& op) {
  if (op.type.is_scalar()) {
    llvm::Value* before = memory_.AtomicScalar(op);
    if (op.result != ir::kNoValue) env_.scalars[op.result] = before;
  } else if (op.result == ir::kNoValue) {
    memory_.EmitTileStatement(op);
  }
}

llvm::Value* BodyEmitter::Scalar(const ir::Op& op) {
  switch (op.opcode) {
    case ir::Opcode::kReadVar:
      return builder_.CreateLoad(ElementType(builder_.getContext(), op.type.dtype),
                                 env_.variables[op.index]);
    case ir::Opcode::kLoad:
      return memory_.LoadScalar(op);
    default:
      return ir::IsReduction(op.opcode) ? memory_.ReduceToScalar(op) : EmitPureScalar(env_, op);
  }
}

// Counts turns rather than comparing the index, which may pass the largest i64.
void BodyEmitter::EmitFor(const ir::Op& op) {
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
  memory_.BeforeFor(op, lo, turns);
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
void BodyEmitter::EmitForTurns(const ir::Op& op, llvm::Value* turns, int32_t copies,
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

void BodyEmitter::EmitWhile(const ir::Op& op) {
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

void BodyEmitter::EmitIf(const ir::Op& op) {
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

}  // namespace phobos::compiler::codegen
