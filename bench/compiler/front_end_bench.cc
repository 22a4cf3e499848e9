// SPDX-License-Identifier: Apache-2.0
//
// How long the front end takes over the vector add: text to tree, tree to declaration, declaration
// to tile IR of variant 0.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/verifier.h"
#include "compiler/race/race.h"
#include "compiler/sema/kernel.h"
#include "compiler/sema/lower.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler {
namespace {

constexpr char kAdd[] = R"py(from __future__ import annotations

import phobos.lang as ph


def reference(x, y, out):
    return {"out": x + y}


@ph.kernel(key=("N",), reference=reference)
@ph.autotune(BLOCK=[256, 4096])
def add(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]
)py";

void ParseAdd(benchmark::State& state) {
  for (auto _ : state) {
    const Source source("add.py", kAdd);
    benchmark::DoNotOptimize(Parse(source));
  }
}
BENCHMARK(ParseAdd);

void AnalyzeAdd(benchmark::State& state) {
  const Source source("add.py", kAdd);
  const absl::StatusOr<ast::Module> module = Parse(source);
  for (auto _ : state) benchmark::DoNotOptimize(sema::AnalyzeModule(source, *module));
}
BENCHMARK(AnalyzeAdd);

void LowerAdd(benchmark::State& state) {
  const Source source("add.py", kAdd);
  const absl::StatusOr<ast::Module> module = Parse(source);
  const absl::StatusOr<sema::Analysis> analysis = sema::AnalyzeModule(source, *module);
  const sema::Settings settings = analysis->kernels[0].VariantSettings(0);
  for (auto _ : state) {
    benchmark::DoNotOptimize(sema::Lower(source, *module, analysis->kernels[0], settings));
  }
}
BENCHMARK(LowerAdd);

// What stands between a variant's settings and code generation.
void LowerVerifyCheckAdd(benchmark::State& state) {
  const Source source("add.py", kAdd);
  const absl::StatusOr<ast::Module> module = Parse(source);
  const absl::StatusOr<sema::Analysis> analysis = sema::AnalyzeModule(source, *module);
  const sema::Settings settings = analysis->kernels[0].VariantSettings(0);
  for (auto _ : state) {
    const absl::StatusOr<ir::Function> function =
        sema::Lower(source, *module, analysis->kernels[0], settings);
    benchmark::DoNotOptimize(ir::Verify(*function));
    benchmark::DoNotOptimize(race::Check(*function));
  }
}
BENCHMARK(LowerVerifyCheckAdd);

void CheckAdd(benchmark::State& state) {
  const Source source("add.py", kAdd);
  const absl::StatusOr<ast::Module> module = Parse(source);
  const absl::StatusOr<sema::Analysis> analysis = sema::AnalyzeModule(source, *module);
  const absl::StatusOr<ir::Function> function =
      sema::Lower(source, *module, analysis->kernels[0], analysis->kernels[0].VariantSettings(0));
  for (auto _ : state) benchmark::DoNotOptimize(race::Check(*function));
}
BENCHMARK(CheckAdd);

// A host program of a megabyte around the kernel.
void ParseALongFile(benchmark::State& state) {
  std::string text;
  while (text.size() < (1 << 20)) {
    text +=
        "def f(a, b=1):\n    return {'x': [a * b for _ in range(3)], 'y': f\"{a!r:>{b}}\"}\n\nX = "
        "f(1)\n";
  }
  text += kAdd;
  for (auto _ : state) {
    const Source source("add.py", text);
    benchmark::DoNotOptimize(Parse(source));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}
BENCHMARK(ParseALongFile);

}  // namespace
}  // namespace phobos::compiler

BENCHMARK_MAIN();
