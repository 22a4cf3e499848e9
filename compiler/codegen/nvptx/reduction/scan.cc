// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/reduction/scan.h"

#include <algorithm>
#include <cstdint>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/nvptx/tile/held.h"
#include "compiler/codegen/nvptx/tile/statement.h"

namespace phobos::compiler::nvptx {
namespace {

class Scan {
 public:
  Scan(Environment& environment, const Statement& statement)
      : env_(environment),
        b_(environment.builder),
        statement_(statement),
        dealing_(statement.scan),
        type_(codegen::MemoryType(environment.builder.getContext(), statement.type.dtype)),
        held_(environment, *statement.op) {}

  void Emit() {
    EmitStatement(env_, statement_);  // the elements as they are
    env_.Meet();
    SumPieces();
    if (dealing_.pieces == 1) return;
    env_.Meet();
    SumLasts();
    env_.Meet();
    AddSumsBefore();
  }

 private:
  void SumPieces();
  void SumLasts();
  void AddSumsBefore();
  // Calls `body` with this thread's numbers below `count`.
  void Share(int64_t count, llvm::function_ref<void(llvm::Value* number)> body);
  // for (i = 1; i < end; ++i) sum = body(i, sum); gives the last sum.
  llvm::Value* Carry(llvm::Value* sum, llvm::Value* end,
                     llvm::function_ref<llvm::Value*(llvm::Value* i, llvm::Value* sum)> body);
  llvm::Value* Add(llvm::Value* a, llvm::Value* b) const;
  llvm::Value* LastAddress(llvm::Value* number) const;

  Environment& env_;
  llvm::IRBuilder<>& b_;
  const Statement& statement_;
  const ScanDealing& dealing_;
  llvm::Type* const type_;
  const HeldTile held_;
};

void Scan::Share(int64_t count, llvm::function_ref<void(llvm::Value* number)> body) {
  env_.Loop(env_.thread, env_.Int32(count), env_.function.threads, body);
}

// Each result's pieces one after the other, so that neighbouring threads have neighbours.
void Scan::SumPieces() {
  const Sides& sides = dealing_.sides;
  Share(dealing_.pieces * sides.results(), [&](llvm::Value* number) {
    llvm::Value* inner = b_.CreateURem(number, env_.Int32(sides.inner));
    llvm::Value* line = b_.CreateUDiv(number, env_.Int32(sides.inner));
    llvm::Value* piece = b_.CreateURem(line, env_.Int32(dealing_.pieces));
    llvm::Value* outer = b_.CreateUDiv(line, env_.Int32(dealing_.pieces));
    llvm::Value* begin = b_.CreateMul(piece, env_.Int32(dealing_.piece));
    llvm::Value* left = b_.CreateSub(env_.Int32(sides.length), begin);
    llvm::Value* count = b_.CreateSelect(b_.CreateICmpSLT(left, env_.Int32(dealing_.piece)), left,
                                         env_.Int32(dealing_.piece));
    llvm::Value* row = b_.CreateAdd(b_.CreateMul(outer, env_.Int32(sides.length)), begin);
    llvm::Value* first = b_.CreateAdd(b_.CreateMul(row, env_.Int32(sides.inner)), inner);
    llvm::Value* last =
        Carry(held_.LoadAt(first), count, [&](llvm::Value* i, llvm::Value* sum) -> llvm::Value* {
          llvm::Value* at = b_.CreateAdd(first, b_.CreateMul(i, env_.Int32(sides.inner)));
          sum = Add(sum, held_.LoadAt(at));
          held_.StoreAt(at, sum);
          return sum;
        });
    if (dealing_.pieces > 1) b_.CreateStore(last, LastAddress(number));
  });
}

// Of each piece, the sum of all pieces up to its end.
void Scan::SumLasts() {
  const Sides& sides = dealing_.sides;
  Share(sides.results(), [&](llvm::Value* number) {
    llvm::Value* inner = b_.CreateURem(number, env_.Int32(sides.inner));
    llvm::Value* outer = b_.CreateUDiv(number, env_.Int32(sides.inner));
    llvm::Value* first =
        b_.CreateAdd(b_.CreateMul(outer, env_.Int32(dealing_.pieces * sides.inner)), inner);
    Carry(b_.CreateLoad(type_, LastAddress(first)), env_.Int32(dealing_.pieces),
          [&](llvm::Value* i, llvm::Value* sum) -> llvm::Value* {
            llvm::Value* at =
                LastAddress(b_.CreateAdd(first, b_.CreateMul(i, env_.Int32(sides.inner))));
            sum = Add(sum, b_.CreateLoad(type_, at));
            b_.CreateStore(sum, at);
            return sum;
          });
  });
}

void Scan::AddSumsBefore() {
  const Sides& sides = dealing_.sides;
  Share(sides.outer * sides.length * sides.inner, [&](llvm::Value* number) {
    llvm::Value* inner = b_.CreateURem(number, env_.Int32(sides.inner));
    llvm::Value* line = b_.CreateUDiv(number, env_.Int32(sides.inner));
    llvm::Value* piece =
        b_.CreateUDiv(b_.CreateURem(line, env_.Int32(sides.length)), env_.Int32(dealing_.piece));
    llvm::Value* outer = b_.CreateUDiv(line, env_.Int32(sides.length));
    env_.Branch(
        b_.CreateIsNotNull(piece),
        [&] {
          llvm::Value* before = b_.CreateSub(
              b_.CreateAdd(b_.CreateMul(outer, env_.Int32(dealing_.pieces)), piece), env_.Int32(1));
          llvm::Value* at = b_.CreateAdd(b_.CreateMul(before, env_.Int32(sides.inner)), inner);
          llvm::Value* sum = b_.CreateLoad(type_, LastAddress(at));
          held_.StoreAt(number, Add(sum, held_.LoadAt(number)));
        },
        [] {});
  });
}

llvm::Value* Scan::Carry(llvm::Value* sum, llvm::Value* end,
                         llvm::function_ref<llvm::Value*(llvm::Value* i, llvm::Value* sum)> body) {
  llvm::AllocaInst* slot = env_.Slot(sum->getType());
  b_.CreateStore(sum, slot);
  env_.Loop(env_.Int32(1), end, 1, [&](llvm::Value* i) {
    b_.CreateStore(body(i, b_.CreateLoad(sum->getType(), slot)), slot);
  });
  return b_.CreateLoad(sum->getType(), slot);
}

llvm::Value* Scan::Add(llvm::Value* a, llvm::Value* b) const {
  return codegen::EmitElementwise(b_, ir::Opcode::kAdd, statement_.type.dtype, {a, b});
}

llvm::Value* Scan::LastAddress(llvm::Value* number) const {
  llvm::Value* base = b_.CreateConstGEP1_64(b_.getInt8Ty(), env_.shared,
                                            static_cast<uint64_t>(statement_.exchange));
  return b_.CreateGEP(type_, base, b_.CreateZExt(number, b_.getInt64Ty()));
}

}  // namespace

void EmitScan(Environment& environment, const Statement& statement) {
  Scan(environment, statement).Emit();
}

}  // namespace phobos::compiler::nvptx
