// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/main/options.h"
#include "compiler/main/progress.h"
#include "compiler/main/report.h"
#include "compiler/main/selection.h"
#include "compiler/manifest/description.h"
#include "compiler/passes/pipeline.h"
#include "tests/compiler/sema/analyze.h"
#include "tests/status_matchers.h"

namespace phobos::compiler {
namespace {

using ::phobos::testing::IsOkAndHolds;
using ::phobos::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

absl::StatusOr<Options> Parsed(std::vector<std::string> words) {
  words.insert(words.begin(), "phobos-compile");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return ParseOptions(static_cast<int>(words.size()), argv.data());
}

TEST(Options, AreRead) {
  ASSERT_OK_AND_ASSIGN(const Options options,
                       Parsed({"--check-races", "a.py", "--set", "A=1", "--set=B=x=y", "--jobs=3",
                               "--format", "json", "--out", "d", "--kernel", "k", "--chip",
                               "x86-64-v3", "--file-name", "b.py"}));
  EXPECT_EQ(options.action, Options::Action::kCompile);
  EXPECT_EQ(options.file, "a.py");
  EXPECT_EQ(options.file_name, "b.py");
  EXPECT_EQ(options.kernel, "k");
  EXPECT_EQ(options.chip, "x86-64-v3");
  EXPECT_EQ(options.selection, Options::Selection::kSet);
  EXPECT_THAT(options.settings, ElementsAre(std::make_pair("A", "1"), std::make_pair("B", "x=y")));
  EXPECT_TRUE(options.check_races);
  EXPECT_EQ(options.out, "d");
  EXPECT_EQ(options.jobs, 3);
  EXPECT_EQ(options.format, Options::Format::kJson);
  ASSERT_OK_AND_ASSIGN(const Options range, Parsed({"-", "--variants", "3-17", "--print-ir"}));
  EXPECT_EQ(range.file, "-");
  EXPECT_EQ(range.action, Options::Action::kPrintIr);
  EXPECT_EQ(range.ir_stage, "lower");
  EXPECT_EQ(range.first, 3);
  EXPECT_EQ(range.last, 17);
  ASSERT_OK_AND_ASSIGN(const Options stage, Parsed({"-", "--print-ir=stage"}));
  EXPECT_EQ(stage.ir_stage, "stage");
  EXPECT_OK(Parsed({"--version"}).status());
  EXPECT_OK(Parsed({"--help"}).status());
}

TEST(Options, HelpNamesEveryStage) {
  for (const passes::Pass& pass : passes::Passes()) {
    EXPECT_THAT(std::string(HelpText()),
                HasSubstr(absl::StrCat(" ", std::string(pass.name), " (")));
  }
}

TEST(Options, WrongOnesSayHowTheyAreWritten) {
  for (const auto& [words, expected] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "name the file"},
           {{"a.py", "b.py"}, "'b.py' is a second one"},
           {{"a.py", "--wrong"}, "unknown option --wrong"},
           {{"a.py", "-x"}, "unknown option -x"},
           {{"a.py", "--kernel"}, "--kernel needs a value"},
           {{"a.py", "--jobs", "0"}, "--jobs 0: write a number from 1"},
           {{"a.py", "--jobs", "two"}, "--jobs two"},
           {{"a.py", "--format", "xml"}, "--format xml: write text or json"},
           {{"a.py", "--variants", "7-3"}, "--variants 7-3: write two indexes"},
           {{"a.py", "--variants", "-3"}, "--variants -3: write two indexes"},
           {{"a.py", "--set", "A"}, "--set A: write --set NAME=VALUE"},
           {{"a.py", "--set", "A=1", "--set", "A=2"}, "--set A is given twice"},
           {{"a.py", "--set", "A=1", "--all-variants"}, "exclude each other"},
           {{"a.py", "--variants", "1", "--all-variants"}, "exclude each other"},
           {{"a.py", "--describe", "--print-ir"}, "exclude each other"},
           {{"a.py", "--print-ir=x"},
            "no stage \"x\"; the stages are, in their order: lower, stage"},
           {{"a.py", "--out", ""}, "--out needs the name of a folder"},
       }) {
    EXPECT_THAT(Parsed(words), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(expected)));
  }
}

constexpr char kFile[] = R"py(import phobos.lang as ph
@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[32, 64], P=["f16", "tf32"], F=[0.5, 1.0, 1e3])
@ph.launch("BLOCK")
@ph.aligned(x=16, N=4)
@ph.constraint("BLOCK == 32 or P == 'f16'")
def first(x: ph.tensor[ph.f32][N, M], out: ph.tensor[ph.f32][4], alpha: ph.f64):
    ph.assume(N <= 4096)
    out[0] = x[0, ph.ctx.block.x]
@ph.kernel
def second(alpha: ph.f64): pass
)py";

TEST(Selection, OfKernelAndVariants) {
  ASSERT_OK_AND_ASSIGN(const sema::Analyzed analyzed, sema::Analyze(kFile));
  const sema::Analysis analysis{analyzed.kernels, {}};
  Options options;
  EXPECT_THAT(SelectKernel(analysis, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("choose one with --kernel: first, second")));
  options.kernel = "third";
  EXPECT_THAT(SelectKernel(analysis, options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("it has first, second")));
  options.kernel = "first";
  ASSERT_OK_AND_ASSIGN(const sema::Kernel* kernel, SelectKernel(analysis, options));
  EXPECT_THAT(SelectVariants(*kernel, options), IsOkAndHolds(ElementsAre(0)));
  options.selection = Options::Selection::kAll;
  EXPECT_THAT(SelectVariants(*kernel, options), IsOkAndHolds(SizeIs(12)));
  options.selection = Options::Selection::kRange;
  options.first = 3;
  options.last = 5;
  EXPECT_THAT(SelectVariants(*kernel, options), IsOkAndHolds(ElementsAre(3, 4, 5)));
  options.last = 12;
  EXPECT_THAT(SelectVariants(*kernel, options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 12 variants, 0 to 11")));
}

TEST(Selection, BySettings) {
  ASSERT_OK_AND_ASSIGN(const sema::Analyzed analyzed, sema::Analyze(kFile));
  const sema::Kernel& kernel = analyzed.kernels[0];
  const auto select = [&](std::vector<std::pair<std::string, std::string>> settings) {
    Options options;
    options.selection = Options::Selection::kSet;
    options.settings = std::move(settings);
    return SelectVariants(kernel, options);
  };
  EXPECT_THAT(select({{"BLOCK", "64"}}), IsOkAndHolds(ElementsAre(6)));
  EXPECT_THAT(select({{"P", "tf32"}, {"BLOCK", "64"}, {"F", "1000"}}),
              IsOkAndHolds(ElementsAre(11)));
  EXPECT_THAT(select({{"P", "'tf32'"}, {"F", "1.0"}}), IsOkAndHolds(ElementsAre(4)));
  EXPECT_THAT(select({{"P", "\"tf32\""}}), IsOkAndHolds(ElementsAre(3)));
  EXPECT_THAT(select({{"BLOCK", "48"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the choices are 32, 64")));
  EXPECT_THAT(select({{"B", "48"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("it has BLOCK, P, F")));
}

TEST(Progress, IsSilentForASecond) {
  using std::chrono::seconds;
  EXPECT_EQ(ProgressText("add", 3, 256, seconds(0)), "");
  EXPECT_EQ(ProgressText("add", 3, 256, seconds(2)), "compiling add: 3 of 256 variants, 2 s");
  EXPECT_EQ(ProgressText("add", 0, 1, seconds(70)), "compiling add, 70 s");
}

TEST(Report, DescriptionIsAPage) {
  ASSERT_OK_AND_ASSIGN(const sema::Analyzed analyzed, sema::Analyze(kFile));
  const v1::KernelDescription description = Describe(*analyzed.source, analyzed.kernels[0]);
  EXPECT_EQ(DescriptionPage("k.py", analyzed.kernels[0], description), R"(kernel first (k.py:7)

parameters
  x      f32[N, M]  read     aligned to 16 bytes
  out    f32[4]     written
  alpha  f64        scalar

extents     N (a multiple of 4), M
key         N
grid        x
threads     BLOCK
index bits  32
space       12 variants, 3 of them excluded
digest      )" + description.source_digest() + R"(

search space, the last varying fastest
  BLOCK  32 64
  P      "f16" "tf32"
  F      0.5 1.0 1000.0

conditions
  constraint  line 6  BLOCK == 32 or P == "f16"  decided now
  assume      line 8  N <= 4096                  decided at each launch
)");
}

TEST(Report, ManifestIsATable) {
  v1::Manifest manifest;
  manifest.set_chip("x86-64-v3");
  manifest.mutable_description()->set_kernel("add");
  manifest.set_races_checked(true);
  const auto add = [&](int64_t block, v1::VariantStatus status, const std::string& reason) {
    v1::Variant* variant = manifest.add_variants();
    variant->set_index(manifest.variants_size() - 1);
    v1::Constant* constant = variant->add_settings();
    constant->set_name("BLOCK");
    constant->set_int_value(block);
    variant->set_status(status);
    variant->set_reason(reason);
    variant->set_compile_ns(6100000);
    return variant;
  };
  v1::Variant* good = add(1024, v1::VARIANT_STATUS_COMPILED, "");
  good->mutable_artifact()->set_size_bytes(5200);
  good->set_race_verdict(v1::RACE_VERDICT_RACE_FREE);
  add(2, v1::VARIANT_STATUS_COMPILE_ERROR, "k.py:3:1: error: wrong\n    x\n    ^\nhelp: right");
  add(4, v1::VARIANT_STATUS_COMPILE_ERROR, "k.py:3:1: error: wrong\n    x\n    ^\nhelp: right");
  add(8, v1::VARIANT_STATUS_EXCLUDED, "48 threads");
  EXPECT_EQ(ManifestTable(manifest), R"(kernel add for x86-64-v3: 1 of 4 variants compiled

variant  settings    status    races      bytes  compile  reason
      0  BLOCK=1024  compiled  race free   5200   6.1 ms
      1  BLOCK=2     error                        6.1 ms  k.py:3:1: error: wrong
      2  BLOCK=4     error                        6.1 ms  k.py:3:1: error: wrong
      3  BLOCK=8     excluded                     6.1 ms  48 threads

variant 1 and 1 other:
k.py:3:1: error: wrong
    x
    ^
help: right
)");
}

}  // namespace
}  // namespace phobos::compiler
