// SPDX-License-Identifier: Apache-2.0
//
// A stand-in libnvidia-ml.so.1: it says what script.h lets it say. Sampling periods of another
// process's use end at each question that the script answers.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "tests/gpu/fake_driver/script/script.h"

namespace {

using phobos::fake::Script;

const Script& TheScript() {
  static const Script script = phobos::fake::ReadScript();
  return script;
}

constexpr int kOk = 0;
constexpr int kNotFound = 6;
constexpr int kNoSpace = 7;
constexpr unsigned kOtherProcess = 4'000'000;  // more than the system numbers

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
  unsigned rest[3];
};

// Whether this process has loaded the driver, and so may use the card.
bool HasDriver() {
  const char* library = getenv("PHOBOS_CUDA_LIBRARY");
  return library != nullptr && dlopen(library, RTLD_NOW | RTLD_NOLOAD) != nullptr;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return kOk; }
int nvmlShutdown() { return kOk; }

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  strncpy(text, "999.99", size);
  return kOk;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** card) {
  static int the_card = 0;
  *card = &the_card;
  return strncmp(uuid, "GPU-f0f1", 8) == 0 ? kOk : kNotFound;
}

int nvmlDeviceGetClockInfo(void*, int which, unsigned* mhz) {
  *mhz = which == 1 ? 1980 : 3201;
  return kOk;
}

int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = static_cast<unsigned>(TheScript().temperature);
  return kOk;
}

int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 120'000;
  return kOk;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) {
  static std::atomic<int64_t> asked = 0;
  constexpr unsigned long long kIdle = 1;  // means nothing
  *bits = kIdle | static_cast<unsigned long long>(TheScript().throttled.At(++asked));
  return kOk;
}

// Another process that only has a context; from the second list on this one too, which is taken to
// have made one in between.
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* processes) {
  static std::atomic<int> lists = 0;
  const unsigned room = *count;
  *count = lists > 0 ? 2 : 1;
  if (room < *count || processes == nullptr) return kNoSpace;
  ++lists;
  processes[0] = {kOtherProcess, 1, 0, 0};
  if (*count > 1) processes[1] = {static_cast<unsigned>(getpid()), 1, 0, 0};
  return kOk;
}

int nvmlDeviceGetProcessUtilization(void*, Utilization* samples, unsigned* count,
                                    unsigned long long) {
  static std::atomic<int64_t> asked = 0;
  if (TheScript().no_uses != kOk) return static_cast<int>(TheScript().no_uses);
  if (samples == nullptr) {
    *count = 2;
    return kNoSpace;
  }
  if (*count < 2) return kNoSpace;
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  const auto now_us = static_cast<unsigned long long>(now.tv_sec) * 1'000'000 +
                      static_cast<unsigned long long>(now.tv_nsec) / 1000;
  const auto percent = static_cast<unsigned>(TheScript().foreign.At(++asked));
  samples[0] = {static_cast<unsigned>(getpid()), now_us, HasDriver() ? 90U : 0U, {}};
  samples[1] = {kOtherProcess, now_us, percent, {}};
  *count = 2;
  return kOk;
}

}  // extern "C"
