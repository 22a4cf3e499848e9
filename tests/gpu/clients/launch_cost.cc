// SPDX-License-Identifier: Apache-2.0
//
// What a launch from C++ costs the host, beside cuLaunchKernel itself, on a real card:
//
//     launch_cost FILE KERNEL N
//
// Tunes KERNEL of FILE (x, y and out of N f32 elements) on the first card and prints JSON, in
// nanoseconds: the least and the middle of many batches, which are short enough for the driver's
// queue to take them without waiting.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/kernel.h"
#include "client/launch/cuda/card.h"
#include "client/launch/cuda/driver.h"
#include "client/launch/cuda/kernel.h"

namespace {

namespace cuda = phobos::launch::cuda;

constexpr int kBatches = 200;
constexpr int kLaunches = 256;

template <typename T>
T Take(phobos::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().message().c_str());
  std::exit(1);
}

struct Card {
  Card() : driver(Take(cuda::CudaDriver::Load())), card(Take(cuda::ListCards(*driver)).front()) {
    cuda::Context context = nullptr;
    (*driver)->retain_context(&context, card.device);
    (*driver)->push_context(context);
    (*driver)->create_stream(&stream, cuda::kStreamNonBlocking);
  }
  uint64_t Put(const std::vector<float>& values) {
    cuda::DevicePointer pointer = 0;
    const size_t bytes = values.size() * sizeof(float);
    (*driver)->allocate(&pointer, bytes);
    (*driver)->copy(pointer, reinterpret_cast<cuda::DevicePointer>(values.data()), bytes, stream);
    (*driver)->synchronize_stream(stream);
    return pointer;
  }
  void Show(const char* name, const std::function<bool()>& launch) {
    std::vector<double> ns;
    for (int batch = 0; batch < kBatches; ++batch) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kLaunches; ++i) {
        if (!launch()) std::exit(1);
      }
      const std::chrono::duration<double, std::nano> took =
          std::chrono::steady_clock::now() - start;
      ns.push_back(took.count() / kLaunches);
      (*driver)->synchronize_stream(stream);
    }
    std::sort(ns.begin(), ns.end());
    std::printf("%s\"%s_ns\": [%.0f, %.0f]", is_first ? "{" : ", ", name, ns.front(),
                ns[kBatches / 2]);
    is_first = false;
  }

  std::shared_ptr<const cuda::CudaDriver> driver;
  cuda::Card card;
  cuda::Stream stream = nullptr;
  bool is_first = true;
};

std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "launch_cost FILE KERNEL N\n"), 2;
  Card card;
  phobos::KernelOptions options;
  options.source = FileBytes(argv[1]);
  options.file_name = argv[1];
  options.name = argv[2];
  options.device_uuid = card.card.uuid;
  options.reference = [](phobos::ReferenceArguments& arguments) {
    const auto x = arguments.Tensor<float>("x"), y = arguments.Tensor<float>("y");
    std::vector<float> sum(x.size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = x[i] + y[i];
    return arguments.Set<float>("out", sum);
  };
  const auto kernel = Take(phobos::Kernel::Open(phobos::Client::Open(), std::move(options)));
  const int64_t n = std::atoll(argv[3]);
  const std::vector<float> values(static_cast<size_t>(n), 1.5f);
  const uint64_t addresses[] = {card.Put(values), card.Put(values), card.Put(values)};
  std::vector<phobos::Argument> arguments;
  for (const uint64_t address : addresses) {
    arguments.push_back(phobos::Argument::Tensor(reinterpret_cast<float*>(address), {n}));
  }
  const phobos::GridFunction grid = [](const phobos::Meta& meta) {
    return phobos::Grid{(meta["N"] + meta["BLOCK"] - 1) / meta["BLOCK"], 1, 1};
  };
  const phobos::Status first = kernel->Launch(arguments, grid, card.stream);
  if (!first.ok()) return std::fprintf(stderr, "%s\n", first.message().c_str()), 1;

  const auto plan = kernel->plans().Present({n});
  const phobos::LaunchPlan& variant = plan->variant();
  const phobos::Grid blocks = {(n + 1023) / 1024, 1, 1};
  const auto bare = Take(cuda::CudaKernel::Load(card.driver, FileBytes(variant.artifact_path),
                                                {variant.artifact.entry, variant.artifact.threads,
                                                 variant.artifact.dynamic_shared_memory_bytes}));
  const uint64_t slots[] = {addresses[0], addresses[1], addresses[2], static_cast<uint64_t>(n)};
  card.Show("cuLaunchKernel",
            [&] { return bare->Launch(slots, 4, blocks, card.stream) == cuda::kSuccess; });
  card.Show("plan", [&] { return plan->Launch(addresses, blocks, card.stream).ok(); });
  card.Show("kernel", [&] { return kernel->Launch(arguments, grid, card.stream).ok(); });
  card.Show("cuLaunchKernel_again",
            [&] { return bare->Launch(slots, 4, blocks, card.stream) == cuda::kSuccess; });
  std::printf("}\n");
}
