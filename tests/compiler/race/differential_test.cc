// SPDX-License-Identifier: Apache-2.0
//
// Random kernels: a verdict of race_free must hold in every small launch, and a witness must be
// real. The seed is fixed.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/ir/printer.h"
#include "compiler/passes/record.h"
#include "compiler/race/race.h"
#include "daemon/worker/check/conflict.h"
#include "tests/compiler/race/brute_force.h"
#include "tests/compiler/sema/lower/lowered.h"
#include "tests/status_matchers.h"

namespace phobos::compiler::race {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  int Below(int n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % static_cast<uint64_t>(n));
  }
  bool OneIn(int n) { return Below(n) == 0; }
  template <size_t kCount>
  std::string Of(const char* const (&choices)[kCount]) {
    return choices[Below(kCount)];
  }

 private:
  uint64_t state_;
};

// Makes the text of one kernel.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  sema::KernelText Kernel() {
    sema::KernelText text;
    rank_ = random_.OneIn(3) ? 2 : 1;
    two_axes_ = random_.OneIn(3);
    text.parameters = rank_ == 1 ? "o: ph.tensor[ph.f32][N], p: ph.tensor[ph.f32][M], "
                                   "q: ph.tensor[ph.f32][K], n: ph.i64"
                                 : "o: ph.tensor[ph.f32][M, N], p: ph.tensor[ph.f32][3], "
                                   "q: ph.tensor[ph.f32][K], n: ph.i64";
    if (random_.OneIn(6)) {
      static constexpr const char* kAssumptions[] = {"ph.ctx.grid.x == 2", "ph.ctx.grid.x <= 1",
                                                     "N >= 4", "n > 0 and n < 3", "N == M"};
      Line(Concat2("ph.assume(", random_.Of(kAssumptions), ")"));
    }
    Line("b: ph.let = ph.ctx.block.x");
    if (two_axes_) Line("c: ph.let = ph.ctx.block.y");
    if (random_.OneIn(8)) {
      static constexpr const char* kReturns[] = {"b != 0", "b > 1", "b * 2 > N", "b == 0"};
      Line(Concat2("if ", random_.Of(kReturns), ":"));
      Line("    return");
    }
    const int statements = 1 + random_.Below(2);
    for (int i = 0; i < statements; ++i) Statement(0);
    text.body = body_;
    return text;
  }

 private:
  static std::string Concat2(const std::string& a, const std::string& b, const std::string& c) {
    return a + b + c;
  }

  void Line(const std::string& line) {
    if (!body_.empty()) body_ += "\n";
    body_ += std::string(4 * indent_, ' ') + line;
  }

  void Statement(int depth) {
    if (depth < 2 && random_.OneIn(3)) return Loop(depth);
    if (depth < 2 && random_.OneIn(4)) return Guard(depth);
    Store();
  }

  void Loop(int depth) {
    static constexpr const char* kRanges[] = {"3",
                                              "0, N, 2",
                                              "b, b + 4",
                                              "b * 4, b * 4 + 4",
                                              "2 * b + 3, 2 * b, -1",
                                              "1, 4, 2",
                                              "b, N, 4",
                                              "n, n + 2",
                                              "b * 4 + n, b * 4 + n + 4",
                                              "b * 2, ph.minimum(b * 2 + 2, N)",
                                              "N, 0, -3",
                                              "0, b",
                                              "b + 1",
                                              "ph.cdiv(N, 2)",
                                              "b, N, ph.ctx.grid.x",
                                              "b, ph.cdiv(N, 2), ph.ctx.grid.x",
                                              "b, 1, ph.ctx.grid.x"};
    const std::string name = depth == 0 ? "i" : "j";
    Line("for " + name + " in ph.range(" + random_.Of(kRanges) + "):");
    ++indent_;
    loops_.push_back(name);
    Statement(depth + 1);
    if (random_.OneIn(6)) {
      Line("if " + name + " == b:");
      Line(random_.OneIn(2) ? "    break" : "    continue");
      Statement(2);
    }
    loops_.pop_back();
    --indent_;
  }

  void Guard(int depth) {
    static constexpr const char* kConditions[] = {"b == 0",
                                                  "b == ph.ctx.grid.x - 1",
                                                  "b < 2",
                                                  "b >= 1 and b <= 1",
                                                  "b % 2 == 0",
                                                  "b // 2 == 1",
                                                  "n == b",
                                                  "not b > 0",
                                                  "b == 0 or b == 3",
                                                  "b * 2 < N",
                                                  "b != 1"};
    Line("if " + random_.Of(kConditions) + ":");
    ++indent_;
    Statement(depth + 1);
    --indent_;
    if (random_.OneIn(3)) {
      Line("else:");
      ++indent_;
      Statement(2);
      --indent_;
    }
  }

  std::string Term() {
    switch (random_.Below(loops_.empty() ? 9 : 12)) {
      case 0:
      case 1:
        return "b";
      case 2:
        return std::to_string(1 + random_.Below(4)) + " * b";
      case 3:
        return two_axes_ ? std::to_string(1 + random_.Below(3)) + " * c" : "b";
      case 4:
        return "b // 2";
      case 5:
        return "b % 2 * " + std::to_string(1 + random_.Below(3));
      case 6: {
        static constexpr const char* kDivisors[] = {
            "N", "M", "ph.cdiv(N, 2)", "-(-M // 2)", "n", "((M + 1) // 2)", "ph.ctx.grid.x"};
        return std::string(random_.OneIn(2) ? "b // " : "b % ") + random_.Of(kDivisors);
      }
      case 7: {
        static constexpr const char* kUniform[] = {"N", "n", "M - 1", "n * 2"};
        return random_.Of(kUniform);
      }
      case 8: {
        static constexpr const char* kOther[] = {"b * N", "ph.minimum(b, 2)", "b * b",
                                                 "(b + 1) // 2"};
        return random_.Of(kOther);
      }
      case 9:
        return "2 * " + loops_[random_.Below(static_cast<int>(loops_.size()))];
      default:
        return loops_[random_.Below(static_cast<int>(loops_.size()))];
    }
  }

  // Positions as people write them, right or nearly so.
  std::string TidyPosition() {
    static constexpr const char* kBases[] = {"4 * b",
                                             "b * 3",
                                             "4 * b + 1",
                                             "2 * b",
                                             "8 * b",
                                             "b",
                                             "b // 3",
                                             "b % 3",
                                             "b // M",
                                             "b % M * 2",
                                             "b // ph.cdiv(N, 2)",
                                             "b % ph.cdiv(N, 2) * 4",
                                             "4 * b + N",
                                             "4 * b + n",
                                             "n * 2 - 3 * b",
                                             "N - 4 * b",
                                             "b // 2 % 3",
                                             "b // 2 // 3",
                                             "b // N // 2",
                                             "b // K",
                                             "b % K",
                                             "b % K"};
    static constexpr const char* kBasesOfTwo[] = {"c",     "2 * c",  "b + 4 * c",
                                                  "3 * b", "c // 2", "c % 2"};
    std::string position =
        two_axes_ && random_.OneIn(2) ? random_.Of(kBasesOfTwo) : random_.Of(kBases);
    if (!loops_.empty() && random_.OneIn(2)) position += " + " + loops_.back();
    return position;
  }

  std::string Position() {
    if (!random_.OneIn(3)) return TidyPosition();
    std::string position = Term();
    for (int i = random_.Below(3); i > 0; --i) {
      position += (random_.OneIn(4) ? " - " : " + ") + Term();
    }
    const int constant = random_.Below(5) - 2;
    if (constant != 0) position += (constant > 0 ? " + " : " - ") + std::to_string(abs(constant));
    return position;
  }

  // A subscript list, and the length of its slice (0: an element).
  std::string Subscripts(int rank, int length) {
    const int slice_at = random_.Below(rank);
    std::string list;
    for (int d = 0; d < rank; ++d) {
      if (d > 0) list += ", ";
      list += random_.OneIn(12) ? "0" : Position();
      if (length > 0 && d == slice_at) list += ":+" + std::to_string(length);
    }
    return "[" + list + "]";
  }

  void Store() {
    const int length = random_.OneIn(2) ? 1 + random_.Below(4) : 0;
    const bool other = random_.OneIn(6);
    const std::string target = (other ? "p" : "o") + Subscripts(other ? 1 : rank_, length);
    std::string value = "1.0";
    if (random_.OneIn(3)) value = "o" + Subscripts(rank_, length);
    if (length > 0 && random_.OneIn(4)) {
      static constexpr const char* kMasks[] = {" < 2", " < N - b", " >= 1", " % 2 == 0",
                                               " + b < 3"};
      Line("ph.store(" + target + ", " + value + ", mask=ph.iota(" + std::to_string(length) + ")" +
           random_.Of(kMasks) + ")");
      return;
    }
    Line(target + (random_.OneIn(8) ? " += " : " = ") + value);
  }

  Random random_;
  int rank_ = 1;
  bool two_axes_ = false;
  int indent_ = 0;
  std::vector<std::string> loops_;
  std::string body_;
};

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

// Small launches, until one is refused. True: none was.
bool ForEachLaunch(const ir::Function& function,
                   const std::function<bool(const SmallLaunch&)>& visit) {
  const bool uses_y = (function.grid_dims_used & 2) != 0;
  for (int64_t n : {0, 1, 2, 5, 9}) {
    for (int64_t m : {1, 3, 8}) {
      for (int64_t scalar : {int64_t{0}, int64_t{1}, int64_t{2}, kLargest - 1, -kLargest}) {
        for (int64_t y : {1, 3}) {
          if (y > 1 && !uses_y) continue;
          SmallLaunch launch;
          for (const ir::Extent& extent : function.extents) {
            // K is 0 half of the time.
            launch.extents.push_back(extent.name == "N" ? n : extent.name == "M" ? m : m / 3);
          }
          launch.scalars.assign(function.params.size(), scalar);
          // Assumptions may want another grid.
          for (const int64_t x : {uses_y ? 4 : 7, 2}) {
            launch.grid = {x, y, 1};
            if (!visit(launch)) return false;
          }
        }
      }
    }
  }
  return true;
}

// The first small launch with a race.
std::string AnyRace(const ir::Function& function) {
  std::string race;
  ForEachLaunch(function, [&](const SmallLaunch& launch) {
    race = RaceIn(function, launch);
    return race.empty();
  });
  return race;
}

bool Touches(const ir::Function& function, const Witness& witness, int side) {
  SmallLaunch launch;
  launch.extents = witness.launch_extents;
  launch.grid = witness.grid;
  for (const auto& scalar : witness.launch_scalars) launch.scalars.push_back(scalar.value_or(0));
  bool touches = false;
  const bool holds =
      RunBlock(function, launch, witness.blocks[side], [&](const ir::Op& op, const Element& e) {
        touches |= op.index == witness.param && e == witness.element &&
                   op.line == witness.lines[side] &&
                   ir::WritesTensor(op.opcode) == witness.writes[side];
        return !touches;
      });
  return holds && touches;
}

TEST(Differential, VerdictsHold) {
  int count[3] = {0, 0, 0};
  int missed = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    const sema::KernelText text = Generator(seed).Kernel();
    ASSERT_OK_AND_ASSIGN(const ir::Function function, sema::LowerKernel(text));
    const Report report = Check(function);
    ++count[static_cast<int>(report.verdict)];
    if (report.verdict == Verdict::kRace) {
      const Witness& witness = *report.witness;
      EXPECT_TRUE(witness.blocks[0] != witness.blocks[1] &&
                  (witness.writes[0] || witness.writes[1]) && Touches(function, witness, 0) &&
                  Touches(function, witness, 1))
          << "seed " << seed << ": " << report.detail << "\n"
          << text.body;
      continue;
    }
    const std::string race = AnyRace(function);
    if (report.verdict == Verdict::kRaceFree) {
      EXPECT_EQ(race, "") << "seed " << seed << "\n" << text.body << "\n" << ir::Print(function);
    } else if (!race.empty()) {
      ++missed;
    }
  }
  // The generator must make kernels of each kind, and few may stay open.
  std::printf("race free %d, race %d, unproven %d, of these with a race %d\n", count[0], count[1],
              count[2], missed);
  EXPECT_GT(count[0], 300);
  EXPECT_GT(count[1], 300);
  EXPECT_LT(count[2], 600);
  EXPECT_LT(missed, 60);
}

// Whether the race-recording form, interpreted, leaves shadows that show a race. Nothing: an
// assumption does not hold.
std::optional<bool> RecordsRace(const passes::Recording& recording, const SmallLaunch& launch) {
  interpreter::Launch interpreted;
  interpreted.grid = launch.grid;
  for (size_t i = 0; i < recording.function.params.size(); ++i) {
    const ir::Param& param = recording.function.params[i];
    interpreter::Argument& argument = interpreted.arguments.emplace_back();
    if (!param.is_tensor) {
      argument.elements = {interpreter::FromInteger(param.dtype, launch.scalars[i])};
      continue;
    }
    int64_t elements = 1;
    for (const ir::Dim& dim : param.dims) {
      argument.sides.push_back(dim.extent >= 0 ? launch.extents[dim.extent] : dim.literal);
      elements *= argument.sides.back();
    }
    argument.elements.assign(elements, 0);
  }
  const auto after = interpreter::Interpret(recording.function, interpreted);
  if (absl::IsFailedPrecondition(after.status())) return std::nullopt;
  EXPECT_OK(after);
  if (!after.ok()) return std::nullopt;
  const size_t originals = after->size() - recording.shadows.size();
  for (size_t param = 0; param < originals; ++param) {
    std::array<std::vector<uint32_t>, worker::kShadowContents> words;
    worker::Shadows shadows;
    for (size_t i = 0; i < recording.shadows.size(); ++i) {
      if (recording.shadows[i].param != static_cast<int32_t>(param)) continue;
      const size_t content = static_cast<size_t>(recording.shadows[i].content) + 1;
      const auto& elements = (*after)[originals + i].elements;
      words[content].assign(elements.begin(), elements.end());
      shadows[content] = words[content];
    }
    if (worker::FirstConflict(shadows).has_value()) return true;
  }
  return false;
}

TEST(Differential, RecordingsFindWhatBruteForceFinds) {
  int races = 0;
  int others = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const sema::KernelText text = Generator(seed).Kernel();
    ASSERT_OK_AND_ASSIGN(const ir::Function function, sema::LowerKernel(text));
    const passes::Recording recording = passes::Record(function, Check(function).proved_params);
    int launches = 0;
    ForEachLaunch(function, [&](const SmallLaunch& launch) {
      if (++launches % 7 != 0) return true;
      const std::optional<bool> recorded = RecordsRace(recording, launch);
      if (!recorded.has_value()) return true;
      ++(*recorded ? races : others);
      EXPECT_EQ(*recorded, !RaceIn(function, launch).empty()) << "seed " << seed << "\n"
                                                              << text.body << "\n"
                                                              << ir::Print(recording.function);
      return !::testing::Test::HasFailure();
    });
  }
  std::printf("launches with a race %d, without %d\n", races, others);
  EXPECT_GT(races, 500);
  EXPECT_GT(others, 500);
}

}  // namespace
}  // namespace phobos::compiler::race
