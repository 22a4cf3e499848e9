// SPDX-License-Identifier: Apache-2.0
//
// A kernel of FILE from C++ on device pointers: tunes `add` at N, looks whether the sum is right,
// and says what the host pays for a launch, beside cuLaunchKernel of the same image:
//
//     launch_on_card FILE N
//
// Lines: "error TEXT"; "winner BLOCK"; "wrong COUNT"; "us NAME MEDIAN ABOVE", microseconds of host
// time a launch, and what of it is above cuLaunchKernel's: the median over the batches, each beside
// the batch of cuLaunchKernel that ran just before.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/kernel.h"
#include "client/cpp/plan/plan.h"
#include "client/cpp/plan_source.h"
#include "client/launch/cuda/card.h"
#include "client/launch/cuda/driver.h"

namespace {

namespace cuda = phobos::launch::cuda;
using Clock = std::chrono::steady_clock;

constexpr int kBatches = 400, kLaunches = 200;  // fewer in a batch than a stream holds

int Complain(const std::string& text) { return std::printf("error %s\n", text.c_str()), 1; }

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Three tensors of n floats on the first card, in its primary context.
class Tensors {
 public:
  Tensors(const cuda::CudaDriver& driver, int64_t n) : driver_(driver), host_(n) {
    for (cuda::DevicePointer& pointer : pointers_) {
      driver_->allocate(&pointer, static_cast<size_t>(n) * sizeof(float));
    }
    for (int64_t i = 0; i < n; ++i) host_[i] = static_cast<float>(i % 1000);
    for (int which : {0, 1}) Copy(pointers_[which], Address());
  }

  float* operator[](int which) const { return reinterpret_cast<float*>(pointers_[which]); }

  int64_t WrongSums() {
    const std::vector<float> x = host_;
    Copy(Address(), pointers_[2]);
    int64_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) wrong += host_[i] != x[i] + x[i];
    host_ = x;
    return wrong;
  }

 private:
  cuda::DevicePointer Address() { return reinterpret_cast<cuda::DevicePointer>(host_.data()); }
  void Copy(cuda::DevicePointer to, cuda::DevicePointer from) {
    driver_->copy(to, from, host_.size() * sizeof(float), nullptr);
    driver_->synchronize_stream(nullptr);
  }

  const cuda::CudaDriver& driver_;
  std::vector<float> host_;
  cuda::DevicePointer pointers_[3] = {};
};

struct Way {
  std::string name;
  std::function<bool()> launch;  // false: it failed
  std::vector<double> us = {};
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Batches of each in turn; the card empties its queue between them.
bool Time(const cuda::CudaDriver& driver, std::vector<Way>& ways) {
  for (int batch = 0; batch < kBatches; ++batch) {
    for (Way& way : ways) {
      const auto start = Clock::now();
      bool ok = true;
      for (int i = 0; i < kLaunches; ++i) ok = way.launch() && ok;
      const std::chrono::duration<double, std::micro> took = Clock::now() - start;
      if (!ok || driver->synchronize_stream(nullptr) != cuda::kSuccess) {
        return Complain(way.name + " failed"), false;
      }
      way.us.push_back(took.count() / kLaunches);
    }
  }
  for (Way& way : ways) {
    std::vector<double> above;
    for (size_t i = 0; i < way.us.size(); ++i) above.push_back(way.us[i] - ways[0].us[i]);
    std::printf("us %s %.4f %.4f\n", way.name.c_str(), Median(way.us), Median(above));
  }
  return true;
}

phobos::Status Sum(phobos::ReferenceArguments& arguments) {
  const auto x = arguments.Tensor<float>("x"), y = arguments.Tensor<float>("y");
  std::vector<float> sum(x.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = x[i] + y[i];
  return arguments.Set<float>("out", sum);
}

phobos::Grid Blocks(const phobos::Meta& meta) {
  return {(meta["N"] + meta["BLOCK"] - 1) / meta["BLOCK"], 1, 1};
}

// The ways to launch the winner, whose plan is given.
bool TimeLaunches(const cuda::CudaDriver& driver, phobos::Kernel& kernel, const phobos::Plan& plan,
                  const std::vector<phobos::Argument>& arguments, int64_t n) {
  const phobos::LaunchPlan& variant = plan.variant();
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  const std::string image = Bytes(variant.artifact_path);
  if (driver->load_module(&module, image.c_str(), 0, nullptr, nullptr) != cuda::kSuccess ||
      driver->module_function(&function, module, variant.artifact.entry.c_str()) !=
          cuda::kSuccess) {
    return Complain("cannot load " + variant.artifact_path), false;
  }
  const int64_t block = std::get<int64_t>(plan.Setting("BLOCK")->value);
  const auto blocks = static_cast<unsigned>((n + block - 1) / block);
  const auto threads = static_cast<unsigned>(variant.threads);
  uint64_t slots[] = {arguments[0].bits, arguments[1].bits, arguments[2].bits,
                      static_cast<uint64_t>(n)};
  void* pointers[] = {&slots[0], &slots[1], &slots[2], &slots[3]};
  const phobos::GridFunction grid = Blocks;
  const phobos::Grid sides = {blocks, 1, 1};
  std::vector<Way> ways = {
      {"cuLaunchKernel",
       [&] {
         return driver->launch(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, pointers,
                               nullptr) == cuda::kSuccess;
       }},
      {"Kernel::Launch", [&] { return kernel.Launch(arguments, grid).ok(); }},
      {"Plan::Launch", [&] { return plan.Launch(slots, sides).ok(); }},
  };
  return Time(driver, ways);
}

int Run(const char* path, int64_t n) {
  const auto driver = cuda::CudaDriver::Load();
  if (!driver.ok()) return Complain(driver.status().message());
  const auto cards = cuda::ListCards(**driver);
  if (!cards.ok()) return Complain(cards.status().message());
  cuda::Context context = nullptr;
  if ((**driver)->retain_context(&context, 0) != cuda::kSuccess ||
      (**driver)->push_context(context) != cuda::kSuccess) {
    return Complain("no context");
  }
  phobos::KernelOptions options;
  options.source = Bytes(path);
  options.file_name = path;
  options.name = "add";
  options.device_uuid = cards->front().uuid;
  options.reference = Sum;
  const auto kernel = phobos::Kernel::Open(phobos::Client::Open(), std::move(options));
  if (!kernel.ok()) return Complain(kernel.status().message());

  Tensors tensors(**driver, n);
  const std::vector<phobos::Argument> arguments = {phobos::Argument::Tensor(tensors[0], {n}),
                                                   phobos::Argument::Tensor(tensors[1], {n}),
                                                   phobos::Argument::Tensor(tensors[2], {n})};
  const phobos::Status launched = (*kernel)->Launch(arguments, Blocks);
  if (!launched.ok()) return Complain(launched.message());
  (**driver)->synchronize_stream(nullptr);
  std::printf("wrong %lld\n", static_cast<long long>(tensors.WrongSums()));
  const auto found = (*kernel)->plans().Find({n});
  if (!found.ok()) return Complain(found.status().message());
  if (*found == nullptr) return Complain("there is no winner");
  const phobos::Plan& plan = **found;
  const phobos::Constant* block = plan.Setting("BLOCK");
  if (block == nullptr) return Complain("a plan without BLOCK");
  std::printf("winner %lld\n", static_cast<long long>(std::get<int64_t>(block->value)));
  return TimeLaunches(**driver, **kernel, plan, arguments, n) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) return std::fprintf(stderr, "launch_on_card FILE N\n"), 2;
  return Run(argv[1], std::atoll(argv[2]));
} catch (const std::exception& error) {
  return Complain(error.what());
}
