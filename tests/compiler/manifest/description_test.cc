// SPDX-License-Identifier: Apache-2.0
#include "compiler/manifest/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/digest.h"
#include "client/launch/condition.h"
#include "compiler/manifest/files.h"
#include "google/protobuf/util/json_util.h"
#include "tests/compiler/sema/analyze.h"
#include "tests/status_matchers.h"

namespace phobos::compiler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The program of a condition over extents N and M, scalar s, constants A and B and module
// constants.
std::vector<launch::ConditionOp> Program(const std::string& condition) {
  const absl::StatusOr<sema::Analyzed> analyzed = sema::Analyze(
      "import phobos.lang as ph\nW = 8\nF = 0.5\nT = True\n@ph.kernel\n@ph.autotune(A=[4, 2], "
      "B=[True, False])\n"
      "@ph.constraint(\"" +
      condition + "\")\ndef k(x: ph.tensor[ph.f32][N, M], s: ph.f32): pass\n");
  std::vector<launch::ConditionOp> program;
  if (!analyzed.ok()) {
    ADD_FAILURE() << analyzed.status();
    return program;
  }
  const v1::KernelDescription description = Describe(*analyzed->source, analyzed->kernels[0]);
  if (description.conditions_size() != 1) return program;
  for (const v1::ConditionOp& op : description.conditions(0).program()) {
    launch::Number number = op.int_value();
    if (op.code() == v1::ConditionOp::PUSH_FLOAT) number = op.float_value();
    program.push_back({op.code(), number, op.name()});
  }
  return program;
}

// What a launch decides with N=12, M=7, s=1.5, A=4, B=True, a grid of 3 x 2 x 1.
bool Holds(const std::string& condition) {
  const std::map<std::string, launch::Number, std::less<>> values = {
      {"N", int64_t{12}},     {"M", int64_t{7}},     {"s", 1.5},
      {"A", int64_t{4}},      {"B", int64_t{1}},     {"grid_x", int64_t{3}},
      {"grid_y", int64_t{2}}, {"grid_z", int64_t{1}}};
  const auto lookup = [&](std::string_view name) -> StatusOr<launch::Number> {
    const auto found = values.find(name);
    if (found == values.end()) return Status(Code::kInvalidArgument, std::string(name));
    return found->second;
  };
  const StatusOr<bool> holds = launch::Holds(Program(condition), lookup);
  EXPECT_OK(holds) << condition;
  return holds.ok() && *holds;
}

TEST(ConditionProgram, MeansWhatTheConditionSays) {
  for (const char* holds : {"N == 12",
                            "N % A == 0 and M % A == 3",
                            "N // A == 3",
                            "-M // 2 == -4",
                            "-M % 4 == 1",
                            "N / 8 == F * 3",
                            "s > 1",
                            "not s < 1",
                            "N > 100 or B",
                            "0 < M < N < 13",
                            "(5 if M > 6 else N) == 5",
                            "ph.cdiv(M, A) == 2",
                            "ph.minimum(N, M) == M",
                            "ph.maximum(N, M) == 12",
                            "M ** 2 == 49",
                            "M ** 0 == 1",
                            "M ** 1 == 7",
                            "N == W + A",
                            "T == B and N > 0",
                            "ph.ctx.grid.x * ph.ctx.grid.y * ph.ctx.grid.z == 6 and N > 0",
                            "N",
                            "+N - -M == 19",
                            "s == 1.5",
                            "N // 0 == 0",
                            "True and N > 0"}) {
    EXPECT_TRUE(Holds(holds)) << holds;
  }
  for (const char* fails :
       {"N == 13", "0 < M < 5", "not N", "N - 12", "M > N or s < 1", "5 < M < 7", "N < M < 100"}) {
    EXPECT_FALSE(Holds(fails)) << fails;
  }
}

TEST(ConditionProgram, ConstantsAloneNeedNone) { EXPECT_TRUE(Program("A % 2 == 0").empty()); }

constexpr char kFile[] = R"py(import phobos.lang as ph
@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[32, 64], P=["a", "b"], F=[0.5, 1.5, 2.5], G=[True])
@ph.launch("BLOCK")
@ph.aligned(x=16, N=4)
@ph.constraint("BLOCK == 32 or P == 'a'", "BLOCK <= N")
def scale(x: ph.tensor[ph.bf16][N, 3], out: ph.tensor[ph.u8][N], alpha: ph.f64):
    out[ph.ctx.block.x] = x[0, 0]
)py";

TEST(Description, SaysAllThatIsDeclared) {
  ASSERT_OK_AND_ASSIGN(const sema::Analyzed analyzed, sema::Analyze(kFile));
  const v1::KernelDescription description = Describe(*analyzed.source, analyzed.kernels[0]);
  EXPECT_EQ(description.kernel(), "scale");
  EXPECT_EQ(description.line(), 7);
  EXPECT_EQ(description.source_digest(), Sha256Hex(description.canonical_source()));
  EXPECT_EQ(description.grid_dims_used(), 1);
  ASSERT_EQ(description.parameters_size(), 3);
  EXPECT_EQ(description.parameters(0).dtype(), v1::DTYPE_BF16);
  EXPECT_EQ(description.parameters(0).dims(0).extent(), "N");
  EXPECT_EQ(description.parameters(0).dims(1).literal(), 3);
  EXPECT_EQ(description.parameters(0).aligned_bytes(), 16);
  EXPECT_EQ(description.parameters(1).aligned_bytes(), 0);
  EXPECT_TRUE(description.parameters(1).is_written());
  EXPECT_FALSE(description.parameters(2).is_tensor());
  ASSERT_EQ(description.extent_promises_size(), 1);
  EXPECT_EQ(description.extent_promises(0).multiple(), 4);
  ASSERT_EQ(description.variants_size(), 12);
  EXPECT_EQ(description.variants(11).settings(1).string_value(), "b");
  EXPECT_EQ(description.variants(11).settings(2).float_value(), 2.5);
  EXPECT_TRUE(description.variants(11).settings(3).bool_value());
  EXPECT_EQ(description.variants(11).threads(), 64);
  EXPECT_EQ(description.variants(11).index_bits(), 32);
  EXPECT_THAT(description.variants(11).excluded_reason(), HasSubstr("BLOCK == 32 or P == \"a\""));
  EXPECT_EQ(description.variants(6).excluded_reason(), "");
  ASSERT_EQ(description.conditions_size(), 1);
  EXPECT_EQ(description.conditions(0).text(), "BLOCK <= N");
  EXPECT_THAT(Slots(analyzed.kernels[0]), ElementsAre("x", "out", "alpha", "extent:N"));
}

TEST(Files, JsonReadsBack) {
  ASSERT_OK_AND_ASSIGN(const sema::Analyzed analyzed, sema::Analyze(kFile));
  const v1::KernelDescription description = Describe(*analyzed.source, analyzed.kernels[0]);
  ASSERT_OK_AND_ASSIGN(const std::string json, ToJson(description));
  EXPECT_THAT(json, HasSubstr("\"canonical_source\""));
  v1::KernelDescription again;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &again).ok());
  EXPECT_EQ(again.SerializeAsString(), description.SerializeAsString());
}

TEST(Files, AppearWholeOrNotAtAll) {
  const std::string folder = ::testing::TempDir() + "/a/b";
  ASSERT_OK(MakeFolder(folder));
  EXPECT_OK(MakeFolder(folder));
  EXPECT_OK(WriteFile(folder, "x", "one"));
  EXPECT_OK(WriteFile(folder, "x", "two"));
  EXPECT_THAT(std::string(WriteFile(folder + "/none", "x", "one").message()),
              HasSubstr("No such file"));
  EXPECT_THAT(std::string(MakeFolder(folder + "/x/y").message()), HasSubstr("Not a directory"));
}

}  // namespace
}  // namespace phobos::compiler
