// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/type.h"

#include <gtest/gtest.h>

#include "compiler/ir/shape.h"

namespace phobos::compiler::ir {
namespace {

TEST(DType, EveryNameLeadsBack) {
  int number = 0;
  for (DType dtype : kDTypes) {
    EXPECT_EQ(static_cast<int>(dtype), number++);
    EXPECT_EQ(DTypeNamed(Name(dtype)), dtype) << Name(dtype);
    EXPECT_EQ(ByteSize(dtype) * 8, BitWidth(dtype));
    EXPECT_EQ(IsFloat(dtype) + IsInteger(dtype) + (dtype == DType::kBool), 1) << Name(dtype);
  }
  EXPECT_EQ(kDTypes[number - 1], DType::kBool);
  EXPECT_EQ(DTypeNamed("float"), std::nullopt);
}

TEST(DType, Classes) {
  EXPECT_TRUE(IsFloat(DType::kBF16));
  EXPECT_TRUE(IsSigned(DType::kI8));
  EXPECT_FALSE(IsSigned(DType::kU64));
  EXPECT_FALSE(IsSigned(DType::kF32));
  EXPECT_EQ(BitWidth(DType::kBF16), 16);
  EXPECT_EQ(ByteSize(DType::kU64), 8);
}

TEST(Type, ElementsAndText) {
  EXPECT_EQ((Type{DType::kF32, {}}.ToString()), "f32");
  EXPECT_EQ((Type{DType::kF32, {}}.elements()), 1);
  EXPECT_EQ((Type{DType::kI8, {64, 32}}.ToString()), "i8[64, 32]");
  EXPECT_EQ((Type{DType::kI8, {64, 32}}.elements()), 2048);
}

TEST(Shape, BroadcastsAsNumPyDoes) {
  struct Case {
    Shape a, b;
    std::optional<Shape> expected;
  };
  const Case cases[] = {
      {{}, {}, Shape{}},        {{}, {4}, Shape{4}},         {{4}, {4}, Shape{4}},
      {{1}, {4}, Shape{4}},     {{4, 1}, {3}, Shape{4, 3}},  {{2, 1, 5}, {4, 1}, Shape{2, 4, 5}},
      {{4}, {3}, std::nullopt}, {{4, 3}, {4}, std::nullopt},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(BroadcastShapes(c.a, c.b), c.expected);
    EXPECT_EQ(BroadcastShapes(c.b, c.a), c.expected);
  }
}

TEST(Shape, SubscriptsDropKeepAndPlaceAxes) {
  const Shape index_tiles[] = {{8}, {2, 1}, {3}};
  auto shape_of = [&](ValueId value) { return index_tiles[value]; };
  const Subscript element{Subscript::Kind::kElement, 0, 1};
  const Subscript slice{Subscript::Kind::kSlice, 0, 16};
  const Subscript gather8{Subscript::Kind::kGather, 0, 1};
  const Subscript gather2x1{Subscript::Kind::kGather, 1, 1};
  const Subscript gather3{Subscript::Kind::kGather, 2, 1};
  EXPECT_EQ(SubscriptShape({element}, shape_of), Shape{});
  EXPECT_EQ(SubscriptShape({element, slice}, shape_of), Shape{16});
  EXPECT_EQ(SubscriptShape({gather8, slice}, shape_of), (Shape{8, 16}));
  EXPECT_EQ(SubscriptShape({slice, gather2x1, gather8}, shape_of), (Shape{16, 2, 8}));
  EXPECT_EQ(SubscriptShape({gather8, gather3}, shape_of), std::nullopt);
}

}  // namespace
}  // namespace phobos::compiler::ir
