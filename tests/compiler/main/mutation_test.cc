// SPDX-License-Identifier: Apache-2.0
//
// Kernels that are right, damaged in many ways: the front end must neither crash nor give an error
// without a place.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/syntax/lexer/lexer.h"
#include "compiler/syntax/source.h"
#include "tests/compiler/main/front_end.h"
#include "tests/compiler/main/malformed_cases.h"

namespace phobos::compiler {
namespace {

constexpr char kSoftmax[] = R"py("""Rows."""
from __future__ import annotations
import phobos.lang as ph

CHUNK = 4; SCALE = 0.5 * CHUNK

@ph.fn
def shifted(v, low):
    """v without its smallest value."""
    return ph.exp(v - low) if CHUNK > 2 else v

def reference(x, out):
    return {"out": f"{x!r:>{10}}"}

@ph.kernel(key=("N", 'M'), reference=lambda x, out: {"out": x}, rtol=1e-3)
@ph.autotune(BLOCK=[32, 256], UNROLL=(1, 2, 4), P=["f16", 'tf32'], limit=100)
@ph.launch("BLOCK", min_blocks=2)
@ph.index_bits(64)
@ph.aligned(x=16, N=CHUNK)
@ph.constraint("BLOCK % UNROLL == 0", "N <= 4096 and M > 0 or not BLOCK ** 2 > 2 * N", "P == 'f16'")
def softmax(x: ph.tensor[ph.f32][M, N], out: "ph.tensor[ph.bf16][M, N]",
            alpha: ph.f32,  # a scalar
            steps: ph.i64) -> None:
    ph.assume(ph.ctx.grid.x >= ph.cdiv(M, 4)); ph.assume(steps > 0)
    row: ph.let = ph.ctx.block.x
    total: ph.tile[ph.f32][BLOCK] = 0.0
    for i in ph.range(0, N, BLOCK, unroll=UNROLL, stages=2):
        if i + BLOCK <= N and not (row == 0x1F):
            total += ph.load(x[row, i:+BLOCK], fill=-ph.inf, mask=ph.iota(BLOCK) < 1_0)
        elif steps == 3: continue
        else:
            while steps < 4: break
    high: ph.let = ph.finfo(ph.f32).max; left: ph.let = ~steps << 2
    out[row, 0:+BLOCK] = shifted(total * alpha ** 2, 0.5) \
        + (-alpha if high > 1e-3 else alpha * left)
    out[row, 0] *= 2; return

softmax[(1,)](1, 2)
)py";

// The text in pieces: tokens and what stands between them.
std::vector<std::string> Pieces(const std::string& text) {
  const Source source("k.py", text);
  const absl::StatusOr<std::vector<Token>> tokens = Lex(source);
  std::vector<std::string> pieces;
  if (!tokens.ok()) return pieces;
  int32_t end = 0;
  for (const Token& token : *tokens) {
    if (token.span.begin < end) continue;
    pieces.emplace_back(source.text({end, token.span.begin}));
    pieces.emplace_back(source.text(token.span));
    end = token.span.end;
  }
  return pieces;
}

std::string Join(const std::vector<std::string>& pieces) {
  std::string out;
  for (const std::string& piece : pieces) out += piece;
  return out;
}

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> words) : words_(std::move(words)) {}

  size_t Below(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random_);
  }

  // Removes, repeats, swaps or replaces a few pieces.
  std::string Tokens(std::vector<std::string> pieces) {
    for (size_t i = 0, count = 1 + Below(3); i < count && pieces.size() > 2; ++i) {
      const size_t at = Below(pieces.size());
      switch (Below(4)) {
        case 0:
          pieces.erase(pieces.begin() + at);
          break;
        case 1:
          pieces.insert(pieces.begin() + at, pieces[at]);
          break;
        case 2:
          std::swap(pieces[at], pieces[Below(pieces.size())]);
          break;
        default:
          pieces[at] = words_[Below(words_.size())];
      }
    }
    return Join(pieces);
  }

  // The same with bytes.
  std::string Bytes(std::string text) {
    for (size_t i = 0, count = 1 + Below(3); i < count && !text.empty(); ++i) {
      const size_t at = Below(text.size());
      switch (Below(4)) {
        case 0:
          text.erase(at, 1 + Below(8));
          break;
        case 1:
          text.insert(at, text.substr(Below(text.size()), 1 + Below(20)));
          break;
        case 2:
          text[at] = static_cast<char>(Below(256));
          break;
        default:
          text.resize(at);
      }
    }
    return text;
  }

 private:
  std::mt19937 random_{20240607};  // fixed: every run is the same run
  std::vector<std::string> words_;
};

TEST(Mutation, TheKernelItselfIsRight) { EXPECT_EQ(RunFrontEnd(kSoftmax), absl::OkStatus()); }

TEST(Mutation, DamagedKernelsGiveErrorsWithAPlace) {
  const std::vector<std::string> pieces = Pieces(kSoftmax);
  ASSERT_GT(pieces.size(), 500);
  Mutator mutator({"(",   ")", "[",      "]",    "{",      ":",   ",",    "=",
                   ".",   "'", "\"\"\"", "\n",   "\t",     "if",  "else", "for",
                   "def", "@", "ph",     "None", "lambda", "0",   "1e9",  "99999999999999999999",
                   "\\",  "#", "*",      "-",    "f'{",    "\xff"});
  int accepted = 0;
  constexpr int kRounds = 6000;
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = i % 2 == 0 ? mutator.Tokens(pieces) : mutator.Bytes(kSoftmax);
    const absl::Status status = RunFrontEnd(text);
    if (status.ok()) {
      ++accepted;
      continue;
    }
    ASSERT_EQ(FlawOf(status, text), "") << status << "\nof the source:\n" << text;
  }
  EXPECT_GT(accepted, kRounds / 50);  // damage to the host program's part, to comments, to blanks
  EXPECT_LT(accepted, kRounds / 2);
}

TEST(Mutation, LongAndDeepInputsEndSoon) {
  const std::string head =
      "import phobos.lang as ph\n@ph.kernel\ndef k(x: ph.f32):\n  y: ph.let = ";
  const auto many = [](const std::string& piece, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += piece;
    return out;
  };
  for (const std::string& text : {
           head + many("(", 100000),
           head + many("-", 1000000),
           head + many("not ", 200000),
           head + many("[", 199),
           head + many("x if x else ", 100000),
           head + many("x**", 100000),
           head + many("x+", 300000),
           head + many("x.y", 300000),
           head + many("x(", 190),
           head + many("x[x,", 100),
           many("A = (1,\n", 150),
           many("if x:\n", 100000),
           many("@ph.kernel\n", 100000),
           many("x = 'a' 'b'\n", 100000),
           many("A0 = A1\n", 100000),
           many("A = A + 1\n", 100000),
           many("f'{", 100000),
           many("f\"{x:", 100000),
           many("#\n", 1000000),
           many("\\\n", 1000000),
           many(";", 1000000),
           many("from phobos import ", 50000),
           many("import phobos.lang as a,", 2000),
           many("\t", 1000000),
           many(" \n", 1000000),
           many("\"\"\"", 300001),
           head + "'" + many("\\x41", 200000) + "'",
           head + many("9", 1000000),
           head + many("0_0", 300000),
           head + many("\xC3\xA9", 500000),
           head + many("x,", 300000),
           head + many("\"a\"", 300000),
           "import phobos.lang as ph\n@ph.kernel\n@ph.autotune(A=[" + many("1,", 200000) +
               "])\ndef k(): pass",
           "import phobos.lang as ph\n@ph.kernel\n@ph.autotune(" + many("A=[1],", 200000) +
               ")\ndef k(): pass",
           "import phobos.lang as ph\n@ph.kernel\ndef k(" + many("x: ph.f32,", 50000) + "): pass",
           "import phobos.lang as ph\n@ph.kernel(key=" + many("('N',", 150) + ")\ndef k(): pass",
       }) {
    const absl::Status status = RunFrontEnd(text);
    if (!status.ok()) {
      EXPECT_EQ(FlawOf(status, text), "") << text.substr(0, 100) << "\n" << status;
    }
  }
}

TEST(Mutation, TheMalformedCorpusDamagedOnceMore) {
  Mutator mutator({});
  for (const MalformedCase& one : ReadMalformedCases("tests/golden/malformed")) {
    for (int i = 0; i < 8; ++i) {
      const std::string text = mutator.Bytes(one.source);
      const absl::Status status = RunFrontEnd(text);
      if (!status.ok())
        ASSERT_EQ(FlawOf(status, text), "") << status << "\nof the source:\n" << text;
    }
  }
}

}  // namespace
}  // namespace phobos::compiler
