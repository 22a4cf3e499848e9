// SPDX-License-Identifier: Apache-2.0
//
// Stores past the caches and what is fetched ahead: which kernels have them, and that large tensors
// of any size, which begin anywhere in a line of the cache, are written right and nothing beside.
#include <string.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compiler/codegen/host/chip.h"
#include "compiler/codegen/host/kernel.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/pipeline.h"
#include "gtest/gtest.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "tests/compiler/codegen/compiled/compiled.h"
#include "tests/compiler/sema/lower/lowered.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;

ir::Function LowerOrDie(const sema::KernelText& text) {
  absl::StatusOr<ir::Function> function = sema::LowerKernel(text);
  EXPECT_TRUE(function.ok()) << function.status();
  return *std::move(function);
}

// What a kernel's code has, wherever in it.
struct Traffic {
  int streaming_stores = 0;
  int prefetches = 0;
  int fences = 0;
};

Traffic TrafficOf(const sema::KernelText& text, const char* chip = "x86-64-v4") {
  absl::StatusOr<ir::Function> staged = passes::Run(LowerOrDie(text));
  EXPECT_TRUE(staged.ok()) << staged.status();
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  host::EmitKernel(*staged, *host::ResolveChip(chip), module);
  Traffic traffic;
  for (const llvm::Function& function : module) {
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      if (llvm::isa<llvm::StoreInst>(instruction)) {
        const bool is_streaming = instruction.hasMetadata(llvm::LLVMContext::MD_nontemporal);
        traffic.streaming_stores += is_streaming ? 1 : 0;
      }
      const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (call == nullptr) continue;
      traffic.prefetches += call->getIntrinsicID() == llvm::Intrinsic::prefetch ? 1 : 0;
      traffic.fences += call->getIntrinsicID() == llvm::Intrinsic::x86_sse_sfence ? 1 : 0;
    }
  }
  return traffic;
}

constexpr char kAt[] = "at: ph.let = ph.ctx.block.x * 256\n";
constexpr char kRows[] = "x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][M, N]";
constexpr char kSoftmax[] =
    "t: ph.let = ph.load(x[ph.ctx.block.x, 0:+1024], fill=-ph.inf)\n"
    "e: ph.let = ph.exp(t - ph.max(t))\n"
    "out[ph.ctx.block.x, 0:+1024] = e * (1.0 / ph.sum(e))\n";

sema::KernelText Elementwise(const std::string& statements) {
  return {.body = std::string(kAt) + statements};
}

TEST(StreamingStoreTest, WhatIsWrittenWholeHasThem) {
  const std::string kStatements[] = {
      "out[at:+256] = x[at:+256] + 1.0\n",
      "out[at:+256] = ph.erf(x[at:+256])\n",
      "out[at:+250] = x[at:+250]\n",
      "out[at:+32] = x[at:+32]\n",
  };
  for (const std::string& statement : kStatements) {
    for (const char* chip : {"x86-64-v3", "x86-64-v4"}) {
      const Traffic traffic = TrafficOf(Elementwise(statement), chip);
      EXPECT_GT(traffic.streaming_stores, 0) << statement;
      EXPECT_EQ(traffic.fences, 1) << statement;
    }
  }
  EXPECT_GT(TrafficOf({.parameters = kRows, .body = kSoftmax}).streaming_stores, 0);
}

TEST(StreamingStoreTest, NothingElseHasThem) {
  const std::string kStatements[] = {
      "out[at:+256] = out[at:+256] + x[at:+256]\n",            // reads what it writes
      "out[at:+256] = x[at:+256]\nx[at:+256] = out[at:+256]",  // later
      "out[at:+16] = x[at:+16]\n",                             // no vector that could be moved
      "ph.store(out[at:+256], x[at:+256], mask=x[at:+256] > 0.0)\n",
      "out[ph.iota(256) * 3] = x[at:+256]\n",
      "out[at] = x[at]\n",
  };
  for (const std::string& statement : kStatements) {
    EXPECT_EQ(TrafficOf(Elementwise(statement)).streaming_stores, 0) << statement;
  }
  const Traffic column = TrafficOf(
      {.parameters = kRows, .body = "out[0:+256, ph.ctx.block.x] = x[ph.ctx.block.x, 0:+256]\n"});
  EXPECT_EQ(column.streaming_stores, 0);
  const Traffic rows_by_index =
      TrafficOf({.parameters = kRows, .body = "out[ph.iota(4), 0:+256] = x[0:+4, 0:+256]\n"});
  EXPECT_EQ(rows_by_index.streaming_stores, 0);
}

// Only where a statement computes much on what an earlier one has read: the next row of x, and what
// is to be stored.
TEST(PrefetchTest, AreBesideDearWorkOnWhatIsRead) {
  const int softmax = TrafficOf({.parameters = kRows, .body = kSoftmax}).prefetches;
  EXPECT_GT(softmax, 0);
  EXPECT_EQ(softmax % 2, 0);
  EXPECT_EQ(TrafficOf(Elementwise("out[at:+256] = x[at:+256] + 1.0\n")).prefetches, 0);
  EXPECT_EQ(TrafficOf(Elementwise("out[at:+256] = ph.erf(x[at:+256]) * x[at:+256]\n")).prefetches,
            0);
  EXPECT_EQ(TrafficOf(Elementwise("out[at:+256] = x[at:+256] - ph.max(x[at:+256])\n")).prefetches,
            0);
}

// Numbers that every type has exactly.
Argument Tensor(std::vector<int64_t> sides, DType dtype, uint64_t seed) {
  std::mt19937_64 random(seed);
  Argument argument{std::move(sides), {}};
  const int64_t elements = ir::Type{dtype, argument.sides}.elements();
  for (int64_t i = 0; i < elements; ++i) {
    const auto value = static_cast<int64_t>(random() % 64);
    argument.elements.push_back(ir::IsFloat(dtype)
                                    ? FromReal(dtype, static_cast<long double>(value) / 4)
                                    : FromInteger(dtype, value));
  }
  return argument;
}

constexpr int64_t kBlocks = 3;
const int64_t kStreamedBytes = host::Chip().streamed_bytes;

// Memory that begins so many elements behind a line, with bytes beside it that nobody may write.
class Placed {
 public:
  Placed(const Argument& tensor, DType dtype, int64_t elements_past)
      : bytes_(static_cast<int64_t>(tensor.elements.size()) * ir::ByteSize(dtype)),
        element_bytes_(ir::ByteSize(dtype)),
        memory_(static_cast<size_t>(bytes_ + 4 * kGuard), kUntouched) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    start_ = memory_.data() + kGuard + (kGuard - address % kGuard) + elements_past * element_bytes_;
    for (size_t i = 0; i < tensor.elements.size(); ++i) {
      const uint64_t bits = static_cast<uint64_t>(tensor.elements[i]);
      memcpy(start_ + static_cast<int64_t>(i) * element_bytes_, &bits,
             static_cast<size_t>(element_bytes_));
    }
  }

  uint64_t slot() const { return reinterpret_cast<uint64_t>(start_); }
  bool Holds(const Argument& tensor, DType dtype) const {
    return Placed(tensor, dtype, 0).Bytes() == Bytes();
  }
  bool IsUntouchedBeside() const {
    const auto is_untouched = [](uint8_t byte) { return byte == kUntouched; };
    return std::all_of(memory_.data(), static_cast<const uint8_t*>(start_), is_untouched) &&
           std::all_of(static_cast<const uint8_t*>(start_) + bytes_,
                       memory_.data() + memory_.size(), is_untouched);
  }

 private:
  static constexpr int64_t kGuard = 64;
  static constexpr uint8_t kUntouched = 0xA5;

  std::vector<uint8_t> Bytes() const { return {start_, start_ + bytes_}; }

  const int64_t bytes_;
  const int64_t element_bytes_;
  std::vector<uint8_t> memory_;
  uint8_t* start_ = nullptr;
};

// What the first blocks leave of `out` is what the interpreter leaves, to the bit. The kernel is
// told of tensors with so many rows that they are stored past the caches, or one too few for that;
// only what is touched is there. `row` is the other sides' elements.
void ExpectRight(const std::string& parameters, const std::string& statements, DType dtype,
                 int64_t touched_rows, int64_t row) {
  const ir::Function function = LowerOrDie({.parameters = parameters, .body = statements});
  const std::vector<int64_t> sides =
      row == 1 ? std::vector<int64_t>{touched_rows} : std::vector<int64_t>{touched_rows, row};
  Launch launch;
  launch.arguments = {Tensor(sides, dtype, 1), Tensor(sides, dtype, 2)};
  launch.grid[0] = kBlocks;
  const absl::StatusOr<std::vector<Argument>> want = Interpret(function, launch);
  ASSERT_TRUE(want.ok()) << want.status();
  const int64_t rows = (kStreamedBytes / ir::ByteSize(dtype) + row - 1) / row;
  for (const host::Chip& chip : ChipsUnderTest()) {
    const auto compiled = Compiled::Make(function, chip);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    for (int64_t past : {0, 1, 3, 4, 7}) {
      for (int64_t said_rows : {rows - 1, rows}) {
        const Placed x(launch.arguments[0], dtype, past / 2);
        const Placed out(launch.arguments[1], dtype, past);
        std::vector<uint64_t> slots = {x.slot(), out.slot(), static_cast<uint64_t>(said_rows)};
        if (row > 1) slots.push_back(static_cast<uint64_t>(row));
        (*compiled)->RunRaw(slots.data(), kBlocks);
        EXPECT_TRUE(out.Holds((*want)[1], dtype) && out.IsUntouchedBeside())
            << chip.name << " " << ir::Name(dtype) << " " << past << " " << said_rows << "\n"
            << statements;
      }
    }
  }
}

void ExpectRight(const std::string& statements, DType dtype, int64_t touched) {
  const std::string type(ir::Name(dtype));
  ExpectRight("x: ph.tensor[ph." + type + "][N], out: ph.tensor[ph." + type + "][N]", statements,
              dtype, touched, /*row=*/1);
}

TEST(LargeTensorTest, CheapStatementsAtAnyAlignment) {
  const std::string statements = "at: ph.let = ph.ctx.block.x * 1500\nout[at:+1500] = x[at:+1500]";
  for (DType dtype : {DType::kF64, DType::kF32, DType::kI16, DType::kU8, DType::kBool}) {
    ExpectRight(statements, dtype, kBlocks * 1500);
  }
}

TEST(LargeTensorTest, DearStatementsAtAnyAlignment) {
  const std::string statements =
      "at: ph.let = ph.ctx.block.x * 1024\n"
      "v: ph.let = x[at:+1024]\n"
      "out[at:+1024] = (v // (v + 1)) % 5 + v // 3";
  for (DType dtype : {DType::kI64, DType::kI32, DType::kU16}) {
    ExpectRight(statements, dtype, kBlocks * 1024);
  }
}

// A part of it is stored twice, and stays what was stored last.
TEST(LargeTensorTest, StoresThatOverlapStayInOrder) {
  const std::string statements =
      "at: ph.let = ph.ctx.block.x * 2048\n"
      "out[at:+2000] = x[at:+2000]\n"
      "out[at + 7:+1000] = x[at + 9:+1000] + 1\n"
      "out[at + 500] = x[at]";
  ExpectRight(statements, DType::kF64, kBlocks * 2048);
}

// Rows of 1003 columns begin anywhere, and a part of each tile lies outside.
TEST(LargeTensorTest, RowsOfATileThatIsCutOff) {
  const std::string statements =
      "at: ph.let = ph.ctx.block.x * 3\n"
      "out[at:+3, 0:+1536] = x[at:+3, 0:+1536] * 2.0";
  ExpectRight(kRows, statements, DType::kF32, 3 * kBlocks, 1003);
  ExpectRight(kRows, statements, DType::kF32, 3 * kBlocks, 7);
}

// Vectors of the held tile are read where those of the row are aligned: some begin before the tile.
TEST(LargeTensorTest, RowsOfAHeldTileAtAnyAlignment) {
  const std::string statements =
      "at: ph.let = ph.ctx.block.x * 2\n"
      "out[at:+2, 0:+1024] = ph.cumsum(x[at:+2, 0:+1024], axis=1) * 2\n";
  for (int64_t columns : {1024, 1003, 300, 20}) {
    ExpectRight(kRows, statements, DType::kF32, 2 * kBlocks, columns);
  }
  const std::string i64 = "x: ph.tensor[ph.i64][M, N], out: ph.tensor[ph.i64][M, N]";
  ExpectRight(i64, statements, DType::kI64, 2 * kBlocks, 1003);
}

// A vector of results is wider than a line, and than a register.
TEST(LargeTensorTest, ResultsWiderThanWhatTheyAreComputedFrom) {
  const std::string cheap =
      "at: ph.let = ph.ctx.block.x * 1500\n"
      "out[at:+1500] = ph.cast(ph.cast(x[at:+1500], ph.f32) * 2.0, ph.i64)";
  const std::string dear =
      "at: ph.let = ph.ctx.block.x * 1500\n"
      "v: ph.let = ph.cast(x[at:+1500], ph.f32)\n"
      "out[at:+1500] = ph.cast(ph.sqrt(v) * ph.sqrt(v + 1.0), ph.i64)";
  for (const std::string& statements : {cheap, dear}) {
    ExpectRight(statements, DType::kI64, kBlocks * 1500);
  }
}

TEST(LargeTensorTest, SoftmaxOfRows) {
  for (int64_t columns : {1024, 1003}) {
    const int64_t rows = kStreamedBytes / 4 / columns + 1;
    Launch launch;
    launch.arguments = {Tensor({rows, columns}, DType::kF32, 1),
                        Tensor({rows, columns}, DType::kF32, 2)};
    launch.grid[0] = 4;
    const ir::Function function = LowerOrDie({.parameters = kRows, .body = kSoftmax});
    EXPECT_EQ(Differences(function, launch, {0, 8}), "") << columns;
  }
}

}  // namespace
}  // namespace phobos::compiler::testing
