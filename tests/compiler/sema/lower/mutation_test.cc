// SPDX-License-Identifier: Apache-2.0
//
// Kernels with tokens changed at random: whatever comes out, it is an error for the user or IR that
// verifies, and the race check comes back. The seed is fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/race/race.h"
#include "tests/compiler/sema/lower/lowered.h"
#include "tests/status_matchers.h"

namespace phobos::compiler::sema {
namespace {

const char* const kBodies[] = {
    "b: ph.let = ph.ctx.block.x * BLOCK\nout[b:+BLOCK] = x[b:+BLOCK] * a + f(x[b:+BLOCK], n)",
    "acc: ph.tile[ph.f32][BLOCK] = 0.0\nfor i in ph.range(0, N, BLOCK, unroll=2):\n"
    "    acc += ph.load(x[i:i + BLOCK], fill=-ph.inf, mask=ph.iota(BLOCK) < n)\n"
    "out[0:+BLOCK] = acc",
    "i: ph.var = n\nwhile i > 0 and x[i] < a:\n    i -= 1\n    if i == 3:\n        continue\n"
    "    elif i == 2:\n        break\n    else:\n        out[i] = a if n > 0 else x[i]\nreturn",
    "p: ph.let = ph.ctx.block.x\nq: ph.let = p // ph.cdiv(N, 4)\n"
    "m[q, p % 8] = ph.where(p < 3, ph.exp(a), ph.cast(n, ph.f32)) ** 2",
    "lo, hi = g(x, n)\nph.store(out[n:+4], ph.clip(x[0:+4], lo, hi), mask=x[0:+4] > lo)",
    "t: ph.f16 = 0\nt += m[1, 0] / 3\nu: ph.let = ~(ph.bitcast(a, ph.u32) >> 3) & 255\n"
    "out[BLOCK // 2:BLOCK] = ph.minimum(t, u)",
    "ph.assume(ph.ctx.grid.x * BLOCK >= N)\nph.assert_(BLOCK > 2, \"text\")\nif ph.ctx.block.x == "
    "0:\n"
    "    out[0] = ph.finfo(ph.f32).max + ph.extent(m, 1)",
};

// Tokens that may stand for each other without a syntax error.
const std::vector<std::vector<std::string>> kKinds = {
    {"0",
     "1",
     "3",
     "-1",
     "2.5",
     "1e30",
     "BLOCK",
     "N",
     "n",
     "a",
     "b",
     "i",
     "x",
     "out",
     "m",
     "None",
     "True",
     "18446744073709551615",
     "(2 ** 100)",
     "ph.nan",
     "f(a, n)",
     "x[0:+4]",
     "x[n]",
     "m[0, 1]",
     "ph.iota(4)",
     "ph.ctx.block.x",
     "ph.f16",
     "(n > 0)",
     "ph.zeros(ph.f32, 4)"},
    {"+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "<", ">", "and", "or"},
    {"exp", "sqrt", "minimum", "where", "cast", "bitcast", "iota", "clip", "load", "cdiv", "sum",
     "extent", "abs", "floor", "isnan", "mulhi", "fma", "pow"},
    {"let", "var", "f32", "f16", "i64", "u8", "bool"},
    {":", ":+", ","},
    {"break", "continue", "return", "pass"},
};

// Splits where a token may end; spaces stay with the token before.
std::vector<std::string> Tokens(const std::string& text) {
  std::vector<std::string> tokens;
  for (const char c : text) {
    const bool word = isalnum(static_cast<unsigned char>(c)) || c == '_';
    const bool joins =
        !tokens.empty() && word &&
        (isalnum(static_cast<unsigned char>(tokens.back().back())) || tokens.back().back() == '_');
    const bool space = c == ' ' && !tokens.empty();
    if (joins || space) {
      tokens.back() += c;
    } else {
      tokens.emplace_back(1, c);
    }
  }
  return tokens;
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : state_(seed * 2862933555777941757u + 1) {}

  std::string Body() {
    std::vector<std::string> tokens = Tokens(kBodies[Below(std::size(kBodies))]);
    for (int changes = 1 + Below(3); changes > 0; --changes) {
      const int at = Below(static_cast<int>(tokens.size()));
      if (Below(20) == 0) {
        tokens[at] = tokens[Below(static_cast<int>(tokens.size()))];
      } else {
        Replace(&tokens[at]);
      }
    }
    std::string body;
    for (const std::string& token : tokens) body += token;
    return body;
  }

 private:
  // By another of its kind; the spaces after it stay.
  void Replace(std::string* token) {
    const std::string word = token->substr(0, token->find(' '));
    for (const std::vector<std::string>& kind : kKinds) {
      if (std::find(kind.begin(), kind.end(), word) == kind.end()) continue;
      *token = kind[Below(static_cast<int>(kind.size()))] + token->substr(word.size());
      return;
    }
  }

  int Below(int n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % static_cast<uint64_t>(n));
  }

  uint64_t state_;
};

KernelText Kernel(const std::string& body) {
  return {.parameters =
              "x: ph.tensor[ph.f32][N], m: ph.tensor[ph.f32][M, 8], "
              "out: ph.tensor[ph.f32][N], a: ph.f32, n: ph.i32",
          .body = body,
          .prelude =
              "@ph.fn\ndef f(v, k):\n    w: ph.let = v * k\n    return w + v\n"
              "@ph.fn\ndef g(t, k):\n    return t[k], t[k + 1]"};
}

TEST(Mutation, TheBodiesAreFine) {
  for (const char* body : kBodies) EXPECT_OK(LowerKernel(Kernel(body))) << body;
}

TEST(Mutation, NeverAFaultOfTheCompiler) {
  int fine = 0;
  for (uint64_t seed = 1; seed <= 5000; ++seed) {
    const std::string body = Mutator(seed).Body();
    const absl::StatusOr<ir::Function> function = LowerKernel(Kernel(body));
    const absl::StatusCode code = function.status().code();
    EXPECT_TRUE(code == absl::StatusCode::kOk || code == absl::StatusCode::kInvalidArgument)
        << "seed " << seed << ": " << function.status() << "\n"
        << body;
    if (!function.ok()) continue;
    ++fine;
    race::Check(*function);
  }
  EXPECT_GT(fine, 500);
}

}  // namespace
}  // namespace phobos::compiler::sema
