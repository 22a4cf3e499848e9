// SPDX-License-Identifier: Apache-2.0
//
// What the compiler is worth on the vector add: its compile time a variant, and the speed of what
// it makes beside two loops written by hand (hand_add.c, by g++ -O3 -march=native).
//
//     bazel run -c opt //bench/compiler:vector_add -- [--json FILE] [--rounds N]
//
// Speeds are of the fastest and the median of N rounds in which all take turns; GB/s counts 12
// bytes an element. NumPy's add runs after them, on its one thread.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/launch/host.h"
#include "compiler/codegen/host/host.h"
#include "compiler/ir/builder.h"

namespace phobos::bench {
namespace {

namespace ir = compiler::ir;
namespace host = compiler::host;

struct Options {
  std::string json;
  int rounds = 40;
};

[[noreturn]] void Fail(const std::string& what) {
  fprintf(stderr, "vector_add: %s\n", what.c_str());
  exit(1);
}

ir::Function VectorAdd(int64_t block) {
  ir::Builder b(ir::Function{.name = "add"});
  const ir::Dim n{.extent = b.AddExtent("N")};
  const int32_t x = b.AddTensor("x", ir::DType::kF32, {n});
  const int32_t y = b.AddTensor("y", ir::DType::kF32, {n});
  const int32_t out = b.AddTensor("out", ir::DType::kF32, {n});
  const ir::ValueId base = b.Elementwise(ir::Opcode::kMul, {b.BlockId(0), b.Int(block)});
  const ir::Subscript place = ir::SliceAt(base, block);
  b.Store(out, {place}, b.Elementwise(ir::Opcode::kAdd, {b.Load(x, {place}), b.Load(y, {place})}));
  return b.Finish();
}

host::Artifact CompileOrFail(int64_t block, const host::Chip& chip) {
  absl::StatusOr<host::Artifact> artifact = host::Compile(VectorAdd(block), chip);
  if (!artifact.ok()) Fail(artifact.status().ToString());
  return *std::move(artifact);
}

double ThreadCpuMs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double WallMs() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct CompileFigures {
  double cpu_ms = 0;       // a variant, median, one after the other
  double first_ms = 0;     // the process's first one
  double wall_256_ms = 0;  // 256 variants, two at a time
};

CompileFigures MeasureCompile(const host::Chip& chip) {
  CompileFigures figures;
  std::vector<double> each;
  for (int i = 0; i <= 64; ++i) {
    const double start = ThreadCpuMs();
    CompileOrFail(256 + 16 * i, chip);
    each.push_back(ThreadCpuMs() - start);
  }
  figures.first_ms = each[0];
  std::sort(each.begin() + 1, each.end());
  figures.cpu_ms = each[each.size() / 2];
  const double start = WallMs();
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([t, &chip] {
      for (int i = t; i < 256; i += 2) CompileOrFail(16 * (i + 1), chip);
    });
  }
  for (std::thread& thread : threads) thread.join();
  figures.wall_256_ms = WallMs() - start;
  return figures;
}

struct Contender {
  std::string name;
  std::unique_ptr<launch::HostKernel> kernel;
  launch::Grid grid;
  std::vector<double> times_ms;

  double best_ms() const { return *std::min_element(times_ms.begin(), times_ms.end()); }
  double median_ms() const {
    std::vector<double> sorted = times_ms;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

std::unique_ptr<launch::HostKernel> LoadOrFail(const std::string& path, const std::string& entry) {
  auto kernel = launch::HostKernel::Load(path, entry, 0, {});
  if (!kernel.ok()) Fail(std::string(kernel.status().message()));
  return *std::move(kernel);
}

std::string BuildHandLoops(const std::string& folder) {
  const std::string path = folder + "/hand_add.so";
  const std::string command = absl::StrCat("g++ -O3 -march=native -shared -fPIC -x c++ -o ", path,
                                           " bench/compiler/hand_add.c");
  if (system(command.c_str()) != 0) Fail("this failed: " + command);
  return path;
}

std::vector<Contender> Contenders(const std::string& folder, int64_t size, int threads) {
  std::vector<Contender> contenders;
  const std::string hand = BuildHandLoops(folder);
  for (const char* entry : {"hand_add", "hand_add_streamed"}) {
    contenders.push_back({entry, LoadOrFail(hand, entry), {threads, 1, 1}});
  }
  const absl::StatusOr<host::Chip> chip = host::ResolveChip("native");
  if (!chip.ok()) Fail(chip.status().ToString());
  for (int64_t block : {256, 1024, 4096, 16384}) {
    const host::Artifact artifact = CompileOrFail(block, *chip);
    const std::string path = absl::StrCat(folder, "/add_", block, ".so");
    std::ofstream(path, std::ios::binary) << artifact.shared_object;
    contenders.push_back({absl::StrCat("phobos BLOCK=", block),
                          LoadOrFail(path, artifact.entry),
                          {(size + block - 1) / block, 1, 1}});
  }
  return contenders;
}

struct FreeDeleter {
  void operator()(float* p) const { free(p); }
};
using Array = std::unique_ptr<float, FreeDeleter>;

Array MakeArray(int64_t size) {
  Array array(static_cast<float*>(aligned_alloc(4096, static_cast<size_t>(size) * sizeof(float))));
  for (int64_t i = 0; i < size; ++i) array.get()[i] = static_cast<float>(i % 1000);
  return array;
}

void MeasureSpeed(std::vector<Contender>* contenders, int64_t size, int threads, int rounds) {
  launch::HostPool pool(threads);
  const Array x = MakeArray(size), y = MakeArray(size), out = MakeArray(size);
  const uint64_t slots[] = {reinterpret_cast<uint64_t>(x.get()),
                            reinterpret_cast<uint64_t>(y.get()),
                            reinterpret_cast<uint64_t>(out.get()), static_cast<uint64_t>(size)};
  for (int round = -3; round < rounds; ++round) {
    for (Contender& contender : *contenders) {
      // Once untimed: what the one before left in the caches (nothing, after streaming stores) is
      // not this one's doing.
      pool.Run(*contender.kernel, slots, contender.grid);
      const double start = WallMs();
      pool.Run(*contender.kernel, slots, contender.grid);
      const double took = WallMs() - start;
      if (round >= 0) contender.times_ms.push_back(took);
    }
  }
}

// Best and median milliseconds of np.add on as many elements, on its one thread.
std::pair<double, double> MeasureNumpy(int64_t size, int rounds) {
  const std::string command = absl::StrFormat(
      "/usr/bin/python3 -c 'import numpy as np, time\n"
      "x, y, out = (np.ones(%d, np.float32) for _ in range(3))\n"
      "t = []\n"
      "for _ in range(%d):\n"
      "  s = time.perf_counter(); np.add(x, y, out); t.append(time.perf_counter() - s)\n"
      "t.sort(); print(t[0] * 1e3, t[len(t) // 2] * 1e3)'",
      size, rounds);
  FILE* pipe = popen(command.c_str(), "r");
  double best = 0, median = 0;
  if (pipe == nullptr || fscanf(pipe, "%lf %lf", &best, &median) != 2) Fail("python3 with numpy");
  pclose(pipe);
  return {best, median};
}

// Prints the rows of one size and gives them as JSON objects.
std::string Report(const std::vector<Contender>& contenders, int64_t size, int threads,
                   std::pair<double, double> numpy) {
  std::string json;
  const double hand_best = std::min(contenders[0].best_ms(), contenders[1].best_ms());
  const double hand_median = std::min(contenders[0].median_ms(), contenders[1].median_ms());
  printf("n = %d, %d thread%s   GB/s (of the best hand loop), fastest and median round\n",
         static_cast<int>(size), threads, threads > 1 ? "s" : "");
  auto row = [&](const std::string& name, double best_ms, double median_ms) {
    const double bytes = 12e-6 * static_cast<double>(size);
    printf("  %-20s %7.1f (%4.2f) %9.1f (%4.2f)\n", name.c_str(), bytes / best_ms,
           hand_best / best_ms, bytes / median_ms, hand_median / median_ms);
    absl::StrAppendFormat(&json,
                          "%s{\"n\": %d, \"threads\": %d, \"what\": \"%s\", \"gb_s\": %.2f, "
                          "\"median_gb_s\": %.2f, \"of_best_hand\": %.3f}",
                          json.empty() ? "" : ", ", size, threads, name, bytes / best_ms,
                          bytes / median_ms, hand_best / best_ms);
  };
  for (const Contender& contender : contenders) {
    row(contender.name, contender.best_ms(), contender.median_ms());
  }
  row("numpy, 1 thread", numpy.first, numpy.second);
  return json;
}

int Main(const Options& options) {
  const absl::StatusOr<host::Chip> chip = host::ResolveChip("native");
  if (!chip.ok()) Fail(chip.status().ToString());
  const CompileFigures compile = MeasureCompile(*chip);
  printf("%s\ncompile, CPU ms a variant   %8.2f   (limit 7)\nfirst one of a process      %8.2f\n",
         chip->name.c_str(), compile.cpu_ms, compile.first_ms);
  printf("256 variants, 2 jobs, wall  %8.0f   (limit 1200)\n\n", compile.wall_256_ms);
  std::string json = absl::StrFormat(
      "{\"chip\": \"%s\", \"compile_cpu_ms\": %.2f, \"first_compile_cpu_ms\": %.2f, "
      "\"compile_256_wall_ms\": %.0f, \"speed\": [",
      chip->name, compile.cpu_ms, compile.first_ms, compile.wall_256_ms);

  std::string folder = absl::StrCat(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", "/bench-XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) Fail("mkdtemp: " + std::string(strerror(errno)));
  const char* separator = "";
  for (const auto& [size, threads] :
       {std::pair<int64_t, int>{1 << 16, 1}, {1 << 24, 1}, {1 << 24, 2}}) {
    const int rounds = size > (1 << 20) ? options.rounds : 2000;
    std::vector<Contender> contenders = Contenders(folder, size, threads);
    MeasureSpeed(&contenders, size, threads, rounds);
    absl::StrAppend(&json, separator,
                    Report(contenders, size, threads, MeasureNumpy(size, rounds)));
    separator = ", ";
  }
  std::filesystem::remove_all(folder);
  if (!options.json.empty()) std::ofstream(options.json) << json << "]}\n";
  return 0;
}

}  // namespace
}  // namespace phobos::bench

int main(int argc, char** argv) {
  phobos::bench::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--json") == 0) options.json = argv[i + 1];
    if (strcmp(argv[i], "--rounds") == 0) options.rounds = atoi(argv[i + 1]);
  }
  return phobos::bench::Main(options);
}
