// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/pipeline.h"

#include <string>
#include <utility>

#include "compiler/ir/builder.h"
#include "compiler/ir/printer.h"
#include "compiler/passes/stage.h"
#include "gtest/gtest.h"

namespace phobos::compiler::passes {
namespace {

ir::Function Kernel() {
  ir::Builder b(ir::Function{.name = "k"});
  const int32_t x = b.AddTensor("x", ir::DType::kF32, {{-1, 8}});
  const ir::ValueId tile = b.Load(x, {ir::SliceAt(b.Int(0), 8)});
  b.Store(x, {ir::SliceAt(b.Int(1), 8)}, tile);
  return b.Finish();
}

ir::Function TakeOutTheFirst(ir::Function function) {
  function.body.erase(function.body.begin());
  return function;
}

TEST(Pipeline, RunsItsPassesInTheirOrder) {
  ASSERT_EQ(Passes().back().name, "stage");
  const auto run = passes::Run(Kernel());
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(ir::Print(*run), ir::Print(passes::Stage(Kernel())));
  EXPECT_NE(ir::Print(*run), ir::Print(Kernel()));
}

TEST(Pipeline, RunsUpToAStage) {
  ASSERT_TRUE(PassesUpTo(kLowered).ok());
  EXPECT_EQ(ir::Print(*passes::Run(Kernel(), *PassesUpTo(kLowered))), ir::Print(Kernel()));
  ASSERT_TRUE(PassesUpTo("stage").ok());
  EXPECT_EQ(PassesUpTo("stage")->back().name, "stage");
}

TEST(Pipeline, AStageThatThereIsNotListsThoseThatThereAre) {
  EXPECT_EQ(std::string(PassesUpTo("Stage").status().message()),
            "there is no stage \"Stage\"; the stages are, in their order: lower, stage; "
            "beside them: record");
}

TEST(Pipeline, AFaultNamesThePassThatMadeIt) {
  constexpr Pass kBroken[] = {{"stage", Stage}, {"take", TakeOutTheFirst}, {"again", Stage}};
  const absl::Status status = passes::Run(Kernel(), kBroken).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(std::string(status.message()).find("after take: ill-formed IR of k"), 0u) << status;
}

TEST(Pipeline, AFaultOfLoweringNamesLowering) {
  EXPECT_TRUE(VerifyAfter(kLowered, Kernel()).ok());
  const absl::Status status = VerifyAfter(kLowered, TakeOutTheFirst(Kernel()));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(std::string(status.message()).find("after lower: ill-formed IR of k"), 0u) << status;
}

}  // namespace
}  // namespace phobos::compiler::passes
