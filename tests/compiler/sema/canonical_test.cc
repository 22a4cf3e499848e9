// SPDX-License-Identifier: Apache-2.0
//
// The canonical source is a key: what does not matter must not change it, and everything that
// matters must.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "tests/compiler/sema/analyze.h"
#include "tests/status_matchers.h"

namespace phobos::compiler::sema {
namespace {

constexpr char kFile[] = R"py(import phobos.lang as ph

SCALE = 2
OTHER = SCALE + 1

@ph.fn
def inner(v):
    return v * SCALE

@ph.fn
def outer(v, w):
    return inner(v) + w

@ph.kernel(key=("N", "M"))
@ph.autotune(A=[1, 4], B=[8, 16, 32], P=["x", "y"])
@ph.launch("B", min_blocks=2)
@ph.index_bits(64)
@ph.aligned(x=16, N=4)
@ph.constraint("A < B", "A <= N")
def kernel(x: ph.tensor[ph.f32][N, M], out: ph.tensor[ph.f32][N, 8], s: ph.i32):
    ph.assume(N % 4 == 0)
    base: ph.let = ph.ctx.block.x * A
    for i in ph.range(0, M, 2, unroll=2):
        if i < s and not s == 3:
            out[base:+A, 0] = outer(x[base:+A, i], 1.5)
        else:
            out[base, 1:3] += 0.5
)py";

// The canonical source of the only kernel.
std::string Canonical(const std::string& text) {
  const absl::StatusOr<Analyzed> analyzed = Analyze(text);
  EXPECT_OK(analyzed.status()) << text;
  return analyzed.ok() ? analyzed->kernels[0].canonical_source : "";
}

// kFile with pieces replaced; each must be there.
std::string With(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::string text = kFile;
  for (const auto& [from, to] : changes) {
    EXPECT_NE(text.find(from), std::string::npos) << from;
    text = absl::StrReplaceAll(text, {{from, to}});
  }
  return text;
}

TEST(Canonical, IsTheSameForAnotherSpelling) {
  const std::string canonical = Canonical(kFile);
  for (const auto& changes : std::vector<std::vector<std::pair<std::string, std::string>>>{
           {{"ph.", "lang."}, {"import phobos.lang as ph", "from phobos import lang"}},
           {{"    ", "\t"}},
           {{"\n", "\r\n"}},
           {{"\n", " # note\n"}},
           {{"N % 4 == 0", "(N % 4) == 0x4 - 0b100"}, {"0x4 - 0b100", "0"}},
           {{"1.5", "15e-1"}},
           {{"outer(x[base:+A, i], 1.5)", "outer(\n  x[base : + A, (i)],\n  1.5,\n)"}},
           {{"(key=(\"N\", \"M\"))",
             "(key=['N', 'M',], reference=lambda x: {}, rtol=1e-3, atol=f(), flush_l2=False)"}},
           {{"A=[1, 4]", "A=[1, 2, 4]"}},
           {{"A=[1, 4]", "A=(OTHER - SCALE, SCALE * 2)"}},
           {{"B=[8, 16, 32]", "B=[8, 32]"}},
           {{"@ph.index_bits(64)\n", ""}, {"@ph.launch", "@ph.index_bits(32 * SCALE)\n@ph.launch"}},
           {{"x=16, N=4", "N=4, x=16"}},
           {{"(x=16, N=4)", "(x=16)\n@ph.aligned(N=4)"}},
           {{"\"A < B\", \"A <= N\"", "'A  <  B', '''(A <= N)'''"}},
           {{"x: ph.tensor[ph.f32][N, M]", "x: \"ph.tensor[ph.f32][N, M]\""}},
           {{"s: ph.i32):", "s: ph.i32) -> None:\n    '''Does\n    it.'''"}},
           {{"return v * SCALE", "\"Doubles.\"\n    return (v * SCALE)"}},
           {{"SCALE = 2", "SCALE: int = 3 - 1"}},
           {{"OTHER = SCALE + 1",
             "OTHER = 3; UNUSED = 4\ndef host(): return UNUSED\nclass A: pass"}},
           {{"@ph.fn\ndef inner(v):\n    return v * SCALE\n", ""},
            {"@ph.kernel",
             "@ph.fn\ndef inner(v):\n    return v * SCALE\n\n@ph.fn\ndef unused(v): return "
             "v\n\n@ph.kernel"}},
           {{"[N, 8]", "[N, SCALE * 4]"}},
           {{"P=[\"x\", \"y\"]", "P=['x', \"y\"], limit=5000"}},
           {{"        if i < s and not s == 3:", "        if ((i < s) and (not (s == 3))):"}},
           {{"        else:\n            out[base, 1:3] += 0.5",
             "        else: out[base, 1:3] += .50"}},
       }) {
    EXPECT_EQ(Canonical(With(changes)), canonical);
  }
}

TEST(Canonical, DiffersWithEverythingThatMatters) {
  std::map<std::string, std::string> seen = {{Canonical(kFile), "the file itself"}};
  for (const auto& changes : std::vector<std::vector<std::pair<std::string, std::string>>>{
           {{"def kernel", "def other"}},
           {{"(\"N\", \"M\")", "(\"N\",)"}},
           {{"(\"N\", \"M\")", "(\"M\", \"N\")"}},
           {{"(key=(\"N\", \"M\"))", ""}},
           {{"A=[1, 4]", "A=[1, 8]"}},
           {{"A=[1, 4]", "A=[4, 1]"}},
           {{"A=[1, 4], B=[8, 16, 32]", "B=[8, 16, 32], A=[1, 4]"}},
           {{"P=[\"x\", \"y\"]", "P=[\"x\", \"z\"]"}},
           {{"P=[\"x\", \"y\"]", "Q=[\"x\", \"y\"]"}},
           {{", P=[\"x\", \"y\"]", ""}},
           {{"launch(\"B\", min_blocks=2)", "launch(256, min_blocks=2)"}},
           {{"launch(\"B\", min_blocks=2)", "launch(\"A\", min_blocks=2)"}},
           {{"min_blocks=2", "min_blocks=3"}},
           {{"index_bits(64)", "index_bits(32)"}},
           {{"x=16", "x=32"}},
           {{"x=16", "out=16"}},
           {{"N=4", "N=8"}},
           {{"N=4", "M=4"}},
           {{"\"A < B\"", "\"A <= B\""}},
           {{"\"A < B\", \"A <= N\"", "\"A < B\""}},
           {{"N % 4 == 0", "N % 2 == 0"}},
           {{"    ph.assume(N % 4 == 0)\n", ""}},
           {{"@ph.index_bits", "@ph.fast_math\n@ph.index_bits"}},
           {{"x: ph.tensor[ph.f32][N, M]", "x: ph.tensor[ph.f16][N, M]"}},
           {{"[N, 8]", "[N, 4]"}},
           {{"[N, 8]", "[M, 8]"}},
           {{"s: ph.i32", "s: ph.i64"}},
           {{"s: ph.i32", "s: ph.i32, t: ph.i32"}},
           {{"ph.ctx.block.x", "ph.ctx.block.y"}},
           {{"unroll=2", "unroll=4"}},
           {{"i < s and", "i < s or"}},
           {{"not s == 3", "s == 3"}},
           {{"not s == 3", "not s == 4"}},
           {{"1.5)", "1.5 + 0)"}},
           {{"+= 0.5", "= 0.5"}},
           {{"+= 0.5", "-= 0.5"}},
           {{"1:3]", "1:+3]"}},
           {{"1:3]", "1:(+3)]"}},
           {{"base: ph.let", "base: ph.var"}},
           {{"i], 1.5", "i], s"}},
           {{"SCALE = 2", "SCALE = 2.0"}, {"A=[1, 4]", "A=[1, 4]"}},
           {{"SCALE = 2", "SCALE = 4"}},
           {{"return v * SCALE", "return SCALE * v"}},
           {{"return inner(v) + w", "return inner(w) + v"}},
           {{"def inner(v):\n    return v *", "def inner(v: ph.f32):\n    return v *"}},
           {{"inner", "other"}},
           {{"x[base:+A, i]", "x[i, base:+A]"}},
       }) {
    const std::string canonical = Canonical(With(changes));
    const auto [other, is_new] = seen.emplace(canonical, changes[0].second);
    EXPECT_TRUE(is_new) << changes[0].second << " is the same as " << other->second << "\n"
                        << canonical;
  }
}

TEST(Canonical, OneKernelDoesNotDependOnAnother) {
  const std::string with_other =
      std::string(kFile) + "\n@ph.kernel\ndef second(y: ph.f32):\n  z: ph.let = outer(y, OTHER)\n";
  EXPECT_EQ(Canonical(with_other), Canonical(kFile));
}

}  // namespace
}  // namespace phobos::compiler::sema
