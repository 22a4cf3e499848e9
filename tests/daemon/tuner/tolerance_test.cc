// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/tolerance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/status_matchers.h"

namespace phobos::tuner {
namespace {

using ::testing::HasSubstr;

compiler::v1::KernelDescription Writes(compiler::v1::DType dtype) {
  compiler::v1::KernelDescription description;
  compiler::v1::Parameter& in = *description.add_parameters();
  in.set_name("x");
  in.set_is_tensor(true);
  in.set_dtype(compiler::v1::DTYPE_F16);
  compiler::v1::Parameter& out = *description.add_parameters();
  out.set_name("out");
  out.set_is_tensor(true);
  out.set_is_written(true);
  out.set_dtype(dtype);
  return description;
}

v1::TuneOptions With(double rtol, double atol) {
  v1::TuneOptions options;
  options.set_rtol(rtol);
  options.set_atol(atol);
  return options;
}

TEST(Tolerance, MayWiden) {
  EXPECT_OK(CheckTolerances(Writes(compiler::v1::DTYPE_F32), v1::TuneOptions()));
  EXPECT_OK(CheckTolerances(Writes(compiler::v1::DTYPE_F32), With(1.3e-6, 1e-5)));
  EXPECT_OK(CheckTolerances(Writes(compiler::v1::DTYPE_F32), With(0.1, 1)));
  EXPECT_OK(CheckTolerances(Writes(compiler::v1::DTYPE_I32), With(0, 0)));
}

TEST(Tolerance, MayNotNarrow) {
  const absl::Status rtol = CheckTolerances(Writes(compiler::v1::DTYPE_F32), With(1e-9, 1));
  EXPECT_EQ(rtol.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(rtol.message(), HasSubstr("rtol=1e-09 is smaller than the 1.3e-06"));
  EXPECT_THAT(rtol.message(), HasSubstr("out"));
  const absl::Status atol = CheckTolerances(Writes(compiler::v1::DTYPE_F16), With(1, 1e-9));
  EXPECT_THAT(atol.message(), HasSubstr("atol=1e-09 is smaller than the 1e-05"));
}

}  // namespace
}  // namespace phobos::tuner
