// SPDX-License-Identifier: Apache-2.0
//
// Vector add from C++. The first run tunes and shows what the tuner found; another launches the
// winner.
//
//   vector_add KERNEL.py [N]        KERNEL.py: the file that has the kernel, such as vector_add.py
//   here
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/kernel.h"

namespace {

// What the kernel should compute; the tuner rejects variants that compute anything else.
phobos::Status Reference(phobos::ReferenceArguments& arguments) {
  const auto x = arguments.Tensor<float>("x"), y = arguments.Tensor<float>("y");
  std::vector<float> sum(x.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = x[i] + y[i];
  return arguments.Set<float>("out", sum);
}

// "8.25 ms", or "3.1 us" where milliseconds would be mostly zeros.
std::string Shown(double ns) {
  char text[32];
  const bool is_short = ns < 1e6;
  std::snprintf(text, sizeof(text), is_short ? "%.1f us" : "%.2f ms", ns / (is_short ? 1e3 : 1e6));
  return text;
}

phobos::Grid Blocks(const phobos::Meta& meta) {
  return {(meta["N"] + meta["BLOCK"] - 1) / meta["BLOCK"], 1, 1};
}

int Fail(const phobos::Status& status) {
  std::fprintf(stderr, "vector_add: %s\n", status.message().c_str());
  return 1;
}

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

int Run(const char* path, int64_t n) {
  phobos::KernelOptions options;
  options.source = ReadFile(path);
  options.file_name = path;
  options.name = "add";
  options.reference = Reference;
  const auto kernel = phobos::Kernel::Open(phobos::Client::Open(), std::move(options));
  if (!kernel.ok()) return Fail(kernel.status());

  std::vector<float> x(static_cast<size_t>(n)), y(x.size()), out(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1000), y[i] = 0.5f;
  const phobos::Argument arguments[] = {phobos::Argument::Tensor(x.data(), {n}),
                                        phobos::Argument::Tensor(y.data(), {n}),
                                        phobos::Argument::Tensor(out.data(), {n})};
  // Tunes where no winner is stored for this N, then launches the winner.
  const phobos::Status status = (*kernel)->Launch(arguments, Blocks);
  if (!status.ok()) return Fail(status);
  for (size_t i = 0; i < x.size(); ++i) {
    if (out[i] != x[i] + y[i]) {
      std::fprintf(stderr, "vector_add: the sum is wrong at %zu\n", i);
      return 1;
    }
  }

  const auto result = (*kernel)->plans().CurrentResult({n});
  if (!result.ok()) return Fail(result.status());
  if (!result->has_value()) {
    std::printf("launched the first choices; set PHOBOS_TUNE=auto to tune\n");
    return 0;
  }
  int64_t block = 0;
  for (const auto& setting : (*result)->winner_settings) {
    const int64_t* value = std::get_if<int64_t>(&setting.value);
    if (setting.name == "BLOCK" && value != nullptr) block = *value;
  }
  std::printf("winner BLOCK=%lld, %s, generation %lld\n", static_cast<long long>(block),
              Shown(static_cast<double>((*result)->best_ns)).c_str(),
              static_cast<long long>((*result)->generation));
  const auto began = std::chrono::steady_clock::now();
  if (const phobos::Status again = (*kernel)->Launch(arguments, Blocks); !again.ok()) {
    return Fail(again);
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
  std::printf("a launch: %s\n", Shown(took.count()).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: vector_add KERNEL.py [N]\n");
    return 2;
  }
  const int64_t n = argc == 3 ? std::atoll(argv[2]) : int64_t{1} << 20;
  if (n < 1) {
    std::fprintf(stderr, "vector_add: N must be at least 1\n");
    return 2;
  }
  return Run(argv[1], n);
}
