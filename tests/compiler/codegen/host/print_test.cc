// SPDX-License-Identifier: Apache-2.0
//
// ph.print: what the host's code hands out is what the interpreter prints, and what is expected.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "client/launch/host.h"
#include "compiler/codegen/host/host.h"
#include "compiler/codegen/nvptx/nvptx.h"
#include "compiler/interpreter/interpreter.h"
#include "tests/compiler/sema/lower/lowered.h"
#include "tests/status_matchers.h"

namespace phobos::compiler {
namespace {

using interpreter::Argument;
using sema::KernelText;

// The kernel's compiled form, loaded.
std::unique_ptr<launch::HostKernel> Loaded(const ir::Function& function) {
  const auto artifact = host::Compile(function, *host::ResolveChip("native"));
  if (!artifact.ok()) return nullptr;
  const std::string path = std::string(getenv("TEST_TMPDIR")) + "/printing.so";
  std::ofstream(path, std::ios::binary) << artifact->shared_object;
  auto kernel = launch::HostKernel::Load(path, artifact->entry, artifact->scratch_bytes, {});
  return kernel.ok() ? *std::move(kernel) : nullptr;
}

// A launch on x: f32[8] = 0, 1, ... 7 and out: f32[8], one thread.
std::string PrintedByHost(const launch::HostKernel& kernel, const launch::Grid& grid) {
  std::vector<float> x(8);
  std::vector<float> out(8);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const uint64_t slots[] = {reinterpret_cast<uint64_t>(x.data()),
                            reinterpret_cast<uint64_t>(out.data()), x.size()};
  launch::HostPool pool(1);
  ::testing::internal::CaptureStderr();
  pool.Run(kernel, slots, grid);
  return ::testing::internal::GetCapturedStderr();
}

std::string PrintedByInterpreter(const ir::Function& function, const launch::Grid& grid) {
  interpreter::Launch launch;
  launch.grid = {grid.x, grid.y, grid.z};
  launch.arguments.assign(2, Argument{{8}, std::vector<interpreter::Bits>(8)});
  for (size_t i = 0; i < 8; ++i) {
    const float value = static_cast<float>(i);
    std::memcpy(&launch.arguments[0].elements[i], &value, sizeof value);
  }
  std::string printed;
  const auto done = interpreter::Interpret(function, launch, {}, &printed);
  return done.ok() ? printed : std::string(done.status().message());
}

// What both print, or both with a word that tells them apart.
std::string Printed(const KernelText& text, const launch::Grid& grid = {1, 1, 1}) {
  const absl::StatusOr<ir::Function> function = sema::LowerKernel(text);
  if (!function.ok()) return std::string(function.status().message());
  const std::unique_ptr<launch::HostKernel> kernel = Loaded(*function);
  if (kernel == nullptr) return "not loaded";
  if (!PrintedByHost(*kernel, grid).empty()) return "printed though nobody asked";
  kernel->PrintToStandardError();
  const std::string host = PrintedByHost(*kernel, grid);
  const std::string interpreted = PrintedByInterpreter(*function, grid);
  return host == interpreted ? host : "host: " + host + "interpreter: " + interpreted;
}

TEST(Print, LabelsConstantsAndScalars) {
  EXPECT_EQ(Printed({.body = "ph.print('N is', N, BLOCK, 0.5, True, '{braces}', x[3])"}),
            "k block 0: N is 8 4 0.5 True {braces} 3.0\n");
  EXPECT_EQ(Printed({.body = "ph.print()"}), "k block 0: \n");
}

TEST(Print, EachBlockSaysWhichItIs) {
  EXPECT_EQ(Printed({.body = "ph.print(ph.ctx.block.x)"}, {3, 1, 1}),
            "k block 0: 0\nk block 1: 1\nk block 2: 2\n");
  EXPECT_EQ(Printed({.body = "if ph.ctx.block.y > 0:\n    ph.print('here')"}, {1, 3, 1}),
            "k block 0, 1: here\nk block 0, 2: here\n");
}

TEST(Print, EveryType) {
  EXPECT_EQ(
      Printed({.body = "i: ph.let = ph.cast(x[2], ph.i64) - 5\n"
                       "ph.print(ph.cast(i, ph.f16), ph.cast(i, ph.bf16), ph.cast(i, ph.f64),\n"
                       "         ph.cast(i, ph.i8), ph.cast(i, ph.i16), ph.cast(i, ph.i32), i,\n"
                       "         ph.cast(i, ph.u8), ph.cast(i, ph.u16), ph.cast(i, ph.u32),\n"
                       "         ph.cast(i, ph.u64), i < 0)"}),
      "k block 0: -3.0 -3.0 -3.0 -3 -3 -3 -3 253 65533 4294967293 18446744073709551613 "
      "True\n");
}

TEST(Print, Tiles) {
  EXPECT_EQ(Printed({.body = "ph.print('x', x[2:+4], 'and', x[6:+4] > 6.0)"}),
            "k block 0: x [2.0 3.0 4.0 5.0] and [False  True False False]\n");
  EXPECT_EQ(Printed({.body = "t: ph.let = ph.reshape(x[0:+8], 2, 2, 2)\nph.print(2.0 * t)"}),
            "k block 0: [[[ 0.0  2.0]\n"
            "             [ 4.0  6.0]]\n"
            "\n"
            "            [[ 8.0 10.0]\n"
            "             [12.0 14.0]]]\n");
  EXPECT_EQ(Printed({.body = "ph.print(ph.full(ph.i8, 7, 2, 1), ph.transpose(x[0:+2][:, None]))"}),
            "k block 0: [[7]\n            [7]] [[0.0 1.0]]\n");
}

TEST(Print, WhatATileIsWhereItIsPrinted) {
  EXPECT_EQ(Printed({.body = "v: ph.var = x[0:+3]\n"
                             "before: ph.let = v\n"
                             "for i in ph.range(2):\n"
                             "    v += 1.0\n"
                             "    ph.print(i, v)\n"
                             "ph.print(before)\n"
                             "old: ph.let = x[0:+2]\n"
                             "x[0:+2] = 9.0\n"
                             "ph.print(old, x[0:+3])"}),
            "k block 0: 0 [1.0 2.0 3.0]\n"
            "k block 0: 1 [2.0 3.0 4.0]\n"
            "k block 0: [0.0 1.0 2.0]\n"
            "k block 0: [0.0 1.0] [9.0 9.0 2.0]\n");
}

TEST(Print, ReductionsScansAndProducts) {
  EXPECT_EQ(Printed({.body = "t: ph.let = ph.reshape(x[0:+4], 2, 2)\n"
                             "ph.print(ph.sum(t), ph.sum(t, axis=0), ph.cumsum(x[0:+4]))\n"
                             "ph.print(ph.dot(t, t))"}),
            "k block 0: 6.0 [2.0 4.0] [0.0 1.0 3.0 6.0]\n"
            "k block 0: [[ 2.0  3.0]\n"
            "            [ 6.0 11.0]]\n");
}

TEST(Print, WhatCannotBePrinted) {
  EXPECT_TRUE(absl::StrContains(Printed({.body = "ph.print(x)"}), "ph.print(x[i:+LENGTH])"));
  EXPECT_TRUE(absl::StrContains(Printed({.body = "ph.print(1, sep='')"}),
                                "ph.print takes no argument sep"));
  EXPECT_TRUE(absl::StrContains(Printed({.body = "ph.print(ph.f32)"}), "number"));
}

TEST(Print, OnAGpuItIsRefusedAtItsPlace) {
  ASSERT_OK_AND_ASSIGN(const ir::Function function,
                       sema::LowerKernel({.body = "for i in ph.range(N):\n    ph.print(i)"}));
  const auto ptx = nvptx::Compile(function, *nvptx::ResolveChip("sm_90"));
  EXPECT_THAT(ptx, testing::StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(absl::StrContains(ptx.status().message(), "ph.print prints on the host chip"));
}

}  // namespace
}  // namespace phobos::compiler
