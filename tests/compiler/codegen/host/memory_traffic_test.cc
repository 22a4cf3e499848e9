// SPDX-License-Identifier: Apache-2.0
//
// Stores past the caches and what is fetched ahead: which kernels have them, and that large tensors
// of any size, which begin anywhere in a line of the cache, are written right and nothing beside.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

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
#include "tests/compiler/codegen/compiled.h"
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

Traffic TrafficOf(const sema::KernelText& text, int64_t vector_bytes = 64) {
  absl::StatusOr<ir::Function> staged = passes::Run(LowerOrDie(text));
  EXPECT_TRUE(staged.ok()) << staged.status();
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  host::EmitKernel(*staged, vector_bytes, module);
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
    for (int64_t vector_bytes : {32, 64}) {
      const Traffic traffic = TrafficOf(Elementwise(statement), vector_bytes);
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

// What a launch of the first blocks leaves is what the interpreter leaves, to the bit.
void ExpectRight(const sema::KernelText& text, const Launch& launch) {
  const ir::Function function = LowerOrDie(text);
  const absl::StatusOr<std::vector<Argument>> want = Interpret(function, launch);
  ASSERT_TRUE(want.ok()) << want.status();
  for (const host::Chip& chip : ChipsUnderTest()) {
    const auto compiled = Compiled::Make(function, chip);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    for (Against against : {Against::kPageAfter, Against::kPageBefore}) {
      const auto got = (*compiled)->Run(launch, against);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE((*got)[1].elements == (*want)[1].elements)
          << text.body << chip.name << ", from " << launch.arguments[1].sides[0];
    }
  }
}

// The tensors end, or begin, with a page, so that their size says where in a line they begin. From
// 8 MiB on, stores go past the caches.
void ExpectRight(const std::string& statements, DType dtype, int64_t more_elements) {
  const std::string type(ir::Name(dtype));
  const int64_t size = (int64_t{8} << 20) / ir::ByteSize(dtype) + more_elements;
  Launch launch;
  launch.arguments = {Tensor({size}, dtype, 1), Tensor({size}, dtype, 2)};
  launch.grid[0] = 3;
  ExpectRight({.parameters = "x: ph.tensor[ph." + type + "][N], out: ph.tensor[ph." + type + "][N]",
               .body = statements},
              launch);
}

TEST(LargeTensorTest, CheapStatementsAtAnyAlignment) {
  const std::string statements = "at: ph.let = ph.ctx.block.x * 1500\nout[at:+1500] = x[at:+1500]";
  for (int64_t more : {-1, 0, 1, 5}) ExpectRight(statements, DType::kF64, more);
  ExpectRight(statements, DType::kF32, 13);
  ExpectRight(statements, DType::kI16, 7);
}

TEST(LargeTensorTest, DearStatementsAtAnyAlignment) {
  const std::string statements =
      "at: ph.let = ph.ctx.block.x * 1024\n"
      "v: ph.let = x[at:+1024]\n"
      "out[at:+1024] = (v // (v + 1)) % 5 + v // 3";
  for (int64_t more : {-1, 0, 3}) ExpectRight(statements, DType::kI64, more);
  ExpectRight(statements, DType::kI32, 13);
  ExpectRight(statements, DType::kU16, 7);
}

// A part of it is stored twice, and stays what was stored last.
TEST(LargeTensorTest, StoresThatOverlapStayInOrder) {
  const std::string statements =
      "at: ph.let = ph.ctx.block.x * 2048\n"
      "out[at:+2000] = x[at:+2000]\n"
      "out[at + 7:+1000] = x[at + 9:+1000] + 1\n"
      "out[at + 500] = x[at]";
  for (int64_t more : {0, 3}) ExpectRight(statements, DType::kF64, more);
}

// Rows of 1003 columns begin anywhere, and a part of each tile lies outside.
TEST(LargeTensorTest, RowsOfATileThatIsCutOff) {
  const sema::KernelText text{.parameters = kRows,
                              .body =
                                  "at: ph.let = ph.ctx.block.x * 3\n"
                                  "out[at:+3, 0:+1536] = x[at:+3, 0:+1536] * 2.0"};
  for (int64_t rows : {2100, 2101}) {
    Launch launch;
    launch.arguments = {Tensor({rows, 1003}, DType::kF32, 1), Tensor({rows, 1003}, DType::kF32, 2)};
    launch.grid[0] = 2;
    ExpectRight(text, launch);
  }
}

TEST(LargeTensorTest, SoftmaxOfRows) {
  for (int64_t columns : {1024, 1003}) {
    const int64_t rows = (int64_t{8} << 20) / 4 / columns + 1;
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
