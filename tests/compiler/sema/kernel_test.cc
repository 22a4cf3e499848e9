// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/compiler/sema/analyze.h"
#include "tests/status_matchers.h"

namespace phobos::compiler::sema {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kAdd[] = R"py(from __future__ import annotations

import phobos.lang as ph


def reference(x, y, out):
    return {"out": x + y}


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 4096])
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]
)py";

// A kernel over x[N], out[N] with these decorators under @ph.kernel and this body.
std::string File(const std::string& decorators, const std::string& body = "  pass\n",
                 const std::string& module = "") {
  return "import phobos.lang as ph\n" + module + "@ph.kernel\n" + decorators +
         "def k(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N], s: ph.i32):\n" + body;
}

// The choices of constant A, or the error.
std::string Choices(const std::string& list, const std::string& module = "") {
  const absl::StatusOr<Analyzed> analyzed =
      Analyze(File("@ph.autotune(A=" + list + ")\n", "  pass\n", module));
  if (!analyzed.ok()) return std::string(analyzed.status().message());
  std::string out;
  for (const ConstantValue& value : analyzed->kernels[0].space[0].choices) {
    out += (out.empty() ? "" : " ") + ToString(value);
  }
  return out;
}

TEST(Kernel, ReadsTheRequirementsExample) {
  ASSERT_OK_AND_ASSIGN(const Analyzed analyzed, Analyze(kAdd));
  ASSERT_EQ(analyzed.kernels.size(), 1);
  const Kernel& kernel = analyzed.kernels[0];
  EXPECT_EQ(kernel.name, "add");
  EXPECT_THAT(kernel.key, ElementsAre("N"));
  ASSERT_EQ(kernel.extents.size(), 1);
  EXPECT_EQ(kernel.extents[0].name, "N");
  ASSERT_EQ(kernel.params.size(), 3);
  EXPECT_TRUE(kernel.params[0].is_tensor);
  EXPECT_EQ(kernel.params[0].dtype, ir::DType::kF32);
  EXPECT_TRUE(kernel.params[0].is_read);
  EXPECT_FALSE(kernel.params[0].is_written);
  EXPECT_FALSE(kernel.params[2].is_read);
  EXPECT_TRUE(kernel.params[2].is_written);
  EXPECT_EQ(kernel.variant_count(), 5);
  EXPECT_EQ(ToString(kernel.VariantSettings(4)[0].second), "4096");
  EXPECT_EQ(kernel.grid_dims_used, 1);
  EXPECT_EQ(ThreadsFor(kernel, kernel.VariantSettings(0)), 256);
  EXPECT_EQ(IndexBitsFor(kernel, kernel.VariantSettings(0)), 32);
}

TEST(Space, BothReadings) {
  EXPECT_EQ(Choices("[256, 4096]"), "256 512 1024 2048 4096");
  EXPECT_EQ(Choices("[3, 25]"), "3 6 12 24");
  EXPECT_EQ(Choices("(1, 2)"), "1 2");
  EXPECT_EQ(Choices("[4096, 256]"), "4096 256");
  EXPECT_EQ(Choices("[1, 2, 4]"), "1 2 4");
  EXPECT_EQ(Choices("[7]"), "7");
  EXPECT_EQ(Choices("[False, True]"), "False True");
  EXPECT_EQ(Choices("[0.5, 1.0]"), "0.5 1.0");
  EXPECT_EQ(Choices("['f16', 'tf32']"), "\"f16\" \"tf32\"");
  EXPECT_EQ(Choices("[W, W * 4]", "W = 1 << 5\n"), "32 64 128");
  EXPECT_THAT(Choices("[1, 9223372036854775807]"), EndsWith(" 4611686018427387904"));
  for (const char* wrong :
       {"[]", "[256, 256]", "[0, 64]", "[-4, 4]", "[1, 2.0]", "[1, True]", "[1, 2, 1]", "256"}) {
    EXPECT_THAT(Choices(wrong),
                AllOf(HasSubstr("k.py:3:"), HasSubstr("doubling"), HasSubstr("as it stands")))
        << wrong;
  }
}

TEST(Space, LastConstantVariesFastestAndTheLimitHolds) {
  ASSERT_OK_AND_ASSIGN(const Analyzed analyzed,
                       Analyze(File("@ph.autotune(A=[1, 2], B=['x', 'y', 'z'])\n")));
  const Kernel& kernel = analyzed.kernels[0];
  EXPECT_EQ(kernel.variant_count(), 6);
  EXPECT_EQ(ToString(kernel.VariantSettings(4)[0].second), "2");
  EXPECT_EQ(ToString(kernel.VariantSettings(4)[1].second), "\"y\"");
  const std::string many =
      "A=[1, 2048], B=[1, 2048], C=[1, 2048]";  // 12 * 12 * 12 = 1728; with D 20736
  EXPECT_OK(Analyze(File("@ph.autotune(" + many + ")\n")).status());
  EXPECT_THAT(Analyze(File("@ph.autotune(" + many + ", D=[1, 2048])\n")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("20736 variants"), HasSubstr("limit=20736"))));
  EXPECT_OK(Analyze(File("@ph.autotune(" + many + ", D=[1, 2048], limit=20736)\n")).status());
}

TEST(Decorators, LaunchIndexBitsAlignedFastMath) {
  ASSERT_OK_AND_ASSIGN(
      const Analyzed analyzed,
      Analyze(
          File("@ph.autotune(T=[32, 2048], B=[64, 32])\n@ph.launch('T', min_blocks=2)\n"
               "@ph.index_bits(\"B\")\n@ph.aligned(x=16, N=4)\n@ph.aligned(out=A)\n@ph.fast_math\n",
               "  pass\n", "A = 8\n")));
  const Kernel& kernel = analyzed.kernels[0];
  EXPECT_EQ(ThreadsFor(kernel, kernel.VariantSettings(2)), 64);
  EXPECT_EQ(IndexBitsFor(kernel, kernel.VariantSettings(2)), 64);
  EXPECT_THAT(ExcludedReason(kernel, kernel.VariantSettings(0)), IsEmpty());
  EXPECT_THAT(ExcludedReason(kernel, kernel.VariantSettings(12)), HasSubstr("2048 threads"));
  EXPECT_EQ(kernel.min_blocks, 2);
  EXPECT_EQ(kernel.params[0].aligned_bytes, 16);
  EXPECT_EQ(kernel.params[1].aligned_bytes, 8);
  EXPECT_EQ(kernel.extents[0].multiple, 4);
  EXPECT_TRUE(kernel.fast_math);
}

TEST(Conditions, OverConstantsAreDecidedNow) {
  ASSERT_OK_AND_ASSIGN(
      const Analyzed analyzed,
      Analyze(File("@ph.autotune(A=[1, 4], P=['f16', 'tf32'])\n@ph.constraint('A % C == 0', \"P == "
                   "'f16' or A > 2\")\n"
                   "@ph.constraint('A <= N')\n",
                   "  ph.assume(ph.ctx.grid.x * 2 <= N)\n  ph.assume(s > 0)\n  pass\n",
                   "C = 2\n")));
  const Kernel& kernel = analyzed.kernels[0];
  ASSERT_EQ(kernel.conditions.size(), 5);
  EXPECT_TRUE(kernel.conditions[0].only_constants);
  EXPECT_TRUE(kernel.conditions[1].only_constants);
  EXPECT_FALSE(kernel.conditions[2].only_constants);
  EXPECT_EQ(kernel.conditions[3].text, "grid_x * 2 <= N");
  EXPECT_TRUE(kernel.conditions[3].is_assumption);
  EXPECT_EQ(kernel.conditions[4].line, 9);
  EXPECT_THAT(ExcludedReason(kernel, kernel.VariantSettings(0)),
              HasSubstr("@ph.constraint(A % C == 0) at line 5 does not hold: A=1"));
  EXPECT_THAT(ExcludedReason(kernel, kernel.VariantSettings(2)), IsEmpty());
  EXPECT_THAT(ExcludedReason(kernel, kernel.VariantSettings(3)), HasSubstr("P == \"f16\""));
  EXPECT_THAT(ExcludedReason(kernel, kernel.VariantSettings(5)), IsEmpty());
}

TEST(Uses, CountThroughFunctionsAndAtomics) {
  ASSERT_OK_AND_ASSIGN(const Analyzed analyzed, Analyze(R"py(
import phobos.lang as ph
@ph.fn
def put(a, i, v): ph.store(a[i:+4], v)
@ph.fn
def twice(a, b, i):
  put(v=b[i:+4], a=a, i=i)
  return C
C = 3
@ph.kernel
def k(p: ph.tensor[ph.f32][N], q: ph.tensor[ph.f32][N], r: ph.tensor[ph.f32][N], t: ph.tensor[ph.f32][N]):
  twice(p, q, ph.ctx.block.y)
  r[0] += 1
  n: ph.let = ph.extent(t, 0)
@ph.kernel
def h(p: ph.tensor[ph.i32][N]):
  ph.atomic_add(p[ph.iota(4)], 1)
)py"));
  const Kernel& k = analyzed.kernels[0];
  const auto uses = [](const ir::Param& param) {
    return std::make_pair(param.is_read, param.is_written);
  };
  EXPECT_EQ(uses(k.params[0]), std::make_pair(false, true));
  EXPECT_EQ(uses(k.params[1]), std::make_pair(true, false));
  EXPECT_EQ(uses(k.params[2]), std::make_pair(true, true));
  EXPECT_EQ(uses(k.params[3]), std::make_pair(false, false));
  EXPECT_EQ(k.grid_dims_used, 2);
  ASSERT_EQ(k.constants.size(), 1);
  EXPECT_EQ(ToString(k.constants[0].value), "3");
  EXPECT_EQ(uses(analyzed.kernels[1].params[0]), std::make_pair(true, true));
  EXPECT_EQ(analyzed.kernels[1].grid_dims_used, 7);
}

}  // namespace
}  // namespace phobos::compiler::sema
