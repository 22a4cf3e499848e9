// SPDX-License-Identifier: Apache-2.0
#include "client/launch/condition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "proto/phobos/compiler/v1/manifest.pb.h"

namespace phobos::launch {
namespace {

using Op = compiler::v1::ConditionOp;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

ConditionOp Push(int64_t value) { return {Op::PUSH_INT, value, ""}; }
ConditionOp Push(int value) { return Push(int64_t{value}); }
ConditionOp Push(double value) { return {Op::PUSH_FLOAT, value, ""}; }
ConditionOp Name(std::string name) { return {Op::PUSH_NAME, int64_t{0}, std::move(name)}; }
ConditionOp Do(Op::Code code) { return {code, int64_t{0}, ""}; }

StatusOr<Number> NoNames(std::string_view name) {
  return Status(Code::kInvalidArgument, "unknown name " + std::string(name));
}

// Whether `a op b == want`, of the same type as want.
template <typename A, typename B, typename W>
bool Gives(A a, Op::Code code, B b, W want) {
  const auto holds = Holds({Push(a), Push(b), Do(code), Push(want), Do(Op::EQ)}, NoNames);
  EXPECT_TRUE(holds.ok()) << holds.status().message();
  return *holds;
}

TEST(Condition, IntegersWrapAndFloor) {
  EXPECT_TRUE(Gives(2, Op::ADD, 3, 5));
  EXPECT_TRUE(Gives(kMax, Op::ADD, 1, kMin));
  EXPECT_TRUE(Gives(kMin, Op::SUB, 1, kMax));
  EXPECT_TRUE(Gives(kMax, Op::MUL, 2, -2));
  EXPECT_TRUE(Gives(7, Op::FLOOR_DIV, 2, 3));
  EXPECT_TRUE(Gives(-7, Op::FLOOR_DIV, 2, -4));
  EXPECT_TRUE(Gives(7, Op::FLOOR_DIV, -2, -4));
  EXPECT_TRUE(Gives(-8, Op::FLOOR_DIV, 2, -4));
  EXPECT_TRUE(Gives(7, Op::FLOOR_DIV, 0, 0));
  EXPECT_TRUE(Gives(kMin, Op::FLOOR_DIV, -1, kMin));
  EXPECT_TRUE(Gives(-7, Op::MOD, 3, 2));
  EXPECT_TRUE(Gives(7, Op::MOD, -3, -2));
  EXPECT_TRUE(Gives(7, Op::MOD, 0, 0));
  EXPECT_TRUE(Gives(kMin, Op::MOD, -1, 0));
  EXPECT_TRUE(Gives(7, Op::CDIV, 2, 4));
  EXPECT_TRUE(Gives(8, Op::CDIV, 2, 4));
  EXPECT_TRUE(Gives(-7, Op::CDIV, 2, -3));
  EXPECT_TRUE(Gives(3, Op::MIN, -4, -4));
  EXPECT_TRUE(Gives(3, Op::MAX, -4, 3));
}

TEST(Condition, DivisionIsAlwaysFloat) { EXPECT_TRUE(Gives(7, Op::DIV, 2, 3.5)); }

TEST(Condition, AFloatOnEitherSideMakesFloats) {
  EXPECT_TRUE(Gives(1.5, Op::ADD, 2, 3.5));
  EXPECT_TRUE(Gives(2, Op::MUL, 1.5, 3.0));
  EXPECT_TRUE(Gives(-7.0, Op::FLOOR_DIV, 2, -4.0));
  EXPECT_TRUE(Gives(-7.5, Op::MOD, 3, 1.5));
  EXPECT_TRUE(Gives(7.5, Op::CDIV, 2, 4.0));
  EXPECT_TRUE(Gives(0.5, Op::MIN, 1, 0.5));
  EXPECT_TRUE(Gives(0.5, Op::MAX, 1, 1.0));
}

TEST(Condition, FloatsFloorExactly) {
  EXPECT_TRUE(Gives(1.0, Op::FLOOR_DIV, 0.1, 9.0));
  EXPECT_TRUE(Gives(-1.0, Op::FLOOR_DIV, 0.1, -10.0));
  EXPECT_TRUE(Gives(1.0, Op::MOD, 0.1, 0.09999999999999995));
  EXPECT_TRUE(Gives(1.0, Op::CDIV, 0.1, 10.0));
  EXPECT_TRUE(Gives(7.5, Op::FLOOR_DIV, 0.0, 0.0));
  EXPECT_TRUE(Gives(7.5, Op::MOD, 0.0, 0.0));
}

TEST(Condition, ComparesAndCombines) {
  EXPECT_TRUE(Gives(1, Op::LT, 2, 1));
  EXPECT_TRUE(Gives(2, Op::LT, 2, 0));
  EXPECT_TRUE(Gives(2, Op::LE, 2, 1));
  EXPECT_TRUE(Gives(2, Op::GT, 1, 1));
  EXPECT_TRUE(Gives(1, Op::GE, 2, 0));
  EXPECT_TRUE(Gives(1, Op::NE, 2, 1));
  EXPECT_TRUE(Gives(1.5, Op::GT, 1, 1));
  EXPECT_TRUE(Gives(1, Op::AND, 0, 0));
  EXPECT_TRUE(Gives(5, Op::AND, -3, 1));
  EXPECT_TRUE(Gives(0, Op::OR, 0.5, 1));
  EXPECT_TRUE(*Holds({Push(0), Do(Op::NOT)}, NoNames));
  EXPECT_TRUE(*Holds({Push(5), Do(Op::NEG), Push(-5), Do(Op::EQ)}, NoNames));
  EXPECT_TRUE(*Holds({Push(1), Push(7), Push(8), Do(Op::SELECT), Push(7), Do(Op::EQ)}, NoNames));
  EXPECT_TRUE(*Holds({Push(0), Push(7), Push(8), Do(Op::SELECT), Push(8), Do(Op::EQ)}, NoNames));
}

TEST(Condition, LooksNamesUp) {
  const auto lookup = [](std::string_view name) -> StatusOr<Number> {
    if (name == "N") return Number(int64_t{4096});
    return Status(Code::kInvalidArgument, "unknown name " + std::string(name));
  };
  const std::vector<ConditionOp> multiple = {Name("N"), Push(256), Do(Op::MOD), Push(0),
                                             Do(Op::EQ)};
  EXPECT_TRUE(*Holds(multiple, lookup));
  const auto unknown = Holds({Name("M")}, lookup);
  EXPECT_EQ(unknown.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(unknown.status().message(), "unknown name M");
}

TEST(Condition, MalformedProgramsAreRefused) {
  const std::vector<ConditionOp> programs[] = {
      {},
      {Push(1), Push(2)},
      {Do(Op::ADD)},
      {Push(1), Do(Op::ADD)},
      {Push(1), Push(2), Do(Op::SELECT)},
      {{0, int64_t{0}, ""}},
      {{24, int64_t{0}, ""}},
      {{-1, int64_t{0}, ""}},
  };
  for (const auto& program : programs) {
    EXPECT_EQ(Holds(program, NoNames).status().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace phobos::launch
