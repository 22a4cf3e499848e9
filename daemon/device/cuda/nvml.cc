// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cuda/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace phobos::device {
namespace {

constexpr char kLibrary[] = "libnvidia-ml.so.1";
constexpr char kLibraryVariable[] = "PHOBOS_NVML_LIBRARY";

// Own declarations of the library's ABI, of the versions that every driver for CUDA 12 has.
using Return = int;
constexpr Return kOk = 0;
constexpr Return kNotFound = 6;  // of uses: no period has ended in which there were any
constexpr Return kNoSpace = 7;   // the array is too small; the count says how many there are
using Card = struct NvmlDeviceRecord*;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kSensorGpu = 0;

struct Process {
  unsigned pid;
  unsigned long long memory_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct Utilization {
  unsigned pid;
  unsigned long long timestamp_us;
  unsigned sm_percent;
  unsigned memory_percent;
  unsigned encoder_percent;
  unsigned decoder_percent;
};

#define PHOBOS_NVML_FUNCTIONS(X)                                                               \
  X(init, nvmlInit_v2, ())                                                                     \
  X(shutdown, nvmlShutdown, ())                                                                \
  X(driver, nvmlSystemGetDriverVersion, (char* text, unsigned size))                           \
  X(find, nvmlDeviceGetHandleByUUID, (const char* uuid, Card* card))                           \
  X(clock, nvmlDeviceGetClockInfo, (Card card, int which, unsigned* mhz))                      \
  X(temperature, nvmlDeviceGetTemperature, (Card card, int sensor, unsigned* celsius))         \
  X(power, nvmlDeviceGetPowerUsage, (Card card, unsigned* milliwatts))                         \
  X(reasons, nvmlDeviceGetCurrentClocksThrottleReasons, (Card card, unsigned long long* bits)) \
  X(processes, nvmlDeviceGetComputeRunningProcesses_v3,                                        \
    (Card card, unsigned* count, Process* processes))                                          \
  X(utilization, nvmlDeviceGetProcessUtilization,                                              \
    (Card card, Utilization * samples, unsigned* count, unsigned long long last_timestamp_us))

struct Functions {
#define PHOBOS_NVML_FIELD(field, name, parameters) Return(*field) parameters = nullptr;
  PHOBOS_NVML_FUNCTIONS(PHOBOS_NVML_FIELD)
#undef PHOBOS_NVML_FIELD
};

// The bits that change what a launch takes.
struct Reason {
  unsigned long long bit;
  const char* text;
};
constexpr Reason kReasons[] = {
    {0x04, "the power limit"},    {0x08, "a hardware slowdown"}, {0x20, "heat (by software)"},
    {0x40, "heat (by hardware)"}, {0x80, "the power brake"},
};

class LoadedNvml : public Nvml {
 public:
  LoadedNvml(const Functions& call, Card card) : call_(call), card_(card) {}
  ~LoadedNvml() override { call_.shutdown(); }

  std::string Driver() override {
    char text[96] = {};
    return call_.driver(text, sizeof(text) - 1) == kOk ? text : "";
  }

  tuner::v1::CardState Read() override {
    tuner::v1::CardState state;
    state.set_sm_clock_mhz(Number([&](unsigned* n) { return call_.clock(card_, kClockSm, n); }));
    state.set_memory_clock_mhz(
        Number([&](unsigned* n) { return call_.clock(card_, kClockMemory, n); }));
    state.set_temperature_c(
        Number([&](unsigned* n) { return call_.temperature(card_, kSensorGpu, n); }));
    state.set_power_mw(Number([&](unsigned* n) { return call_.power(card_, n); }));
    unsigned long long bits = 0;
    if (call_.reasons(card_, &bits) != kOk) return state;
    std::vector<const char*> found;
    for (const Reason& reason : kReasons) {
      if ((bits & reason.bit) != 0) found.push_back(reason.text);
    }
    state.set_throttling(absl::StrJoin(found, ", "));
    return state;
  }

  std::vector<unsigned> Processes() override {
    std::vector<unsigned> pids;
    std::vector<Process> processes;
    const Return result = List(processes, [&](unsigned* count, Process* items) {
      return call_.processes(card_, count, items);
    });
    if (result != kOk) return pids;
    for (const Process& process : processes) pids.push_back(process.pid);
    return pids;
  }

  absl::StatusOr<std::vector<CardUse>> NewUses(int64_t now_us) override {
    if (last_us_ == 0) last_us_ = static_cast<unsigned long long>(now_us);
    std::vector<Utilization> samples;
    const Return result = List(samples, [&](unsigned* count, Utilization* items) {
      return call_.utilization(card_, items, count, last_us_);
    });
    if (result == kNotFound) return std::vector<CardUse>();
    if (result != kOk) {
      return absl::UnavailableError(
          absl::StrCat("nvmlDeviceGetProcessUtilization: error ", result));
    }
    std::vector<CardUse> uses;
    for (const Utilization& sample : samples) {
      // Places that no process filled have no time.
      if (sample.timestamp_us <= last_us_ || sample.sm_percent == 0) continue;
      newest_us_ = std::max(newest_us_, sample.timestamp_us);
      uses.push_back({sample.pid, sample.sm_percent});
    }
    last_us_ = std::max(last_us_, newest_us_);
    return uses;
  }

 private:
  template <typename Ask>
  static int Number(Ask ask) {
    unsigned number = 0;
    return ask(&number) == kOk ? static_cast<int>(number) : 0;
  }

  // A list whose length the library wants to be asked for first. It may grow in between. Where the
  // library says an error that is given, and nothing is said of `items`.
  template <typename Item, typename Ask>
  static Return List(std::vector<Item>& items, Ask ask) {
    unsigned count = 0;
    Return result = ask(&count, nullptr);
    for (int tries = 0; tries < 3 && (result == kNoSpace || result == kOk); ++tries) {
      items.resize(count == 0 ? 0 : count + 4);
      if (count == 0) return kOk;
      count = static_cast<unsigned>(items.size());
      result = ask(&count, items.data());
      if (result != kOk) continue;
      items.resize(std::min<size_t>(count, items.size()));
      return kOk;
    }
    return result;
  }

  const Functions call_;
  const Card card_;
  unsigned long long last_us_ = 0;
  unsigned long long newest_us_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Nvml>> Nvml::Open(const std::string& uuid) {
  const char* named = getenv(kLibraryVariable);
  const std::string path = named != nullptr && *named != '\0' ? named : kLibrary;
  // Never closed, as the driver it belongs to.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::UnavailableError(absl::StrCat("no NVML: ", dlerror()));
  Functions call;
#define PHOBOS_NVML_FIND(field, name, parameters)                                           \
  call.field = reinterpret_cast<std::decay_t<decltype(call.field)>>(dlsym(library, #name)); \
  if (call.field == nullptr) return absl::UnavailableError(path + " has no function " #name);
  PHOBOS_NVML_FUNCTIONS(PHOBOS_NVML_FIND)
#undef PHOBOS_NVML_FIND
  if (const Return result = call.init(); result != kOk) {
    return absl::UnavailableError(absl::StrCat("nvmlInit_v2: error ", result));
  }
  Card card = nullptr;
  if (const Return result = call.find(uuid.c_str(), &card); result != kOk) {
    call.shutdown();
    return absl::UnavailableError(
        absl::StrCat("nvmlDeviceGetHandleByUUID(", uuid, "): error ", result));
  }
  return std::make_unique<LoadedNvml>(call, card);
}

}  // namespace phobos::device
