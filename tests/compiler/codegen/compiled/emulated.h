// SPDX-License-Identifier: Apache-2.0
//
// Runs the code that the GPU back end makes on this machine's CPU: the same LLVM IR, made into
// x86 code in which the chip's special registers, barriers, exchanges within a warp, matrix
// instructions and copies are this class's. Copies are done as late as may be, and until then their
// place holds no numbers. The warps of a block run one after the other from barrier to barrier, the
// threads of a warp from exchange to exchange, once in rising and once in falling order, so that a
// barrier too few shows. For tests; one thread.
#ifndef PHOBOS_TESTS_COMPILER_CODEGEN_COMPILED_EMULATED_H_
#define PHOBOS_TESTS_COMPILER_CODEGEN_COMPILED_EMULATED_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "tests/compiler/codegen/compiled/compiled.h"

namespace phobos::compiler::testing {

class Emulated {
 public:
  enum class Barriers { kAsPlanned, kNone };

  // Verifies, compiles for blocks of so many threads, and loads.
  static absl::StatusOr<std::unique_ptr<Emulated>> Make(ir::Function function, int32_t threads,
                                                        Barriers barriers = Barriers::kAsPlanned);
  ~Emulated();
  Emulated(const Emulated&) = delete;
  Emulated& operator=(const Emulated&) = delete;

  // What Run does, for the interpreter: with the order of reductions that the code has.
  const ir::Function& ordered() const { return ordered_; }

  // The arguments after the launch. Internal: bytes beside a tensor have changed, some threads
  // ended where others wait, or the two orders gave different results.
  absl::StatusOr<std::vector<Argument>> Run(const Launch& launch, Against against) const;

  // A grid of one block, in rising order, nothing guarded.
  absl::Status RunRaw(const uint64_t* slots) const;

 private:
  // What the code asks the chip for; its place is known to the code.
  struct Chip {
    int32_t registers[7];  // tid.x, ctaid.x, .y, .z, nctaid.x, .y, .z
    void (*wait)();
    int32_t (*exchange)(int32_t value, int32_t distance);
    void (*copy)(void* to, const void* from, int32_t bytes);
    void (*commit)();
    void (*await)(int32_t groups);
    void (*load_matrices)(const void* row, int32_t count, int32_t is_transposed, uint32_t* words);
    void (*multiply)(int32_t form, const uint32_t* operands, uint32_t* sums);
  };
  using Entry = void (*)(const uint64_t* slots);
  Emulated(ir::Function function, ir::Function ordered, void* library, Chip* chip, Entry entry);

  absl::Status RunBlock(const uint64_t* slots, bool is_falling) const;

  const ir::Function function_;
  const ir::Function ordered_;
  void* const library_;
  Chip* const chip_;
  const Entry entry_;
  const std::unique_ptr<char[]> stacks_;  // of the threads of a block
};

}  // namespace phobos::compiler::testing

#endif  // PHOBOS_TESTS_COMPILER_CODEGEN_COMPILED_EMULATED_H_
