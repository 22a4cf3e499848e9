// SPDX-License-Identifier: Apache-2.0
//
// Emits the copies of tiles from tensors to shared memory that the chip does on its own, some turns
// of a loop ahead where the loop asks for that (plan/contraction/copies.h). One kernel, one thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_COPY_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_COPY_H_

#include <cstdint>
#include <map>
#include <vector>

#include "compiler/codegen/nvptx/plan/contraction/copies.h"
#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/tile/access.h"
#include "compiler/codegen/nvptx/tile/environment.h"
#include "compiler/codegen/nvptx/tile/held.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

// Copies 16 bytes from $2 to $1, in shared memory, where $0 is true.
inline constexpr char kCopyIf[] = "@$0 cp.async.cg.shared.global [$1], [$2], 16;";

// The copy of a tile that is wholly inside its tensor, done a granule of each thread at a time, so
// that other code can stand in between; all at once, in a loop, where a thread has many.
class TileCopy {
 public:
  // Of a kStage that has its place. `condition` (i1): whether anything is copied; null: it is. The
  // environment must outlive this.
  TileCopy(Environment& environment, const ir::Op& stage, const Access& access,
           llvm::Value* condition);

  // How often StartNext has to be called still.
  int64_t left() const { return turns_ - turn_; }
  void StartNext();

 private:
  struct Granule {
    llvm::Value* to = nullptr;
    llvm::Value* from = nullptr;
  };
  Granule GranuleOf(llvm::Value* number) const;
  void Start(const Granule& granule, llvm::Value* condition) const;

  Environment& env_;
  const ir::Type& type_;
  HeldTile held_;
  Access access_;
  llvm::Value* condition_;
  int64_t granules_;
  int64_t turns_ = 1;
  int64_t turn_ = 0;
  bool is_looped_ = false;  // there are too many for straight code
  // Rows that the threads copy in a turn, if a thread's granules stand in all turns as in the
  // first; 0: they do not.
  int64_t rows_a_turn_ = 0;
  llvm::Value* distance_ = nullptr;  // bytes from a turn to the next
  Granule last_;
};

class CopyEmitter {
 public:
  // The environment must outlive this.
  explicit CopyEmitter(Environment& environment) : env_(environment), b_(environment.builder) {}

  // Starts the copies of a loop's first turns, if it has any that are done ahead. `turns` is i64.
  void BeforeFor(const ir::Op& loop, llvm::Value* lo, llvm::Value* turns);

  // A kStage of the plan's copies: starts it, or another turn's and waits for this one's.
  // REQUIRES: its tile has its place in the environment, unless it is done ahead; then it gets it.
  void EmitStage(const ir::Op& stage);

  // The parts of that, for a loop with a Pipeline::product, which does them itself: each thread
  // waits for its copies of the next turn that is not begun, and all meet; that turn's tiles get
  // their places; it is begun.
  void AwaitTurn(const ir::Op& loop) const;
  void ShowNext(const ir::Op& loop) const;
  void BeginTurn(const ir::Op& loop) const;
  // The copies of one more turn are started: all that it gives, wherever suits, between the two.
  std::vector<TileCopy> BeginAhead(const ir::Op& loop);
  void EndAhead(const ir::Op& loop) const;

  // This thread waits for all it has started.
  void AwaitAll() const;

 private:
  struct State {
    llvm::AllocaInst* read = nullptr;     // i32: the buffer of the next turn that is not begun
    llvm::AllocaInst* written = nullptr;  // i32: the buffer that is filled next
    llvm::AllocaInst* left = nullptr;     // i64: turns that are not started
  };

  // What a tile is copied from.
  struct Source {
    const ir::Op* stage;
    Access access;
    llvm::Value* is_aligned = nullptr;  // i1; null: it is
    llvm::Value* inside = nullptr;      // i1: it is aligned too; null: it is
  };

  std::vector<TileCopy> BeginTurnAt(const ir::Op& loop, llvm::Value* index);
  std::vector<TileCopy> Begin(const std::vector<const ir::Op*>& stages, llvm::Value* condition);
  static void StartAll(std::vector<TileCopy> copies);
  void StartClipped(Source* source) const;
  llvm::Value* BufferOf(const Copy& copy, const Pipeline& pipeline, llvm::Value* number) const;
  void Advance(llvm::AllocaInst* number, int64_t count) const;

  Environment& env_;
  llvm::IRBuilder<>& b_;
  std::map<const ir::Op*, State> states_;  // by kFor
};

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_COPY_H_
