// SPDX-License-Identifier: Apache-2.0
#include "client/launch/cuda/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string_view>

namespace phobos::launch::cuda {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";
constexpr char kLibraryVariable[] = "PHOBOS_CUDA_LIBRARY";

// What a result means for the caller, and what a person can do. Those not listed are Internal.
struct Meaning {
  Result result;
  Code code;
  const char* remedy;
};

constexpr char kLost[] =
    "the card is lost to this process, which must end before it can be used again";
constexpr char kRecompile[] = "delete the cached kernel so that it is compiled again";

constexpr Meaning kMeanings[] = {
    {kOutOfMemory, Code::kResourceExhausted,
     "the card's memory is full: end other processes on it (nvidia-smi lists them) or use smaller "
     "arguments"},
    {kNotInitialized, Code::kFailedPrecondition,
     "CUDA does not work in a forked child of a process that used it: start the child anew "
     "(Python: the start method \"spawn\")"},
    {kDeinitialized, Code::kFailedPrecondition, "the process is ending"},
    {kStubLibrary, Code::kUnavailable,
     "a toolkit's stub was found instead of the driver: take its folder out of LD_LIBRARY_PATH"},
    {kDeviceUnavailable, Code::kUnavailable,
     "another process has the card for itself (exclusive mode): end it, or "
     "\"nvidia-smi -c DEFAULT\""},
    {kInvalidImage, Code::kInvalidArgument, kRecompile},
    {kNoBinaryForGpu, Code::kFailedPrecondition, "the kernel was compiled for another card"},
    {kEccUncorrectable, Code::kAborted, "the card's memory is damaged: see nvidia-smi -q"},
    {kInvalidPtx, Code::kInvalidArgument, kRecompile},
    {kJitCompilerNotFound, Code::kFailedPrecondition,
     "libnvidia-ptxjitcompiler.so.1 is missing: install the whole driver, or give the container "
     "the capability \"compute\""},
    {kUnsupportedPtxVersion, Code::kFailedPrecondition,
     "the driver is older than the kernel's PTX: update the driver"},
    {kIllegalAddress, Code::kAborted, kLost},
    {kLaunchOutOfResources, Code::kFailedPrecondition,
     "a block needs more registers or threads than the card has: fewer threads by @ph.launch"},
    {kLaunchTimeout, Code::kAborted,
     "a display's watchdog ended the kernel: use a card without a display"},
    {kContextIsDestroyed, Code::kAborted, kLost},
    {kAssert, Code::kAborted, kLost},
    {kHardwareStackError, Code::kAborted, kLost},
    {kIllegalInstruction, Code::kAborted, kLost},
    {kMisalignedAddress, Code::kAborted, kLost},
    {kInvalidAddressSpace, Code::kAborted, kLost},
    {kInvalidPc, Code::kAborted, kLost},
    {kLaunchFailed, Code::kAborted, kLost},
    {kContained, Code::kAborted, kLost},
    {kMpsClientTerminated, Code::kAborted, kLost},
    {kMpsConnectionFailed, Code::kUnavailable, "the MPS control daemon does not answer"},
    {kUnknown, Code::kAborted, kLost},
    {kNotPermitted, Code::kFailedPrecondition, "not allowed in this state"},
    {kNotSupported, Code::kFailedPrecondition, "not on this card or system"},
    {kSystemNotReady, Code::kUnavailable,
     "the system is not ready: nvidia-fabricmanager must run on machines with NVSwitch"},
    {kSystemDriverMismatch, Code::kUnavailable,
     "the kernel module and libcuda.so.1 are of different versions: reboot after an update"},
    {kCompatNotSupported, Code::kUnavailable,
     "a forward-compatible libcuda.so.1 does not support this card: take it out of "
     "LD_LIBRARY_PATH"},
    {kStreamCaptureUnsupported, Code::kFailedPrecondition,
     "not while a stream of this thread is captured"},
};

const Meaning* MeaningOf(Result result) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.result == result) return &meaning;
  }
  return nullptr;
}

// Where each function goes: a table, because code for each of them would be most of this room's.
struct Wanted {
  const char* symbol;
  size_t offset;  // in Functions
};
constexpr Wanted kWanted[] = {
#define PHOBOS_CUDA_WANTED(field, name, suffix, parameters) \
  {#name #suffix, offsetof(Functions, field)},
    PHOBOS_CUDA_FUNCTIONS(PHOBOS_CUDA_WANTED)
#undef PHOBOS_CUDA_WANTED
};

Status Missing(const std::string& what) { return Status(Code::kUnavailable, what); }

// The device files without which cuInit finds no device; why they cannot be used, or nothing. The
// driver itself gives the same result for "no card" and "no permission".
std::string WhyNoDevice() {
  constexpr const char* kFiles[] = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
  for (const char* file : kFiles) {
    if (access(file, R_OK | W_OK) == 0) continue;
    const std::string path = file;
    if (errno == ENOENT) {
      return path +
             " is missing: the kernel module is not loaded (nvidia-smi loads it), or the "
             "container was not given the GPU (docker run --gpus all)";
    }
    return path + ": " + strerror(errno) +
           "; let this user open it (mostly the group video or render), or run the container with "
           "the GPU";
  }
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr) {
    return std::string("CUDA_VISIBLE_DEVICES=\"") + visible + "\" leaves none";
  }
  return "a card in MIG mode needs a compute instance (nvidia-smi mig -lgi), a card that fell off "
         "the bus a reset (dmesg names it)";
}

}  // namespace

bool IsSticky(Result result) {
  const Meaning* meaning = MeaningOf(result);
  return meaning != nullptr && meaning->code == Code::kAborted;
}

std::string VersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

StatusOr<std::shared_ptr<const CudaDriver>> CudaDriver::Load() {
  const char* named = getenv(kLibraryVariable);
  const std::string path = named != nullptr && *named != '\0' ? named : kLibrary;
  // Never closed: the driver starts threads that would be left without their code.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Missing(std::string("no NVIDIA driver: ") + dlerror() +
                   "; install it, or give the container the GPU (docker run --gpus all)");
  }
  std::shared_ptr<CudaDriver> driver(new CudaDriver);
  Functions& functions = driver->functions_;
  const auto find = [&](const char* symbol, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, symbol));
    return function != nullptr;
  };
  if (!find("cuDriverGetVersion", functions.driver_version) ||
      functions.driver_version(&driver->version_) != kSuccess) {
    return Missing(path + " is no CUDA driver: it does not tell its version");
  }
  if (driver->version_ < kOldestVersion) {
    return Missing("the NVIDIA driver supports CUDA " + VersionText(driver->version_) +
                   "; update it to one for CUDA " + VersionText(kOldestVersion) + " or newer");
  }
  for (const Wanted& wanted : kWanted) {
    void* function = dlsym(library, wanted.symbol);
    if (function == nullptr) {
      return Missing(path + " has no function " + wanted.symbol + "; update the driver");
    }
    memcpy(reinterpret_cast<char*>(&functions) + wanted.offset, &function, sizeof(function));
  }
  const Result started = functions.init(0);
  if (started == kNoDevice) {
    return Missing("no NVIDIA GPU can be used (cuInit: CUDA_ERROR_NO_DEVICE): " + WhyNoDevice());
  }
  if (started != kSuccess) {
    const Status error = driver->Error("cuInit", started);
    return Status(Code::kUnavailable, error.message());
  }
  return std::shared_ptr<const CudaDriver>(std::move(driver));
}

Status CudaDriver::Error(const char* call, Result result, const std::string& detail) const {
  if (result == kSuccess) return Status();
  const char* name = nullptr;
  const char* text = nullptr;
  std::string message = std::string(call) + ": ";
  if (functions_.error_name(result, &name) == kSuccess && name != nullptr) {
    message += name;
  } else {
    message += "CUresult " + std::to_string(static_cast<int>(result));
  }
  if (functions_.error_text(result, &text) == kSuccess && text != nullptr) {
    message += std::string(" (") + text + ")";
  }
  if (!detail.empty()) message += ": " + detail;
  const Meaning* meaning = MeaningOf(result);
  if (meaning == nullptr) return Status(Code::kInternal, message);
  return Status(meaning->code, message + "; " + meaning->remedy);
}

}  // namespace phobos::launch::cuda
