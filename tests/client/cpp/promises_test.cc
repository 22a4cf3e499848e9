// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/plan/promises.h"

#include <gtest/gtest.h>

#include <cstring>

namespace phobos {
namespace {

// ConditionOp.Code in manifest.proto.
enum { kPushInt = 1, kPushFloat = 2, kPushName = 3, kMod = 8 + 1, kEq = 11, kLe = 14, kGe = 16 };

Parameter TensorOf(std::string name, DType dtype, std::vector<Dimension> dims, bool is_written) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.dtype = dtype;
  parameter.is_tensor = true;
  parameter.dims = std::move(dims);
  parameter.is_read = !is_written;
  parameter.is_written = is_written;
  return parameter;
}

// f(x: f32[N], w: f64[N, 4], out: f32[N], alpha: f32), two variants.
KernelDescription Example() {
  KernelDescription description;
  description.kernel = "f";
  description.parameters = {TensorOf("x", DType::kF32, {{"N", 0}}, false),
                            TensorOf("w", DType::kF64, {{"N", 0}, {"", 4}}, false),
                            TensorOf("out", DType::kF32, {{"N", 0}}, true)};
  Parameter alpha;
  alpha.name = "alpha";
  alpha.dtype = DType::kF32;
  description.parameters.push_back(alpha);
  description.extents = {"N"};
  description.key = {"N"};
  for (const int64_t block : {256, 512}) {
    VariantSettings variant;
    variant.index = static_cast<int32_t>(description.variants.size());
    variant.settings = {{"BLOCK", block}};
    variant.index_bits = block == 256 ? 32 : 64;
    description.variants.push_back(variant);
  }
  description.grid_dims_used = 1;
  return description;
}

Condition ConditionOf(bool is_assumption, std::vector<ConditionStep> program) {
  Condition condition;
  condition.text = "the condition";
  condition.line = 12;
  condition.is_assumption = is_assumption;
  condition.program = std::move(program);
  return condition;
}

StatusOr<Promises> Make(const KernelDescription& description, int64_t n, int32_t variant = 0) {
  return Promises::Make(std::make_shared<const KernelDescription>(description), variant, {n});
}

uint64_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Values of a launch at N = 8 that keeps every promise: w needs 256 bytes, the others 32.
constexpr uint64_t kX = 0x10000, kW = 0x20000, kOut = 0x30000;

std::string Check(const Promises& promises, std::vector<uint64_t> values, Grid grid = {1, 1, 1}) {
  const Status status = promises.Check(values.data(), grid);
  EXPECT_TRUE(status.ok() || status.code() == Code::kInvalidArgument);
  return status.ok() ? "ok" : status.message();
}

TEST(Promises, ExtentsAreJudgedOnce) {
  EXPECT_TRUE(Make(Example(), 8).ok());
  EXPECT_EQ(Make(Example(), -1).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Make(Example(), int64_t{1} << 48).status().message(),
            "N=281474976710656 is more than 2^48 - 1");
  EXPECT_EQ(Make(Example(), int64_t{1} << 62).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Make(Example(), 8, 2).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Promises::Make(std::make_shared<const KernelDescription>(Example()), 0, {1, 2})
                .status()
                .code(),
            Code::kInvalidArgument);

  KernelDescription aligned = Example();
  aligned.extent_promises = {{"N", 4}};
  EXPECT_TRUE(Make(aligned, 8).ok());
  const Status broken = Make(aligned, 7).status();
  EXPECT_EQ(broken.code(), Code::kInvalidArgument);
  EXPECT_EQ(broken.message(), "N=7 is not a multiple of 4, as @ph.aligned(N=4) promises");
  EXPECT_NE(broken.detail()->remedy.find("promise"), std::string::npos);
}

TEST(Promises, VariantsThatAreNotForTheseExtents) {
  KernelDescription excluded = Example();
  excluded.variants[0].excluded_reason = "BLOCK % 512 == 0 is false";
  EXPECT_EQ(Make(excluded, 8).status().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(Make(excluded, 8, 1).ok());

  // w has 4 N elements: 2^31 of them at N = 2^29.
  EXPECT_EQ(Make(Example(), int64_t{1} << 29, 0).status().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(Make(Example(), (int64_t{1} << 29) - 1, 0).ok());
  EXPECT_TRUE(Make(Example(), int64_t{1} << 29, 1).ok());

  KernelDescription constrained = Example();
  constrained.conditions = {
      ConditionOf(false, {{kPushName, 0, 0, "BLOCK"}, {kPushName, 0, 0, "N"}, {kGe, 0, 0, ""}})};
  EXPECT_TRUE(Make(constrained, 256).ok());
  const Status broken = Make(constrained, 257).status();
  EXPECT_EQ(broken.code(), Code::kFailedPrecondition);
  EXPECT_EQ(broken.message(),
            "@ph.constraint(the condition) at line 12 does not hold: BLOCK=256, N=257");
  EXPECT_NE(broken.detail()->remedy.find("@ph.autotune"), std::string::npos);
  EXPECT_TRUE(Make(constrained, 257, 1).ok());
}

TEST(Promises, AssumptionsOverExtentsAndLaunches) {
  KernelDescription extents = Example();
  extents.conditions = {ConditionOf(true, {{kPushName, 0, 0, "N"},
                                           {kPushInt, 4, 0, ""},
                                           {kMod, 0, 0, ""},
                                           {kPushInt, 0, 0, ""},
                                           {kEq, 0, 0, ""}})};
  EXPECT_TRUE(Make(extents, 8).ok());
  const Status broken = Make(extents, 9).status();
  EXPECT_EQ(broken.code(), Code::kInvalidArgument);
  EXPECT_EQ(broken.message(), "ph.assume(the condition) at line 12 does not hold: N=9");

  KernelDescription launch = Example();
  launch.conditions = {
      ConditionOf(true, {{kPushName, 0, 0, "alpha"}, {kPushFloat, 0, 0.5, ""}, {kLe, 0, 0, ""}}),
      ConditionOf(true, {{kPushName, 0, 0, "grid_x"}, {kPushInt, 2, 0, ""}, {kLe, 0, 0, ""}})};
  const auto promises = Make(launch, 8);
  ASSERT_TRUE(promises.ok());
  EXPECT_EQ(Check(*promises, {kX, kW, kOut, Bits(0.5f)}, {2, 1, 1}), "ok");
  EXPECT_EQ(Check(*promises, {kX, kW, kOut, Bits(0.75f)}, {2, 1, 1}),
            "ph.assume(the condition) at line 12 does not hold: alpha=0.75");
  EXPECT_EQ(Check(*promises, {kX, kW, kOut, Bits(0.5f)}, {3, 1, 1}),
            "ph.assume(the condition) at line 12 does not hold: grid_x=3");

  KernelDescription unknown = Example();
  unknown.conditions = {ConditionOf(true, {{kPushName, 0, 0, "M"}})};
  const auto odd = Make(unknown, 8);
  ASSERT_TRUE(odd.ok());
  EXPECT_NE(Check(*odd, {kX, kW, kOut, 0}).find("'M'"), std::string::npos);
}

TEST(Promises, Addresses) {
  KernelDescription description = Example();
  description.parameters[0].aligned_bytes = 16;
  const auto promises = Make(description, 8);
  ASSERT_TRUE(promises.ok());
  EXPECT_EQ(Check(*promises, {kX, kW, kOut, 0}), "ok");
  EXPECT_EQ(Check(*promises, {kX + 4, kW, kOut, 0}),
            "x: address 0x10004 is not a multiple of 16 bytes, as @ph.aligned(x=16) promises");
  EXPECT_EQ(Check(*promises, {kX, kW + 4, kOut, 0}),
            "w: address 0x20004 is not a multiple of 8 bytes, the size of its elements");
  EXPECT_EQ(Check(*promises, {kX, 0, kOut, 0}), "w is at address 0");
}

TEST(Promises, WrittenTensorsOverlapNothing) {
  const auto promises = Make(Example(), 8);
  ASSERT_TRUE(promises.ok());
  const std::string words = "out, which the kernel writes, overlaps ";
  EXPECT_EQ(Check(*promises, {kX, kW, kX + 28, 0}).substr(0, words.size() + 1), words + "x");
  EXPECT_EQ(Check(*promises, {kX, kW, kX - 28, 0}).substr(0, words.size() + 1), words + "x");
  EXPECT_EQ(Check(*promises, {kX, kW, kX + 32, 0}), "ok");
  EXPECT_EQ(Check(*promises, {kX, kW, kX - 32, 0}), "ok");
  EXPECT_EQ(Check(*promises, {kX, kW, kW + 252, 0}).substr(0, words.size() + 1), words + "w");
  EXPECT_EQ(Check(*promises, {kX, kX, kOut, 0}), "ok");  // two that are only read

  const auto empty = Make(Example(), 0);
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(Check(*empty, {0, 0, 0, 0}), "ok");
}

TEST(Promises, SidesOfTheGridThatTheKernelDoesNotRead) {
  const auto promises = Make(Example(), 8);
  ASSERT_TRUE(promises.ok());
  EXPECT_EQ(Check(*promises, {kX, kW, kOut, 0}, {7, 1, 1}), "ok");
  EXPECT_NE(Check(*promises, {kX, kW, kOut, 0}, {7, 2, 1}).find("ph.ctx.block.y"),
            std::string::npos);
  EXPECT_NE(Check(*promises, {kX, kW, kOut, 0}, {7, 1, 2}).find("ph.ctx.block.z"),
            std::string::npos);
}

}  // namespace
}  // namespace phobos
