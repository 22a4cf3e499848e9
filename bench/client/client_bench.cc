// SPDX-License-Identifier: Apache-2.0
//
// What the thin client costs: a launch after the first on top of the kernel itself, and lookups
// from one client and from eight at once. Writes one JSON object. Run by cpp_client.py, which
// starts the daemon.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/digest.h"
#include "client/cpp/client.h"
#include "client/cpp/kernel.h"
#include "client/cpp/plan/load.h"
#include "client/launch/host.h"
#include "client/stub/daemon.h"

namespace phobos {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kElements = 256;  // one block, so that the kernel itself is next to nothing
constexpr int kLaunches = 200000;
constexpr int kBatch = 1000;
constexpr int kLookups = 5000;
constexpr int kLoads = 200;
constexpr int kClients = 8;

double NsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

// Median over batches of what one call takes.
template <typename Function>
double MedianNs(const Function& function) {
  std::vector<double> batches;
  for (int i = 0; i < kLaunches / kBatch; ++i) {
    const Clock::time_point start = Clock::now();
    for (int k = 0; k < kBatch; ++k) function();
    batches.push_back(NsSince(start) / kBatch);
  }
  return Quantile(batches, 0.5);
}

int Fail(const Status& status) {
  std::fprintf(stderr, "client_bench: %s\n", status.message().c_str());
  return 1;
}

Grid Blocks(const Meta& meta) { return {(meta["N"] + meta["BLOCK"] - 1) / meta["BLOCK"], 1, 1}; }

struct Launches {
  double kernel_ns = 0;        // the compiled function alone
  double plan_ns = 0;          // Plan::Launch: what the C ABI adds its few instructions to
  double kernel_class_ns = 0;  // Kernel::Launch with arguments and grid function
  // Once a plan: the artifact is read and compared with its digest, and loaded; loaded only.
  double load_ns = 0;
  double dlopen_ns = 0;
};

StatusOr<Launches> MeasureLaunches(const KernelOptions& options) {
  StatusOr<std::unique_ptr<Kernel>> kernel = Kernel::Open(Client::Open(), options);
  if (!kernel.ok()) return kernel.status();
  std::vector<float> x(kElements, 1), y(kElements, 2), out(kElements);
  const Argument arguments[] = {Argument::Tensor(x.data(), {kElements}),
                                Argument::Tensor(y.data(), {kElements}),
                                Argument::Tensor(out.data(), {kElements})};
  // Variant 0 has BLOCK 256: one block. A winner might be any.
  StatusOr<std::shared_ptr<const Plan>> plan = (*kernel)->plans().Variant({kElements}, 0);
  if (!plan.ok()) return plan.status();
  const LaunchPlan variant = (*plan)->variant();
  StatusOr<std::unique_ptr<launch::HostKernel>> code =
      launch::HostKernel::Load(variant.artifact_path, variant.artifact.entry,
                               variant.artifact.scratch_bytes, variant.artifact.cpu_features);
  if (!code.ok()) return code.status();
  const uint64_t values[] = {arguments[0].bits, arguments[1].bits, arguments[2].bits};
  const uint64_t slots[] = {values[0], values[1], values[2], kElements};
  const int64_t sides[] = {1, 1, 1};
  Launches measured;
  measured.kernel_ns = MedianNs([&] { (*code)->entry()(slots, sides, 0, 1, nullptr); });
  measured.plan_ns = MedianNs([&] { (void)(*plan)->Launch(values, {1, 1, 1}); });
  if (Status status = (*kernel)->Launch(arguments, Blocks); !status.ok()) return status;
  measured.kernel_class_ns = MedianNs([&] { (void)(*kernel)->Launch(arguments, Blocks); });
  plan->reset();  // an artifact that is loaded already is found at once
  *code = nullptr;
  const std::shared_ptr<Client> other = Client::Open();
  std::vector<double> loads, bare;
  for (int i = 0; i < kLoads; ++i) {
    const Clock::time_point start = Clock::now();
    if (StatusOr<std::shared_ptr<const LoadedVariant>> loaded =
            Load(other->daemon(), variant, nullptr, {});
        !loaded.ok()) {
      return loaded.status();
    }
    loads.push_back(NsSince(start));
    const Clock::time_point again = Clock::now();
    (void)launch::HostKernel::Load(variant.artifact_path, variant.artifact.entry,
                                   variant.artifact.scratch_bytes, variant.artifact.cpu_features);
    bare.push_back(NsSince(again));
  }
  measured.load_ns = Quantile(loads, 0.5);
  measured.dlopen_ns = Quantile(bare, 0.5);
  return measured;
}

struct Lookups {
  double p50_us = 0;
  double p99_us = 0;
  double per_second = 0;  // from kClients at once
};

StatusOr<Lookups> MeasureLookups(const KernelOptions& options) {
  stub::LookupRequest request;
  request.kernel.text_digest = Sha256Hex(options.source);
  request.kernel.kernel = options.name;
  request.device_uuid = "host";
  request.extents = {{"N", kElements}};
  const auto open = [] {
    stub::Daemon::Options daemon;
    daemon.places = stub::Places::FromEnvironment("", "");
    daemon.client_name = "bench";
    daemon.warn = [](const std::string&) {};
    return std::make_unique<stub::Daemon>(std::move(daemon));
  };
  const auto one = open();
  std::vector<double> times;
  for (int i = 0; i < kLookups; ++i) {
    const Clock::time_point start = Clock::now();
    const StatusOr<stub::LookupResponse> response = one->Lookup(request, {});
    if (!response.ok()) return response.status();
    times.push_back(NsSince(start) / 1000);
  }
  std::atomic<int> failures = 0;
  std::vector<std::thread> clients;
  const Clock::time_point start = Clock::now();
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&] {
      const auto daemon = open();
      for (int i = 0; i < kLookups; ++i) {
        if (!daemon->Lookup(request, {}).ok()) ++failures;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  const double seconds = NsSince(start) / 1e9;
  if (failures > 0) return Status(Code::kInternal, "some lookups failed");
  return Lookups{Quantile(times, 0.5), Quantile(times, 0.99), kClients * kLookups / seconds};
}

int Run(const char* path) {
  std::ifstream file(path);
  KernelOptions options;
  options.source = std::string(std::istreambuf_iterator<char>(file), {});
  options.file_name = path;
  options.name = "add";
  options.policy = "off";
  const StatusOr<Launches> launches = MeasureLaunches(options);
  if (!launches.ok()) return Fail(launches.status());
  const StatusOr<Lookups> lookups = MeasureLookups(options);
  if (!lookups.ok()) return Fail(lookups.status());
  std::printf(
      "{\"kernel_ns\": %.1f, \"plan_launch_ns\": %.1f, \"kernel_launch_ns\": %.1f, "
      "\"load_us\": %.1f, \"load_unchecked_us\": %.1f, "
      "\"lookup_p50_us\": %.1f, \"lookup_p99_us\": %.1f, \"lookups_per_second\": %.0f}\n",
      launches->kernel_ns, launches->plan_ns, launches->kernel_class_ns, launches->load_ns / 1000,
      launches->dlopen_ns / 1000, lookups->p50_us, lookups->p99_us, lookups->per_second);
  return 0;
}

}  // namespace
}  // namespace phobos

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: client_bench KERNEL.py\n");
    return 2;
  }
  return phobos::Run(argv[1]);
}
