// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace phobos::tuner {
namespace {

using compiler::v1::ConditionOp;
using ::testing::HasSubstr;

v1::Grid Grid(int64_t x, int64_t y, int64_t z) {
  v1::Grid grid;
  grid.set_x(x), grid.set_y(y), grid.set_z(z);
  return grid;
}

v1::Extent Extent(const std::string& name, int64_t value) {
  v1::Extent extent;
  extent.set_name(name), extent.set_value(value);
  return extent;
}

// A kernel over x[N, M] with 32-bit offsets as variant 0, 64-bit ones as 1, an excluded 2, a scalar
// alpha, blocks along x.
class AdmitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    compiler::v1::Parameter& x = *description_.add_parameters();
    x.set_name("x"), x.set_is_tensor(true), x.set_dtype(compiler::v1::DTYPE_F32);
    x.add_dims()->set_extent("N");
    x.add_dims()->set_extent("M");
    compiler::v1::Parameter& alpha = *description_.add_parameters();
    alpha.set_name("alpha"), alpha.set_dtype(compiler::v1::DTYPE_F32);
    description_.set_grid_dims_used(1);
    for (int i = 0; i < 3; ++i) {
      compiler::v1::VariantSettings& variant = *description_.add_variants();
      variant.set_index(i);
      variant.set_index_bits(i == 0 ? 32 : 64);
      compiler::v1::Constant& block = *variant.add_settings();
      block.set_name("BLOCK");
      block.set_int_value(256 << i);
    }
    description_.mutable_variants(2)->set_excluded_reason("line 3: BLOCK < 1024");
    extents_ = {Extent("N", 1000), Extent("M", 10)};
    v1::Scalar& scalar = scalars_.emplace_back();
    scalar.set_name("alpha");
    const float half = 0.5f;
    scalar.set_bits(std::string(reinterpret_cast<const char*>(&half), sizeof(half)));
  }

  Admission Ask(int variant, const v1::Grid& grid = Grid(4, 1, 1)) {
    return Admit(description_, variant, extents_, scalars_, &grid);
  }

  static void Push(compiler::v1::Condition& condition, const std::string& name) {
    ConditionOp& op = *condition.add_program();
    op.set_code(ConditionOp::PUSH_NAME), op.set_name(name);
  }
  static void Apply(compiler::v1::Condition& condition, ConditionOp::Code code) {
    condition.add_program()->set_code(code);
  }

  compiler::v1::KernelDescription description_;
  std::vector<v1::Extent> extents_;
  std::vector<v1::Scalar> scalars_;
};

TEST_F(AdmitTest, Admissible) {
  EXPECT_EQ(Ask(0).status, v1::VARIANT_STATUS_UNSPECIFIED) << Ask(0).reason;
  EXPECT_EQ(Ask(1).status, v1::VARIANT_STATUS_UNSPECIFIED);
}

TEST_F(AdmitTest, WhatTheSpaceExcludes) {
  EXPECT_EQ(Ask(2).status, v1::VARIANT_STATUS_EXCLUDED);
  EXPECT_EQ(Ask(2).reason, "line 3: BLOCK < 1024");
  EXPECT_EQ(Ask(7).status, v1::VARIANT_STATUS_EXCLUDED);
}

TEST_F(AdmitTest, Grids) {
  struct Case {
    v1::Grid grid;
    const char* text;  // null: admissible
  };
  const Case cases[] = {
      {Grid(1, 1, 1), nullptr},
      {Grid((int64_t{1} << 31) - 1, 1, 1), nullptr},
      {Grid(int64_t{1} << 31, 1, 1), "x may be 2147483647 at most"},
      {Grid(-1, 1, 1), "must not be negative"},
      {Grid(1, 65536, 1), "65535"},
      {Grid(1, 1, 65536), "65535"},
      {Grid(0, 1, 1), "a side is 0"},
      {Grid(4, 2, 1), "never reads ph.ctx.block.y"},
      {Grid(4, 1, 2), "never reads ph.ctx.block.z"},
  };
  for (const Case& c : cases) {
    const Admission admission = Ask(1, c.grid);
    if (c.text == nullptr) {
      EXPECT_EQ(admission.status, v1::VARIANT_STATUS_UNSPECIFIED) << admission.reason;
    } else {
      EXPECT_EQ(admission.status, v1::VARIANT_STATUS_GRID_ERROR) << c.text;
      EXPECT_THAT(admission.reason, HasSubstr(c.text));
    }
  }
  description_.set_grid_dims_used(7);
  EXPECT_EQ(Ask(1, Grid(4, 2, 3)).status, v1::VARIANT_STATUS_UNSPECIFIED);
}

TEST_F(AdmitTest, OffsetsOf32Bits) {
  extents_ = {Extent("N", int64_t{1} << 31), Extent("M", 1)};
  EXPECT_EQ(Ask(0).status, v1::VARIANT_STATUS_INDEX_OVERFLOW);
  EXPECT_THAT(Ask(0).reason, HasSubstr("tensor x has 2147483648 elements"));
  EXPECT_EQ(Ask(1).status, v1::VARIANT_STATUS_UNSPECIFIED);
  extents_ = {Extent("N", (int64_t{1} << 31) - 1), Extent("M", 1)};
  EXPECT_EQ(Ask(0).status, v1::VARIANT_STATUS_UNSPECIFIED);
  extents_ = {Extent("N", int64_t{1} << 40), Extent("M", int64_t{1} << 40)};
  EXPECT_EQ(Ask(0).status, v1::VARIANT_STATUS_INDEX_OVERFLOW);
}

TEST_F(AdmitTest, PromisesOfExtents) {
  compiler::v1::ExtentPromise& promise = *description_.add_extent_promises();
  promise.set_extent("N"), promise.set_multiple(8);
  EXPECT_EQ(Ask(0).status, v1::VARIANT_STATUS_UNSPECIFIED);
  extents_[0].set_value(1001);
  EXPECT_EQ(Ask(0).status, v1::VARIANT_STATUS_EXCLUDED);
  EXPECT_EQ(Ask(0).reason, "@ph.aligned promises that N is a multiple of 8, it is 1001");
}

TEST_F(AdmitTest, Conditions) {
  compiler::v1::Condition& fits = *description_.add_conditions();
  fits.set_text("BLOCK <= N"), fits.set_line(12);
  Push(fits, "BLOCK"), Push(fits, "N"), Apply(fits, ConditionOp::LE);
  EXPECT_EQ(Ask(0).status, v1::VARIANT_STATUS_UNSPECIFIED);
  extents_[0].set_value(300);
  EXPECT_EQ(Ask(0).status, v1::VARIANT_STATUS_UNSPECIFIED);
  EXPECT_EQ(Ask(1).status, v1::VARIANT_STATUS_EXCLUDED);
  EXPECT_EQ(Ask(1).reason, "line 12: @ph.constraint(BLOCK <= N) is false for BLOCK=512, N=300");
}

TEST_F(AdmitTest, AssumptionsOverScalarsAndGrid) {
  compiler::v1::Condition& scalar = *description_.add_conditions();
  scalar.set_text("alpha < 1.0"), scalar.set_is_assumption(true);
  Push(scalar, "alpha");
  ConditionOp& one = *scalar.add_program();
  one.set_code(ConditionOp::PUSH_FLOAT), one.set_float_value(1.0);
  Apply(scalar, ConditionOp::LT);
  EXPECT_EQ(Ask(0).status, v1::VARIANT_STATUS_UNSPECIFIED) << Ask(0).reason;
  compiler::v1::Condition& grid = *description_.add_conditions();
  grid.set_text("ph.ctx.grid.x <= 4"), grid.set_is_assumption(true);
  Push(grid, "grid_x");
  ConditionOp& four = *grid.add_program();
  four.set_code(ConditionOp::PUSH_INT), four.set_int_value(4);
  Apply(grid, ConditionOp::LE);
  EXPECT_EQ(Ask(0).status, v1::VARIANT_STATUS_UNSPECIFIED);
  EXPECT_THAT(Ask(0, Grid(5, 1, 1)).reason, HasSubstr("ph.assume(ph.ctx.grid.x <= 4) is false"));
  // Without a grid its conditions are left for later.
  EXPECT_EQ(Admit(description_, 0, extents_, scalars_, nullptr).status,
            v1::VARIANT_STATUS_UNSPECIFIED);
}

// A condition that cannot be decided is not taken for true.
TEST_F(AdmitTest, UndecidableConditionsExclude) {
  compiler::v1::Condition& condition = *description_.add_conditions();
  condition.set_text("K > 0");
  Push(condition, "K");
  EXPECT_EQ(Ask(0).status, v1::VARIANT_STATUS_EXCLUDED);
  EXPECT_THAT(Ask(0).reason, HasSubstr("cannot be decided"));
}

}  // namespace
}  // namespace phobos::tuner
