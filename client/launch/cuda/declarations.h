// SPDX-License-Identifier: Apache-2.0
//
// The types and numbers of the CUDA driver's ABI that this project uses, written down by ourselves,
// so that nothing of CUDA is needed to build it. They are the driver's for ever; what cuda.h says
// of them is compared in tests/gpu/declarations. No code; any thread.
#ifndef PHOBOS_CLIENT_LAUNCH_CUDA_DECLARATIONS_H_
#define PHOBOS_CLIENT_LAUNCH_CUDA_DECLARATIONS_H_

#include <cstddef>
#include <cstdint>

namespace phobos::launch::cuda {

// CUresult: those that somebody here tells apart. A driver gives others too.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kJitCompilerNotFound = 221,
  kUnsupportedPtxVersion = 222,
  kContained = 226,
  kOperatingSystem = 304,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kCompatNotSupported = 804,
  kMpsConnectionFailed = 805,
  kMpsClientTerminated = 810,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureImplicit = 906,
  kUnknown = 999,
};

// CUdevice and CUdeviceptr.
using Device = int;
using DevicePointer = unsigned long long;

// Handles: only ever passed back to the driver.
using Context = struct ContextRecord*;
using Stream = struct StreamRecord*;
using Event = struct EventRecord*;
using Module = struct ModuleRecord*;
using Function = struct FunctionRecord*;
using LinkState = struct LinkStateRecord*;

struct Uuid {
  char bytes[16];
};

// Whoever holds one can map the whole allocation: a secret, never logged.
struct IpcHandle {
  char reserved[64];
};

enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMultiprocessorCount = 16,
  kComputeMode = 20,
  kL2CacheSize = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptin = 97,
};

enum ComputeMode : int { kComputeDefault = 0, kComputeProhibited = 2, kComputeExclusive = 3 };

enum FunctionAttribute : int {
  kFunctionMaxThreads = 0,
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicSharedBytes = 8,
};

enum PointerAttribute : int {
  kPointerMemoryType = 2,
  kPointerDeviceOrdinal = 9,
  kPointerIsIpcCapable = 10,
};
enum MemoryType : unsigned { kMemoryHost = 1, kMemoryDevice = 2, kMemoryUnified = 4 };

enum JitOption : int {
  kJitErrorLogBuffer = 5,
  kJitErrorLogBufferBytes = 6,
};
enum JitInput : int { kInputCubin = 0, kInputPtx = 1 };

enum CaptureStatus : int { kCaptureNone = 0, kCaptureActive = 1, kCaptureInvalidated = 2 };
enum CaptureMode : int { kCaptureGlobal = 0, kCaptureThreadLocal = 1, kCaptureRelaxed = 2 };

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kIpcLazyPeerAccess = 1;
inline constexpr unsigned kHostPortable = 1;
inline constexpr unsigned kHostDeviceMap = 2;
inline constexpr unsigned kWaitGreaterOrEqual = 0;
inline constexpr unsigned kWriteValueDefault = 0;

// Keys of cuLaunchKernel's last argument: one block of memory that holds all parameters.
inline void* const kLaunchEnd = nullptr;
inline void* const kLaunchBuffer = reinterpret_cast<void*>(1);
inline void* const kLaunchBufferBytes = reinterpret_cast<void*>(2);

}  // namespace phobos::launch::cuda

#endif  // PHOBOS_CLIENT_LAUNCH_CUDA_DECLARATIONS_H_
