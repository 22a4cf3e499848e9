// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/text/parser.h"

#include <cstdint>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/equality.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/pipeline.h"
#include "compiler/sema/kernel.h"
#include "compiler/sema/lower.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/source.h"
#include "gtest/gtest.h"
#include "tests/compiler/ir/text/round_trip.h"
#include "tests/status_matchers.h"

namespace phobos::compiler::ir {
namespace {

// Every kind of line, and every part of the first one.
Function Everything() {
  Function start{.name = "all"};
  start.settings = {{"BLOCK", "4"}, {"threads", "\"a \\ text\"\n"}, {"F", "-1.5e-07"}};
  start.threads = 96;
  start.index_bits = 32;
  start.min_blocks = 2;
  start.grid_dims_used = 5;
  start.fast_math = true;
  Builder b(std::move(start));
  b.AddExtent("UNUSED", 16);
  const int32_t n = b.AddExtent("N", 4);
  const int32_t a = b.AddTensor("a", DType::kF16, {{n, 0}, {-1, 8}});
  const int32_t s = b.AddScalar("s", DType::kU64);
  const ValueId extent = b.Extent(n);
  b.Assume(b.Elementwise(Opcode::kGreater, {extent, b.Int(0)}));
  b.ScalarParam(s);
  b.GridSize(2);
  b.BlockId(1);
  b.Constant(DType::kU64, int64_t{-1});
  b.Constant(DType::kI64, std::numeric_limits<int64_t>::min());
  b.Constant(DType::kF32, -0.0);
  b.Constant(DType::kF64, 0x1p-1074);
  b.Constant(DType::kF64, std::numeric_limits<double>::quiet_NaN());
  const ValueId fill = b.Constant(DType::kF16, -std::numeric_limits<double>::infinity());
  const ValueId mask = b.Broadcast(b.Constant(DType::kBool, int64_t{0}), {4, 8});
  const ValueId rows = b.Iota(4);
  const ValueId zero = b.Int(0);
  const ValueId tile = b.Load(a, {GatherAt(rows), SliceAt(zero, 8)}, fill, mask);
  b.Load(a, {ElementAt(zero), SliceAt(zero, 8)});
  const ValueId product = b.Dot(tile, tile, kNoValue, true, Precision::kExact);
  const ValueId wide = b.Dot(b.Reshape(b.Cast(tile, DType::kF32), {8, 4}), product, kNoValue, false,
                             Precision::kTf32);
  b.Dot(wide, product, wide, true, Precision::kF16);
  b.Atomic(Opcode::kAtomicMaximum, a, {GatherAt(rows), SliceAt(zero, 8)}, {tile}, false);
  b.Atomic(Opcode::kAtomicCompareSwap, a, {ElementAt(zero), ElementAt(zero)}, {fill, fill}, true);
  b.Pair(Opcode::kJoin, tile, tile);
  b.Print({"a \"tile\" ", "\n"}, {tile});
  b.Print({""}, {});
  const VarId var = b.Declare("acc", tile);
  b.For(
      zero, extent, -2,
      [&](ValueId index) {
        b.If(
            b.Elementwise(Opcode::kEqual, {index, zero}), [&] { b.Continue(); },
            [&] { b.Break(); });
      },
      4);
  b.While([&] { return b.Constant(DType::kBool, int64_t{0}); },
          [&] { b.If(b.Constant(DType::kBool, int64_t{1}), [&] { b.Return(); }); });
  b.Write(var, b.Elementwise(Opcode::kPowInt, {b.Read(var)}, 3));
  b.Store(a, {SliceAt(zero, 4), SliceAt(zero, 8)}, b.Read(var), mask);
  Function function = b.Finish();
  function.params[0].aligned_bytes = 16;
  for (Op& op : function.body) {
    if (op.opcode == Opcode::kFor) op.stages = 3;
  }
  return function;
}

TEST(Parser, ReadsEveryKindOfLine) {
  const Function function = Everything();
  ASSERT_OK(Verify(function));
  EXPECT_OK(CheckRoundTrip(function));
  ASSERT_OK_AND_ASSIGN(const Function again, Parse(Print(function)));
  EXPECT_OK(Verify(again));
  EXPECT_EQ(again.value_count, function.value_count);
  EXPECT_EQ(again.loop_count, function.loop_count);
}

TEST(Parser, ReadsTheOrdersOfReductionsAndScans) {
  const std::string text =
      "kernel k(x: f32[8] in, out: f32[1] out) threads=256 index_bits=64\n"
      "  %0: i64 = constant 0\n"
      "  %1: f32[8] = load x[%0:+8]\n"
      "  %2: f32[8] = cumsum %1 axis 0 pieces 4\n"
      "  %3: f32 = sum %2 axis 0 lanes 6 near\n"
      "  store out[%0], %3\n";
  ASSERT_OK_AND_ASSIGN(const Function function, Parse(text));
  EXPECT_OK(Verify(function));
  EXPECT_OK(CheckRoundTrip(function));
  EXPECT_EQ(Print(function), text);
  EXPECT_EQ(function.body[2].index, 4);
  EXPECT_TRUE(function.body[3].is_near);
}

TEST(Parser, APlaceIsThatOfTheText) {
  ASSERT_OK_AND_ASSIGN(const Function function,
                       Parse("# a comment\n\nkernel k() # another\n  %0: i64 = constant 1\n\n"
                             "  %1: bool = constant true\n  if %1 {\n    return\n  }"));
  ASSERT_EQ(function.body.size(), 3u);
  EXPECT_EQ(function.body[0].line, 4);
  EXPECT_EQ(function.body[0].column, 3);
  EXPECT_EQ(function.body[2].regions[0][0].line, 8);
  EXPECT_EQ(function.body[2].regions[0][0].column, 5);
}

TEST(Parser, EveryOpcodeHasAName) {
  for (int i = 0; i <= static_cast<int>(Opcode::kStage); ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_EQ(OpcodeNamed(Name(opcode)), std::optional<Opcode>(opcode));
  }
  EXPECT_EQ(OpcodeNamed("Add"), std::nullopt);
}

// All kernels of a file, each at its first and its last variant, as lowered and after the passes.
absl::Status CheckFile(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const Source source(path, text.str());
  ASSIGN_OR_RETURN(const ast::Module module, compiler::Parse(source));
  ASSIGN_OR_RETURN(const sema::Analysis analysis, sema::AnalyzeModule(source, module));
  if (analysis.kernels.empty()) return absl::NotFoundError(path + " holds no kernel");
  for (const sema::Kernel& kernel : analysis.kernels) {
    for (int64_t variant : {int64_t{0}, kernel.variant_count() - 1}) {
      ASSIGN_OR_RETURN(const Function function,
                       sema::Lower(source, module, kernel, kernel.VariantSettings(variant)));
      RETURN_IF_ERROR(CheckRoundTrip(function));
      ASSIGN_OR_RETURN(const Function final, passes::Run(function));
      RETURN_IF_ERROR(CheckRoundTrip(final));
    }
  }
  return absl::OkStatus();
}

TEST(Parser, ReadsTheKernelsOfTheExamples) {
  for (const char* path : {"examples/gelu.py", "examples/saxpy.py", "examples/torch_add.py",
                           "examples/vector_add.py"}) {
    EXPECT_OK(CheckFile(path)) << path;
  }
}

TEST(Parser, AnErrorNamesItsPlaceAndWhatIsWrong) {
  const std::string head = "kernel k(x: f32[N] in out, n: i32)\n";
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "line 1, column 1: a function begins with `kernel`"},
           {"kernel", "line 1, column 7: the name of the kernel is missing"},
           {"kernel k(x f32)", "line 1, column 12: `:` is missing"},
           {"kernel k(x: f33)", "line 1, column 13: `f33` is no element type"},
           {"kernel k(x: f32[N)", "line 1, column 18: `,` is missing"},
           {"kernel k(x: f32[-3])", "line 1, column 17: the name of an extent is missing"},
           {"kernel k() M:multiple=4", "line 1, column 12: there is no extent M"},
           {"kernel k() BLOCK", "line 1, column 17: the value of BLOCK is missing"},
           {"kernel k() A=\"a",
            "line 1, column 15: this text does not end with a double quote, or "
            "has a wrong escape"},
           {"kernel k() threads=x", "line 1, column 21: threads= takes a whole number"},
           {"kernel k() grid=xw", "line 1, column 19: grid= takes x, y and z, or none"},
           {"kernel k() fast_math A=1", "line 1, column 22: the line should end here"},
           {"kernel k(x: f32[N]) extents [M]",
            "line 1, column 32: an extent of a parameter is not listed"},
           {head + "  %0: i64 = constnat 1", "line 2, column 13: `constnat` is no operation"},
           {head + "  %0: i64 = constant 1.5",
            "line 2, column 22: `1.5` is no constant of type i64"},
           {head + "  %0: u64 = constant -1", "line 2, column 22: `-1` is no constant of type u64"},
           {head + "  %0: bool = constant 1", "line 2, column 23: write true or false"},
           {head + "  %0: i64 = block_id w", "line 2, column 22: write x, y or z"},
           {head + "  %0: i64 = extent M", "line 2, column 20: there is no extent M"},
           {head + "  %0: i64 = scalar y", "line 2, column 20: there is no parameter y"},
           {head + "  %9999999: i64 = extent N",
            "line 2, column 4: the number is not within 0 and 1048576"},
           {head + "  %0: i64[0] = iota",
            "line 2, column 11: the number is not within 1 and "
            "1048576"},
           {head + "  %0: i64[1024, 1025] = iota",
            "line 2, column 21: a tile has at most 1048576 elements and 8 dimensions"},
           {head + "  %0: i64 = add %1 %2", "line 2, column 20: the line should end here"},
           {head + "  %0: f32 = load x", "line 2, column 19: `[` is missing"},
           {head + "  store x[%0], %1",
            "line 2, column 18: this uses a value that no line before it makes"},
           {head + "  for loop0 = %0 to %1 {", "line 2, column 24: `step` is missing"},
           {head + "  while {\n  }", "line 3, column 4: `do` is missing"},
           {head + "  if %0 {\n    return", "line 3, column 11: `}` is missing"},
           {head + "  }", "line 2, column 3: this belongs to no region"}}) {
    const absl::Status status = Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(std::string(status.message()), message) << text;
  }
}

TEST(Parser, NestingIsLimited) {
  const auto nested = [](int depth) {
    std::string text = "kernel k()\n%0: bool = constant true\n";
    for (int i = 0; i < depth; ++i) text += "if %0 {\n";
    for (int i = 0; i < depth; ++i) text += "}\n";
    return text;
  };
  ASSERT_OK_AND_ASSIGN(const Function function, Parse(nested(600)));
  EXPECT_OK(CheckRoundTrip(function));
  EXPECT_EQ(Parse(nested(100000)).status().message(),
            "line 604, column 1: regions are nested deeper than 600");
}

// Sides of 3 wherever the function does not say; nothing where its tensors are too large to fill.
std::optional<interpreter::Launch> LaunchOf(const Function& function) {
  interpreter::Launch launch;
  for (const Param& param : function.params) {
    interpreter::Argument argument;
    int64_t elements = 1;
    for (const Dim& dim : param.dims) {
      argument.sides.push_back(dim.extent >= 0 ? 3 : dim.literal);
      if (argument.sides.back() > 1000) return std::nullopt;
      elements *= argument.sides.back();
      if (elements > 100000) return std::nullopt;
    }
    argument.elements.resize(elements);
    launch.arguments.push_back(std::move(argument));
  }
  return launch;
}

// Texts with bytes changed, taken out, and copied from elsewhere in the text: each is an error or a
// function; one that passes Verify also comes back from its text, and can be interpreted.
TEST(Parser, NoTextMakesItCrash) {
  const std::string good = Print(Everything());
  const std::string dictionary[] = {"none",   "%0",    "%13",       "f64", "[1, 2]", "i64",
                                    "loop0",  "loop1", "add",       "\n",  "exp",    "-1",
                                    "gather", "mask",  "$0:",       "{\n", "}\n",    "if",
                                    "yield",  "N",     "broadcast", "cast"};
  std::mt19937_64 random(20);
  const auto below = [&random](size_t limit) { return static_cast<size_t>(random() % limit); };
  int well_formed = 0;
  for (int round = 0; round < 30000; ++round) {
    std::string text = good;
    for (size_t change = 0; change <= below(3); ++change) {
      const size_t at = below(text.size());
      switch (below(5)) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, below(5));
          break;
        case 2:
          text[at] = static_cast<char>('0' + below(10));
          break;
        case 3:
          text.replace(at, below(6), dictionary[below(std::size(dictionary))]);
          break;
        default:
          text.insert(at, text.substr(below(text.size()), below(40)));
      }
    }
    const absl::StatusOr<Function> function = Parse(text);
    if (!function.ok()) {
      ASSERT_EQ(function.status().code(), absl::StatusCode::kInvalidArgument) << text;
      ASSERT_EQ(std::string(function.status().message()).find("line "), 0u) << text;
      continue;
    }
    if (!Verify(*function).ok()) continue;
    ++well_formed;
    ASSERT_OK(CheckRoundTrip(*function)) << text;
    const std::optional<interpreter::Launch> launch = LaunchOf(*function);
    if (launch.has_value()) {
      interpreter::Interpret(*function, *launch, {.steps = 100000}).status().IgnoreError();
    }
  }
  EXPECT_GT(well_formed, 1000);
}

}  // namespace
}  // namespace phobos::compiler::ir
