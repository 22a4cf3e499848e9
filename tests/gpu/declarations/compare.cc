// SPDX-License-Identifier: Apache-2.0
//
// Compares our own declarations of the CUDA driver's ABI with cuda.h, when it is compiled:
// declarations_test.sh does that where there is one.
#include <cuda.h>

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "client/launch/cuda/functions.h"

namespace phobos::launch::cuda {
namespace {

// Whether a value of one type is handed over as one of the other is.
template <typename Ours, typename Theirs>
constexpr bool IsSame();

template <typename T, typename = void>
constexpr bool kIsComplete = false;
template <typename T>
constexpr bool kIsComplete<T, std::void_t<decltype(sizeof(T))>> = true;

template <typename Ours, typename Theirs>
struct Signature : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct Signature<R (*)(A...), S (*)(B...)> {
  static constexpr bool Compare() {
    if constexpr (sizeof...(A) != sizeof...(B)) {
      return false;
    } else {
      return IsSame<R, S>() && (IsSame<A, B>() && ...);
    }
  }
  static constexpr bool value = Compare();
};

template <typename Ours, typename Theirs>
constexpr bool IsSame() {
  if constexpr (std::is_same_v<Ours, Theirs>) {
    return true;
  } else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using A = std::remove_pointer_t<Ours>;
    using B = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_const_v<A> != std::is_const_v<B>) {
      return false;
    } else if constexpr (std::is_class_v<A> && !kIsComplete<A>) {
      return std::is_class_v<B> && !kIsComplete<B>;  // handles
    } else {
      return IsSame<std::remove_const_t<A>, std::remove_const_t<B>>();
    }
  } else if constexpr (std::is_enum_v<Ours> || std::is_enum_v<Theirs>) {
    return (std::is_enum_v<Theirs> || std::is_integral_v<Theirs>)&&sizeof(Ours) == sizeof(Theirs);
  } else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>) {
    return sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
  } else if constexpr (std::is_integral_v<Ours> && std::is_integral_v<Theirs>) {
    return sizeof(Ours) == sizeof(Theirs) && std::is_signed_v<Ours> == std::is_signed_v<Theirs>;
  } else {
    return false;
  }
}

// Whether our symbol is the one that cuda.h means by the name. A newer cuda.h may mean a newer one
// than the oldest driver has: of these two the old one is wanted.
constexpr bool IsSymbol(std::string_view ours, std::string_view theirs) {
  return ours == theirs || (ours == "cuEventElapsedTime" && theirs == "cuEventElapsedTime_v2") ||
         (ours == "cuDeviceGetUuid" && theirs == "cuDeviceGetUuid_v2") ||
         // cuda.h of CUDA 12 does not rename it, the header of CUDA 13 does.
         (ours == "cuDeviceGetUuid_v2" && theirs == "cuDeviceGetUuid");
}

#define PHOBOS_TEXT_OF(name) #name
#define PHOBOS_TEXT(name) PHOBOS_TEXT_OF(name)
#define PHOBOS_COMPARE(field, name, suffix, parameters)             \
  static_assert(IsSymbol(#name #suffix, PHOBOS_TEXT(name)), #name); \
  static_assert(Signature<decltype(Functions::field), decltype(&name)>::value, #name);
PHOBOS_CUDA_FUNCTIONS(PHOBOS_COMPARE)

#define PHOBOS_SAME(ours, theirs) \
  static_assert(static_cast<long>(ours) == static_cast<long>(theirs))
PHOBOS_SAME(kSuccess, CUDA_SUCCESS);
PHOBOS_SAME(kInvalidValue, CUDA_ERROR_INVALID_VALUE);
PHOBOS_SAME(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
PHOBOS_SAME(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
PHOBOS_SAME(kDeinitialized, CUDA_ERROR_DEINITIALIZED);
PHOBOS_SAME(kStubLibrary, CUDA_ERROR_STUB_LIBRARY);
PHOBOS_SAME(kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
PHOBOS_SAME(kNoDevice, CUDA_ERROR_NO_DEVICE);
PHOBOS_SAME(kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
PHOBOS_SAME(kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
PHOBOS_SAME(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
PHOBOS_SAME(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
PHOBOS_SAME(kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
PHOBOS_SAME(kInvalidPtx, CUDA_ERROR_INVALID_PTX);
PHOBOS_SAME(kJitCompilerNotFound, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
PHOBOS_SAME(kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
PHOBOS_SAME(kOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM);
PHOBOS_SAME(kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
PHOBOS_SAME(kNotFound, CUDA_ERROR_NOT_FOUND);
PHOBOS_SAME(kNotReady, CUDA_ERROR_NOT_READY);
PHOBOS_SAME(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
PHOBOS_SAME(kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
PHOBOS_SAME(kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
PHOBOS_SAME(kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
PHOBOS_SAME(kAssert, CUDA_ERROR_ASSERT);
PHOBOS_SAME(kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR);
PHOBOS_SAME(kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
PHOBOS_SAME(kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
PHOBOS_SAME(kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE);
PHOBOS_SAME(kInvalidPc, CUDA_ERROR_INVALID_PC);
PHOBOS_SAME(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
PHOBOS_SAME(kNotPermitted, CUDA_ERROR_NOT_PERMITTED);
PHOBOS_SAME(kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
PHOBOS_SAME(kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);
PHOBOS_SAME(kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
PHOBOS_SAME(kCompatNotSupported, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
PHOBOS_SAME(kMpsConnectionFailed, CUDA_ERROR_MPS_CONNECTION_FAILED);
PHOBOS_SAME(kMpsClientTerminated, CUDA_ERROR_MPS_CLIENT_TERMINATED);
PHOBOS_SAME(kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
PHOBOS_SAME(kStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
PHOBOS_SAME(kUnknown, CUDA_ERROR_UNKNOWN);

PHOBOS_SAME(kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
PHOBOS_SAME(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
PHOBOS_SAME(kComputeMode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
PHOBOS_SAME(kL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
PHOBOS_SAME(kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
PHOBOS_SAME(kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
PHOBOS_SAME(kMaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
PHOBOS_SAME(kComputeDefault, CU_COMPUTEMODE_DEFAULT);
PHOBOS_SAME(kComputeProhibited, CU_COMPUTEMODE_PROHIBITED);
PHOBOS_SAME(kComputeExclusive, CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
PHOBOS_SAME(kFunctionMaxThreads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
PHOBOS_SAME(kFunctionSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
PHOBOS_SAME(kFunctionLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
PHOBOS_SAME(kFunctionRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
PHOBOS_SAME(kFunctionMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
PHOBOS_SAME(kPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
PHOBOS_SAME(kPointerDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
PHOBOS_SAME(kPointerIsIpcCapable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
PHOBOS_SAME(kMemoryHost, CU_MEMORYTYPE_HOST);
PHOBOS_SAME(kMemoryDevice, CU_MEMORYTYPE_DEVICE);
PHOBOS_SAME(kMemoryUnified, CU_MEMORYTYPE_UNIFIED);
PHOBOS_SAME(kJitErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
PHOBOS_SAME(kJitErrorLogBufferBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
PHOBOS_SAME(kInputCubin, CU_JIT_INPUT_CUBIN);
PHOBOS_SAME(kInputPtx, CU_JIT_INPUT_PTX);
PHOBOS_SAME(kCaptureNone, CU_STREAM_CAPTURE_STATUS_NONE);
PHOBOS_SAME(kCaptureActive, CU_STREAM_CAPTURE_STATUS_ACTIVE);
PHOBOS_SAME(kCaptureInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
PHOBOS_SAME(kCaptureGlobal, CU_STREAM_CAPTURE_MODE_GLOBAL);
PHOBOS_SAME(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
PHOBOS_SAME(kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
PHOBOS_SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
PHOBOS_SAME(kEventDefault, CU_EVENT_DEFAULT);
PHOBOS_SAME(kIpcLazyPeerAccess, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
PHOBOS_SAME(kHostPortable, CU_MEMHOSTALLOC_PORTABLE);
PHOBOS_SAME(kHostDeviceMap, CU_MEMHOSTALLOC_DEVICEMAP);
PHOBOS_SAME(kWaitGreaterOrEqual, CU_STREAM_WAIT_VALUE_GEQ);
PHOBOS_SAME(kWriteValueDefault, CU_STREAM_WRITE_VALUE_DEFAULT);
PHOBOS_SAME(1, CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT);
PHOBOS_SAME(2, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT);
PHOBOS_SAME(0, CU_LAUNCH_PARAM_END_AS_INT);
PHOBOS_SAME(sizeof(Uuid), sizeof(CUuuid));
PHOBOS_SAME(sizeof(IpcHandle), sizeof(CUipcMemHandle));

}  // namespace
}  // namespace phobos::launch::cuda
