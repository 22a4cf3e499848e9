// SPDX-License-Identifier: Apache-2.0
//
// Kernels beside the verdict that they must get; a race's witness is run.
#include "compiler/race/race.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "compiler/ir/printer.h"
#include "tests/compiler/race/brute_force.h"
#include "tests/compiler/sema/lower/lowered.h"
#include "tests/status_matchers.h"

namespace phobos::compiler::race {
namespace {

// Whether the two blocks of the witness do touch its element as it says.
bool IsReal(const ir::Function& function, const Witness& witness) {
  if (witness.blocks[0] == witness.blocks[1]) return false;
  if (!witness.writes[0] && !witness.writes[1]) return false;
  SmallLaunch launch;
  launch.extents = witness.launch_extents;
  launch.grid = witness.grid;
  for (const std::optional<int64_t>& scalar : witness.launch_scalars) {
    launch.scalars.push_back(scalar.value_or(0));
  }
  for (size_t i = 0; i < function.extents.size(); ++i) {
    if (launch.extents[i] % function.extents[i].multiple != 0) return false;
  }
  for (int side = 0; side < 2; ++side) {
    for (int axis = 0; axis < 3; ++axis) {
      if (witness.blocks[side][axis] < 0) return false;
      if (witness.blocks[side][axis] >= witness.grid[axis]) return false;
    }
    bool touches = false;
    const bool holds = RunBlock(
        function, launch, witness.blocks[side], [&](const ir::Op& op, const Element& element) {
          touches |= op.index == witness.param && element == witness.element &&
                     op.line == witness.lines[side] &&
                     ir::WritesTensor(op.opcode) == witness.writes[side];
          return !touches;
        });
    if (!holds || !touches) return false;
  }
  return true;
}

struct Case {
  const char* what;
  sema::KernelText text;
  Verdict verdict;
  const char* detail = "";  // a part of it
};

const char kOne[] = "x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]";
const char kTwo[] = "x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][M, N], n: ph.i32";
const char kBase[] = "b: ph.let = ph.ctx.block.x * BLOCK\n";

sema::KernelText One(const std::string& body, const std::string& decorators = "") {
  return {.parameters = kOne, .body = kBase + body, .decorators = decorators};
}

sema::KernelText Bare(const std::string& body) { return {.parameters = kOne, .body = body}; }

sema::KernelText Counting(const std::string& body) {
  return {.parameters = "x: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N]", .body = body};
}

sema::KernelText Two(const std::string& body) { return {.parameters = kTwo, .body = body}; }

void Expect(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    ASSERT_OK_AND_ASSIGN(const ir::Function function, sema::LowerKernel(c.text));
    const Report report = Check(function);
    EXPECT_EQ(static_cast<int>(report.verdict), static_cast<int>(c.verdict))
        << c.what << ": " << report.detail << "\n"
        << ir::Print(function);
    EXPECT_TRUE(absl::StrContains(report.detail, c.detail)) << c.what << ": " << report.detail;
    EXPECT_EQ(report.verdict == Verdict::kRaceFree, report.detail.empty()) << c.what;
    ASSERT_EQ(report.verdict == Verdict::kRace, report.witness.has_value()) << c.what;
    if (report.witness.has_value()) {
      EXPECT_TRUE(IsReal(function, *report.witness)) << c.what << ": " << report.detail;
    }
  }
}

constexpr Verdict kFree = Verdict::kRaceFree;
constexpr Verdict kRace = Verdict::kRace;
constexpr Verdict kUnproven = Verdict::kUnproven;
const char kMayWrap[] = "arithmetic that may leave 64 bits";

TEST(Race, OneDimension) {
  Expect({
      {"add", One("out[b:+BLOCK] = x[b:+BLOCK] + x[b:+BLOCK]"), kFree},
      {"in place", One("out[b:+BLOCK] += x[b:+BLOCK]"), kFree},
      {"BLOCK // 2", One("out[ph.ctx.block.x * (BLOCK // 2):+BLOCK] = x[b:+BLOCK]"), kRace,
       "block (0, 0, 0) writes out[2] (k.py:6) and block (1, 0, 0) writes it (k.py:6), with "
       "BLOCK=4, N="},
      {"BLOCK - 1", One("out[ph.ctx.block.x * (BLOCK - 1):+BLOCK] = x[b:+BLOCK]"), kRace},
      {"BLOCK + 1 leaves gaps", One("out[ph.ctx.block.x * (BLOCK + 1):+BLOCK] = x[b:+BLOCK]"),
       kFree},
      {"in-place stencil", One("out[b:+BLOCK] = out[b + 1:+BLOCK] + 1.0"), kRace, "reads"},
      {"stencil from another tensor",
       One("out[b:+BLOCK] = x[b - 1 + 1 - 1 + 1:+BLOCK] + x[b + 1:+BLOCK]"), kFree},
      {"even and odd", One("out[2 * ph.ctx.block.x] = out[2 * ph.ctx.block.x + 1]"), kFree},
      {"even and even", One("out[2 * ph.ctx.block.x] = out[2 * ph.ctx.block.x + 2]"), kRace},
      {"one element by all", One("out[0] = x[b]"), kRace, "out[0]"},
      {"two stores that meet", One("out[b] = 1.0\nout[b + BLOCK] = 2.0"), kRace},
      {"two stores that do not", One("out[b] = 1.0\nout[b + BLOCK - 1] = 2.0"), kFree},
      {"two tensors",
       {.parameters = "x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N]",
        .body = "b: ph.let = ph.ctx.block.x\nx[b] = 1.0\ny[b] = 1.0"},
       kFree},
      {"backwards", One("out[N - b - BLOCK:+BLOCK] = x[b:+BLOCK]"), kFree},
      {"shifted by an extent", One("out[b:+BLOCK] = 1.0\nout[b + N:+BLOCK] = 2.0"), kFree},
      {"the grid's other dimensions are not read", One("out[b:+BLOCK] = 0.0"), kFree},
      {"y is read and not used", One("y: ph.let = ph.ctx.block.y\nout[b:+BLOCK] = 0.0"), kRace},
      {"y is read in another variant",
       One("if BLOCK > 100:\n    out[ph.ctx.block.y] = 1.0\nout[b:+BLOCK] = 0.0"), kRace},
      {"no store", One("v: ph.let = x[b]"), kFree},
      {"one block", {.parameters = kOne, .body = "out[0] = x[0]"}, kFree},
      {"last tile moved back", One("out[ph.minimum(b, N - BLOCK):+BLOCK] = 0.0"), kRace},
  });
}

TEST(Race, MoreDimensions) {
  Expect({
      {"rows", Two("out[ph.ctx.block.x, 0:+BLOCK] = x[ph.ctx.block.x, 0:+BLOCK]"), kFree},
      {"rows looped over",
       Two("r: ph.let = ph.ctx.block.x\nfor j in ph.range(0, N, BLOCK):\n    out[r, j:+BLOCK] = "
           "x[r, j:+BLOCK]"),
       kFree},
      {"columns by rows", Two("out[0, 0:+BLOCK] = x[ph.ctx.block.x, 0:+BLOCK]"), kRace},
      {"tiles in x and y", Two("out[ph.ctx.block.y, ph.ctx.block.x * BLOCK:+BLOCK] = 0.0"), kFree},
      {"tiles in x alone",
       Two("v: ph.let = ph.ctx.block.y\nout[0, ph.ctx.block.x * BLOCK:+BLOCK] = 0.0"), kRace},
      {"planted in one of two",
       Two("out[ph.ctx.block.y, ph.ctx.block.x * (BLOCK - 1):+BLOCK] = 0.0"), kRace},
      {"several rows a block",
       Two("for r in ph.range(4):\n    out[ph.ctx.block.x * 4 + r, 0] = 1.0"), kFree},
      {"one row too many", Two("for r in ph.range(5):\n    out[ph.ctx.block.x * 4 + r, 0] = 1.0"),
       kRace},
      {"rows from a range that starts at the block",
       Two("b: ph.let = ph.ctx.block.x * 4\nfor r in ph.range(b, b + 4):\n    out[r, 0] = 1.0"),
       kFree},
      {"the same, clipped",
       Two("b: ph.let = ph.ctx.block.x * 4\nfor r in ph.range(b, ph.minimum(b + 4, M)):\n    "
           "out[r, 0] = 1.0"),
       kFree},
      {"backwards",
       Two("b: ph.let = ph.ctx.block.x * 4\nfor r in ph.range(b + 3, b - 1, -1):\n    out[r, 0] = "
           "1.0"),
       kFree},
      {"pid // n and pid % n",
       Two("n2: ph.let = ph.cdiv(N, BLOCK)\np: ph.let = ph.ctx.block.x\nout[p // n2, p % n2 * "
           "BLOCK:+BLOCK] = 0.0"),
       kFree},
      {"-(-N // n)",
       Two("n2: ph.let = -(-N // BLOCK)\np: ph.let = ph.ctx.block.x\nout[p // n2, p % n2 * "
           "BLOCK:+BLOCK] = 0.0"),
       kFree},
      {"(N + n - 1) // n",
       Two("n2: ph.let = (N + BLOCK - 1) // BLOCK\np: ph.let = ph.ctx.block.x\nout[p // n2, p % n2 "
           "* BLOCK:+BLOCK] = 0.0"),
       kFree},
      {"a divisor that may be 0",
       {.parameters = "x: ph.tensor[ph.f32][K], o: ph.tensor[ph.f32][M, N]",
        .body = "p: ph.let = ph.ctx.block.x\no[p // K, p % K] = x[0]"},
       kRace,
       "K=0"},
      {"the same, assumed not to be",
       {.parameters = "x: ph.tensor[ph.f32][K], o: ph.tensor[ph.f32][M, N]",
        .body = "ph.assume(K > 0)\np: ph.let = ph.ctx.block.x\no[p // K, p % K] = x[0]"},
       kFree},
      {"three axes in one",
       {.parameters = "o: ph.tensor[ph.f32][M, N, K]",
        .body = "p: ph.let = ph.ctx.block.x\nq: ph.let = p // K\no[q // N, q % N, p % K] = 0.0"},
       kFree},
      {"a constant divisor", Two("p: ph.let = ph.ctx.block.x\nout[p // 8, p % 8] = 0.0"), kFree},
      {"only the quotient", Two("out[ph.ctx.block.x // 8, 0] = 0.0"), kRace},
      {"only the remainder", Two("out[ph.ctx.block.x % 8, 0] = 0.0"), kRace},
      {"divisors that differ", Two("p: ph.let = ph.ctx.block.x\nout[p // 8, p % 4] = 0.0"), kRace},
      {"planted in the remainder",
       Two("p: ph.let = ph.ctx.block.x\nout[p // 8, p % 8 * 2:+3] = 0.0"), kRace},
      {"flat, of known width", Two("out[0, ph.ctx.block.y * 8 + ph.ctx.block.x] = 0.0"), kRace},
      {"flat, of a width that is assumed",
       Two("ph.assume(ph.ctx.grid.x == 8)\nout[0, ph.ctx.block.y * 8 + ph.ctx.block.x] = 0.0"),
       kFree},
      {"flat, of unknown width",
       {.parameters = "x: ph.tensor[ph.f32][N], o: ph.tensor[ph.f32][M]",
        .body = "o[ph.ctx.block.y * N + ph.ctx.block.x] = x[0]"},
       kRace},
      {"one row of a literal extent",
       {.parameters = "o: ph.tensor[ph.f32][1, N]", .body = "o[ph.ctx.block.x, 0] = 1.0"},
       kFree},
      {"a literal extent that clips",
       {.parameters = "o: ph.tensor[ph.f32][3]", .body = "o[ph.ctx.block.x * 2 + 1:+5] = 1.0"},
       kFree},
  });
}

TEST(Race, Guards) {
  Expect({
      {"only block 0", One("if ph.ctx.block.x == 0:\n    out[0] = x[0]"), kFree},
      {"blocks 0 and 1", One("if ph.ctx.block.x < 2:\n    out[0] = x[0]"), kRace},
      {"below 1", One("if ph.ctx.block.x < 1:\n    out[0] = x[0]"), kFree},
      {"else of not 0", One("if ph.ctx.block.x != 0:\n    pass\nelse:\n    out[0] = x[0]"), kFree},
      {"the others return", One("if ph.ctx.block.x != 0:\n    return\nout[0] = x[0]"), kFree},
      {"the last block", One("if ph.ctx.block.x == ph.ctx.grid.x - 1:\n    out[0] = x[0]"), kFree},
      {"and", One("if ph.ctx.block.x >= 3 and ph.ctx.block.x <= 3:\n    out[0] = x[0]"), kFree},
      {"not or", One("if not (ph.ctx.block.x < 3 or ph.ctx.block.x > 3):\n    out[0] = x[0]"),
       kFree},
      {"two blocks far apart",
       One("if ph.ctx.block.x == 7:\n    out[0] = x[0]\nif ph.ctx.block.x == 900:\n    out[0] = "
           "x[0]"),
       kRace, "(900, 0, 0)"},
      {"conditional expression in a position", One("out[b if ph.ctx.block.x > 1 else 0] = 1.0"),
       kRace},
      {"a constant guard", One("if BLOCK == 8:\n    out[0] = x[0]"), kFree},
      {"a scalar guard",
       {.parameters = kTwo, .body = "if n == 3:\n    out[ph.ctx.block.x // 2, 0] = 1.0"},
       kRace,
       "n=3"},
      {"a data-dependent guard", One("if x[b] > 0:\n    out[0] = 1.0"), kUnproven,
       "k.py:7: the store to out"},
      {"a data-dependent position",
       {.parameters = "i: ph.tensor[ph.i32][N], out: ph.tensor[ph.f32][N]",
        .body = "out[i[ph.ctx.block.x]] = 1.0"},
       kUnproven,
       "its position depends on a value loaded from memory"},
      {"a variable position",
       One("p: ph.var = b\nfor i in ph.range(N):\n    p += x[i] > 0\nout[p] = 1.0"), kUnproven,
       "a variable"},
      {"after a data-dependent return", One("if x[b] > 0:\n    return\nout[0] = 1.0"), kUnproven},
      {"mask over block ids", One("ph.store(out[0:+BLOCK], x[0:+BLOCK], mask=ph.ctx.block.x == 0)"),
       kFree},
      {"a mask of one condition, arranged",
       One("m: ph.let = ph.full(ph.bool, ph.ctx.block.x == 0, 2, BLOCK)\n"
           "ph.store(out[0:+2 * BLOCK], 0.0, mask=ph.reshape(ph.transpose(m), 2 * BLOCK))"),
       kFree},
      {"a mask of several, arranged",
       One("m: ph.let = (ph.iota(2) == ph.ctx.block.x)[:, None] | (ph.iota(BLOCK) < 0)\n"
           "ph.store(out[0:+2 * BLOCK], 0.0, mask=ph.reshape(ph.transpose(m), 2 * BLOCK))"),
       kUnproven},
      {"a mask that selects the block's part",
       One("ph.store(out[b:+2 * BLOCK], 0.0, mask=ph.iota(2 * BLOCK) < BLOCK)"), kUnproven},
      {"a mask that does not",
       One("ph.store(out[b:+2 * BLOCK], 0.0, mask=ph.iota(2 * BLOCK) < BLOCK + 1)"), kRace},
      {"assumed to be one block",
       Bare("ph.assume(ph.ctx.grid.x == 1)\nout[ph.ctx.block.x * 0] = x[0]"), kFree},
      {"assumed at most one block",
       Bare("ph.assume(ph.ctx.grid.x <= 1)\nout[ph.ctx.block.x * 0] = x[0]"), kFree},
      {"assumed two blocks", Bare("ph.assume(ph.ctx.grid.x == 2)\nout[ph.ctx.block.x * 0] = x[0]"),
       kRace, "grid (2, 1, 1)"},
      {"an assumption about the grid's coverage",
       Bare("ph.assume(ph.ctx.grid.x * BLOCK >= N)\nout[ph.ctx.block.x * 0] = x[0]"), kRace},
      {"a constraint that leaves one element",
       One("out[b] = 0.0\nout[0] = 0.0", "@ph.constraint(\"N == 0\")"), kFree},
      {"promised multiples",
       {.parameters = kOne,
        .body = "out[ph.ctx.block.x * 3:+BLOCK] = 0.0",
        .decorators = "@ph.aligned(N=64)"},
       kRace,
       "N=64"},
  });
}

// Arithmetic wraps: positions that may leave 64 bits are still told apart by their differences.
// Atomics keep out of each other's way; what else touches the element does not.
TEST(Race, Atomics) {
  Expect({
      {"one element by all", Counting("ph.atomic_add(out[0], 1)"), kFree},
      {"anywhere", Counting("ph.atomic_max(out[x[0:+4]], x[0:+4])"), kFree},
      {"of two kinds",
       Counting("o: ph.let = ph.atomic_cas(out[0], 1, 2)\nph.atomic_or(out[0:+8], o)"), kFree},
      {"beside a load", Counting("ph.atomic_add(out[0], out[ph.ctx.block.x])"), kRace,
       "and block (1, 0, 0)"},
      {"beside a store", Counting("ph.atomic_add(out[0], 1)\nout[ph.ctx.block.x] = 0"), kRace,
       "writes out[0]"},
      {"apart from a store",
       Counting("b: ph.let = ph.ctx.block.x * 4\nout[b:+4] = 0\nph.atomic_add(out[b + 2], 1)"),
       kFree},
      {"at a place from memory beside a store",
       Counting("out[ph.ctx.block.x] = 0\nph.atomic_add(out[x[0:+4]], 1)"), kUnproven,
       "its position depends on a tile of places, which is not followed; a slice, as "
       "A[start:+LENGTH], is"},
      {"at a tile of the block's own places", Counting("out[ph.ctx.block.x * 4 + ph.iota(4)] = 1"),
       kUnproven, "a tile of places"},
      {"at a slice of them", Counting("out[ph.ctx.block.x * 4:+4] = 1"), kFree},
  });
}

// Blocks that share tiles out among them.
TEST(Race, StridesOfTheGrid) {
  const std::string kOver =
      "for t in ph.range(ph.ctx.block.x, ph.cdiv(N, BLOCK), ph.ctx.grid.x):\n";
  Expect({
      {"each tile once", Bare(kOver + "    out[t * BLOCK:+BLOCK] = x[t * BLOCK:+BLOCK]"), kFree},
      {"in place", Bare(kOver + "    out[t * BLOCK:+BLOCK] += x[t * BLOCK:+BLOCK]"), kFree},
      {"half a tile on", Bare(kOver + "    out[t * BLOCK:+2 * BLOCK] = 1.0"), kRace},
      {"beside the block's own", Bare(kOver + "    out[t] = out[ph.ctx.block.x]"), kUnproven},
      {"another step",
       Bare("for t in ph.range(ph.ctx.block.x, N, ph.ctx.grid.x + 1):\n    out[t] = 1.0"),
       kUnproven},
      {"another start",
       Bare("for t in ph.range(ph.ctx.block.x // 2, N, ph.ctx.grid.x):\n    out[t] = 1.0"), kRace},
      {"two in one",
       Bare(kOver + "    for u in ph.range(ph.ctx.block.x, 9, ph.ctx.grid.x):\n"
                    "        out[t + u] = 1.0"),
       kRace},
      {"in two dimensions of the grid",
       Two("for t in ph.range(ph.ctx.block.x, M, ph.ctx.grid.x):\n"
           "    out[t, ph.ctx.block.y * BLOCK:+BLOCK] = 1.0"),
       kFree},
      {"one tile at most",
       Bare("for t in ph.range(ph.ctx.block.x, 1, ph.ctx.grid.x):\n    out[0] = 1.0"), kFree},
      {"a store behind one tile at most",
       Bare("for t in ph.range(ph.ctx.block.x, 1, ph.ctx.grid.x):\n    x[0] = 1.0\nout[0] = 1.0"),
       kRace},
  });
}

TEST(Race, Wrapping) {
  const auto scalar = [](const std::string& type, const std::string& body) {
    return sema::KernelText{.parameters = std::string(kOne) + ", s: ph." + type,
                            .body = "b: ph.let = ph.ctx.block.x\n" + body};
  };
  Expect({
      {"2^48 a block", Bare("out[ph.ctx.block.x * (1 << 48):+4] = 1.0"), kUnproven, kMayWrap},
      {"2^34 a block", Bare("out[ph.ctx.block.x * (1 << 34):+4] = 1.0"), kUnproven, kMayWrap},
      {"2^33 a block", Bare("out[ph.ctx.block.x * (1 << 33):+4] = 1.0"), kFree},
      {"2^48 a row", Bare("out[ph.ctx.block.y * (1 << 48)] = 1.0"), kFree},
      {"2^62 a row", Bare("out[ph.ctx.block.y * (1 << 62)] = 1.0"), kRace, "block (0, 4, 0)"},
      {"shifted by an i32", scalar("i32", "out[b + s] = 1.0"), kFree},
      {"a guard of an i32", scalar("i32", "if s + b <= ph.cast(s, ph.i64):\n    out[0] = 1.0"),
       kFree},
      {"a guard of an i64", scalar("i64", "if s + b <= s:\n    out[0] = 1.0"), kUnproven},
      {"a guard of an i64 turned round", scalar("i64", "if s + b > s:\n    return\nout[0] = 1.0"),
       kUnproven},
      {"a row of slices",
       Two("for j in ph.range(N):\n    out[ph.ctx.block.x, j * BLOCK:+BLOCK] = 1.0"), kFree},
      {"a distance in a loop over all numbers",
       scalar("i64", "for j in ph.range(s, s + N):\n    if j - s < 0:\n        out[0] = 1.0"),
       kFree},
      {"the same, with any end",
       {.parameters = std::string(kOne) + ", s: ph.i64, t: ph.i64",
        .body = "b: ph.let = ph.ctx.block.x\nfor j in ph.range(s, t):\n    if j - s < 0:\n        "
                "out[0] = 1.0"},
       kUnproven},
      {"a product of extents",
       {.parameters = "x: ph.tensor[ph.f32][M], out: ph.tensor[ph.f32][N]",
        .body = "if M * N >= 0:\n    pass\nelse:\n    out[0] = x[ph.ctx.block.x]"},
       kUnproven},
  });
}

// The same numbers of i64 on both sides cancel, whatever they are.
TEST(Race, ScalarsOfI64) {
  const auto scalars = [](const std::string& body) {
    return sema::KernelText{
        .parameters = std::string(kOne) + ", s: ph.i64, t: ph.i64, u: ph.u64, n: ph.i32",
        .body = "b: ph.let = ph.ctx.block.x * BLOCK\n" + body};
  };
  const auto rows = [](const std::string& body) {
    return sema::KernelText{.parameters = "out: ph.tensor[ph.f32][M, N], s: ph.i64, t: ph.i64",
                            .body = "r: ph.let = ph.ctx.block.x * 4\n" + body};
  };
  Expect({
      {"an offset", scalars("out[b + s:+BLOCK] = x[b + s:+BLOCK]"), kFree},
      {"an offset of steps", scalars("out[b + s * 8 - t:+BLOCK] += 1.0"), kFree},
      {"an offset first", scalars("p: ph.let = s + ph.ctx.block.x\nout[p * BLOCK:+BLOCK] = 1.0"),
       kFree},
      {"an offset of 2^62 times", scalars("out[(s << 3) + (s * (1 << 60)) * 4 + b] = 1.0"), kFree},
      {"of an unsigned one", scalars("out[b + ph.cast(u, ph.i64):+BLOCK] = 1.0"), kFree},
      {"a product of two", scalars("out[b + s * t:+BLOCK] = 1.0"), kFree},
      {"backwards", scalars("out[s - b:+BLOCK] = 1.0"), kFree},
      {"BLOCK - 1", scalars("out[ph.ctx.block.x * (BLOCK - 1) + s:+BLOCK] = 1.0"), kRace},
      {"two stores", scalars("out[b + s] = 1.0\nout[b + s + BLOCK - 1] = 1.0"), kFree},
      {"two stores that meet", scalars("out[b + s] = 1.0\nout[b + s + BLOCK] = 1.0"), kRace},
      {"two offsets", scalars("out[b + s] = 1.0\nout[b + t] = 1.0"), kUnproven, kMayWrap},
      {"a loop from an offset",
       scalars("for j in ph.range(b + s, b + s + BLOCK):\n    out[j] = 1.0"), kFree},
      {"a loop whose end is named first",
       scalars("e: ph.let = s + BLOCK\nfor j in ph.range(b + s, b + e, 2):\n    out[j] = 1.0"),
       kFree},
      {"one turn too many",
       scalars("for j in ph.range(b + s, b + s + BLOCK + 1):\n    out[j] = 1.0"), kRace},
      {"a loop that is clipped",
       scalars("for j in ph.range(b + s, ph.minimum(b + s + BLOCK, N)):\n    out[j] = 1.0"), kFree},
      {"a loop backwards",
       scalars("for j in ph.range(b + s + BLOCK - 1, b + s - 1, -1):\n    out[j] = 1.0"), kFree},
      {"rows and columns of offsets",
       rows("for i in ph.range(4):\n    out[r + i + s, t:+BLOCK] = 1.0"), kFree},
      {"columns up to an end",
       rows("for i in ph.range(4):\n    for j in ph.range(s, t, BLOCK):\n        out[r + i, "
            "j:+BLOCK] = 1.0"),
       kFree},
      {"a guard over the offset", scalars("if b + s == s:\n    out[0] = 1.0"), kFree},
      {"a guard over the difference", scalars("if (b + s) - s < BLOCK:\n    out[0] = 1.0"), kFree},
      {"an offset with bounds",
       {.parameters = "out: ph.tensor[ph.f32][N], s: ph.i64",
        .body = "ph.assume(s >= 0 and s < 1099511627776)\nb: ph.let = ph.ctx.block.x + s\nif b <= "
                "s:\n    "
                "out[0] = 1.0"},
       kFree},
      {"a loop over all numbers", scalars("for j in ph.range(s, t):\n    out[j] = 1.0"), kUnproven},
  });
}

// The search for a witness is bounded, however often such a loop turns.
TEST(Race, LoopsThatDoNothing) {
  const std::string loop = "for i in ph.range(1 << 40):\n    pass\n";
  Expect({
      {"before a store that all blocks make", One(loop + "out[0] = 1.0"), kUnproven},
      {"before one that is not proven", One(loop + "if x[b] > 0:\n    out[0] = 1.0"), kUnproven},
  });
}

TEST(Race, SaysOfWhichTensorsAllIsProved) {
  ASSERT_OK_AND_ASSIGN(
      const ir::Function function,
      sema::LowerKernel({.parameters = "x: ph.tensor[ph.f32][N], to: ph.tensor[ph.i32][N], "
                                       "out: ph.tensor[ph.f32][N]",
                         .body = "b: ph.let = ph.ctx.block.x * BLOCK\n"
                                 "x[b:+BLOCK] = x[b:+BLOCK] + 1.0\n"
                                 "out[to[b:+BLOCK]] = 1.0"}));
  const Report report = Check(function);
  EXPECT_EQ(report.verdict, Verdict::kUnproven);
  EXPECT_EQ(report.proved_params, (std::set<int32_t>{0}));
}

}  // namespace
}  // namespace phobos::compiler::race
