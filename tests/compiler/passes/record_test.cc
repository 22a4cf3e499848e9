// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/record.h"

#include <string>
#include <vector>

#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/sema/lower/lowered.h"
#include "tests/status_matchers.h"

namespace phobos::compiler::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const char kTensors[] =
    "x: ph.tensor[ph.f32][N], to: ph.tensor[ph.i32][N], out: ph.tensor[ph.f32][N]";

Recording Recorded(const sema::KernelText& text) {
  const absl::StatusOr<ir::Function> function = sema::LowerKernel(text);
  EXPECT_OK(function);
  if (!function.ok()) return {};
  Recording recording = Record(*function);
  EXPECT_OK(ir::Verify(recording.function));
  return recording;
}

std::vector<ShadowContent> ContentsOf(const Recording& recording) {
  std::vector<ShadowContent> contents;
  for (const Shadow& shadow : recording.shadows) contents.push_back(shadow.content);
  return contents;
}

TEST(RecordTest, WhatIsProvedHasNoShadows) {
  const absl::StatusOr<ir::Function> function =
      sema::LowerKernel({.parameters = kTensors, .body = R"(
b: ph.let = ph.ctx.block.x * BLOCK
x[b:+BLOCK] = 1.0
ph.atomic_add(out[to[b:+BLOCK]], 1.0))"});
  ASSERT_OK(function);
  const int32_t x = 0, out = 2;
  EXPECT_THAT(ContentsOf(Record(*function)),
              ElementsAre(ShadowContent::kLastWrite, ShadowContent::kFirstWrite,
                          ShadowContent::kLastAtomic, ShadowContent::kFirstAtomic));
  const Recording recording = Record(*function, {x});
  EXPECT_OK(ir::Verify(recording.function));
  EXPECT_THAT(ContentsOf(recording),
              ElementsAre(ShadowContent::kLastAtomic, ShadowContent::kFirstAtomic));
  EXPECT_EQ(recording.shadows[0].param, out);
}

// One block may write an element twice, whatever others do.
TEST(RecordTest, AScatterIsRecordedAlsoWhereItIsProved) {
  const absl::StatusOr<ir::Function> function =
      sema::LowerKernel({.parameters = kTensors, .body = R"(
out[to[ph.iota(BLOCK)]] = 1.0)"});
  ASSERT_OK(function);
  EXPECT_EQ(Record(*function, {2}).shadows.size(), 4);
}

TEST(RecordTest, AMaskedScatter) {
  const Recording recording = Recorded({.parameters = kTensors, .body = R"(
b: ph.let = ph.ctx.block.x * BLOCK
ph.store(out[to[b:+BLOCK]], 1.0, mask=ph.iota(BLOCK) < 3))"});
  EXPECT_EQ(ir::Print(recording.function),
            R"(kernel k(x: f32[N], to: i32[N] in, out: f32[N] out, )"
            R"(_ph_last_write_out: u32[N] in out, _ph_first_write_out: u32[N] in out, )"
            R"(_ph_stamp_out: u32[N] in out, _ph_clash_out: u32[N] in out) )"
            R"(BLOCK=4 _ph_form=record threads=256 index_bits=32 grid=x
  %0: i64 = block_id x
  %1: u32 = cast %0
  %2: u32 = constant 0
  %3: u32 = constant 1
  %4: u32 = add %1, %3
  %5: u32 = not %1
  %6: i64 = block_id x
  %7: i64 = constant 4
  %8: i64 = mul %6, %7
  %9: i32[4] = load to[%8:+4]
  %10: i64[4] = cast %9
  %11: f32 = constant 1
  %12: f32[4] = broadcast %11
  %13: i64[4] = iota
  %14: i64 = constant 3
  %15: i64[4] = broadcast %14
  %16: bool[4] = lt %13, %15
  %17: u32[4] = broadcast %4
  %18: u32[4] = broadcast %2
  %19: u32[4] = select %16, %17, %18
  atomic_max _ph_last_write_out[gather %10], %19
  %20: u32[4] = broadcast %5
  %21: u32[4] = broadcast %2
  %22: u32[4] = select %16, %20, %21
  atomic_max _ph_first_write_out[gather %10], %22
  %23: i64[4] = iota
  %24: u32[4] = cast %23
  store _ph_stamp_out[gather %10], %24 mask %16
  %25: u32[4] = load _ph_stamp_out[gather %10] fill %24 mask %16
  %26: bool[4] = ne %25, %24
  %27: u32[4] = broadcast %4
  %28: u32[4] = broadcast %2
  %29: u32[4] = select %26, %27, %28
  atomic_max _ph_clash_out[gather %10], %29
  store out[gather %10], %12 mask %16
)");
}

TEST(RecordTest, OnlyWhatIsWrittenHasShadows) {
  EXPECT_THAT(ContentsOf(Recorded({.body = "out[0:+BLOCK] = x[0:+BLOCK]"})),
              ElementsAre(ShadowContent::kLastWrite, ShadowContent::kFirstWrite));
  EXPECT_THAT(ContentsOf(Recorded({.body = "y: ph.let = x[0]"})), IsEmpty());
}

TEST(RecordTest, EachKindOfAccessHasItsLines) {
  const Recording recording = Recorded({.parameters = kTensors, .body = R"(
out[0] += x[0]
out[1] = x[1]
ph.atomic_add(out[2], x[2])
ph.atomic_max(out[to[0:+4]], x[0:+4]))"});
  ASSERT_THAT(ContentsOf(recording),
              ElementsAre(ShadowContent::kLastWrite, ShadowContent::kFirstWrite,
                          ShadowContent::kLastRead, ShadowContent::kFirstRead,
                          ShadowContent::kLastAtomic, ShadowContent::kFirstAtomic));
  const int32_t first = recording.shadows[2].lines[0];
  EXPECT_THAT(recording.shadows[0].lines, ElementsAre(first, first + 1));
  EXPECT_THAT(recording.shadows[3].lines, ElementsAre(first));
  EXPECT_THAT(recording.shadows[4].lines, ElementsAre(first + 2, first + 3));
  EXPECT_EQ(recording.shadows[4].param, 2);
}

TEST(RecordTest, BlocksAreNumberedInTheOrderOfTheGrid) {
  const std::string text =
      ir::Print(Recorded({.body = "out[ph.ctx.block.x + ph.ctx.block.z] = x[0]"}).function);
  EXPECT_THAT(text, ::testing::HasSubstr(R"(
  %0: i64 = block_id z
  %1: i64 = block_id x
  %2: i64 = grid_size x
  %3: i64 = mul %0, %2
  %4: i64 = add %3, %1
  %5: u32 = cast %4
)"));
}

TEST(RecordTest, ElementsOfARankTwoTileAreNumberedByRows) {
  const std::string text = ir::Print(Recorded({.parameters = kTensors, .body = R"(
at: ph.let = to[0:+6]
out[ph.reshape(at, 2, 3)] = 0.0)"})
                                         .function);
  EXPECT_THAT(text, ::testing::HasSubstr("i64[3] = iota"));
  EXPECT_THAT(text, ::testing::HasSubstr("u32 = constant 3"));
}

TEST(RecordTest, HintsOfLoopsAreDropped) {
  const std::string text = ir::Print(
      Recorded({.body = "for i in ph.range(0, N, unroll=4):\n    out[i] = x[i]"}).function);
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("unroll")));
}

}  // namespace
}  // namespace phobos::compiler::passes
