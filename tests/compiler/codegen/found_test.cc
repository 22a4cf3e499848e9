// SPDX-License-Identifier: Apache-2.0
//
// What random_test.cc found, cut down to the ops that it takes: kernels that did not compile, or
// did something else than the interpreter.
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/text/parser.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"

namespace phobos::compiler::testing {
namespace {

struct Found {
  const char* name;
  int64_t size;  // of each extent
  const char* text;
};

const Found kFound[] = {
    // LLVM made the maximum of halves that are no NaN a call of fmaxf, which no library had.
    {"maximum_of_f16_that_is_no_nan", 5, R"(
kernel k(out: f16[N] out, n: u8) threads=256 index_bits=32
  %0: i64 = block_id x
  %1: u8 = scalar n
  %2: f16 = cast %1
  %3: f16 = constant 32768
  %4: f16 = min %2, %3
  %5: f16 = constant -32768
  %6: f16 = max %4, %5
  store out[%0], %6
)"},
    {"minimum_of_f16_that_is_no_nan", 5, R"(
kernel k(out: f16[N] out, n: u8) threads=256 index_bits=64
  %0: i64 = block_id x
  %1: u8 = scalar n
  %2: f16 = cast %1
  %3: f16 = constant -300
  %4: f16 = max %2, %3
  %5: f16 = constant 7
  %6: f16 = min %4, %5
  store out[%0], %6
)"},
    // On x86-64-v3 LLVM loaded lanes whose mask was known to be false, behind the tensor's end.
    {"mask_that_is_constant_in_some_lanes", 11, R"(
kernel k(t: i64[N] in, b: f16[59] in, out: f16[N, 59] out) threads=256 index_bits=32
  %0: i64 = block_id x
  %1: i64 = constant 0
  %2: i64[59] = load t[%1:+59]
  %3: bool[59] = cast %2
  %4: f16[59] = cast %3
  %5: f16[59] = load b[%1:+59]
  %6: f16[59] = add %4, %5
  store out[%0, %1:+59], %6
)"},
};

Launch LaunchOf(const ir::Function& function, int64_t size) {
  Launch launch;
  for (const ir::Param& param : function.params) {
    Argument argument;
    int64_t elements = 1;
    for (const ir::Dim& dim : param.dims) {
      argument.sides.push_back(dim.extent >= 0 ? size : dim.literal);
      elements *= argument.sides.back();
    }
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t value = (i * 7919 + 7) % 397 - 140;
      argument.elements.push_back(ir::IsFloat(param.dtype)
                                      ? FromReal(param.dtype, static_cast<long double>(value) / 8)
                                      : FromInteger(param.dtype, value));
    }
    launch.arguments.push_back(std::move(argument));
  }
  launch.grid[0] = 3;
  return launch;
}

class FoundTest : public ::testing::TestWithParam<Found> {};

TEST_P(FoundTest, DoesWhatTheInterpreterDoes) {
  const absl::StatusOr<ir::Function> function = ir::Parse(GetParam().text);
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ(Differences(*function, LaunchOf(*function, GetParam().size)), "");
}

INSTANTIATE_TEST_SUITE_P(Kernels, FoundTest, ::testing::ValuesIn(kFound),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace phobos::compiler::testing
