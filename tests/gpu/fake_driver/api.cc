// SPDX-License-Identifier: Apache-2.0
//
// libcuda's functions but for streams and kernels: the driver, cards, contexts, memory.
#include "tests/gpu/fake_driver/api.h"

#include <string.h>

namespace phobos::fake {
namespace {

struct Named {
  cuda::Result result;
  const char* name;
  const char* text;
};
constexpr Named kNames[] = {
    {cuda::kSuccess, "CUDA_SUCCESS", "no error"},
    {cuda::kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {cuda::kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {cuda::kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {cuda::kDeviceUnavailable, "CUDA_ERROR_DEVICE_UNAVAILABLE",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {cuda::kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {cuda::kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {cuda::kUnsupportedPtxVersion, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {cuda::kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {cuda::kMisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {cuda::kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

const Named* FindName(cuda::Result result) {
  for (const Named& named : kNames) {
    if (named.result == result) return &named;
  }
  return nullptr;
}

bool IsCard(const World& world, int device) { return device >= 0 && device < world.script.cards; }

cuda::Uuid UuidOf(int device) {
  cuda::Uuid uuid;
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) uuid.bytes[i] = static_cast<char>(0xf0 + i % 8);
  uuid.bytes[15] = static_cast<char>(device);
  return uuid;
}

// What the attributes that are asked for are; -1: unknown.
int AttributeOf(const Script& script, cuda::DeviceAttribute which) {
  switch (which) {
    case cuda::kMaxThreadsPerBlock:
      return 1024;
    case cuda::kMultiprocessorCount:
      return 4;
    case cuda::kComputeMode:
      return cuda::kComputeDefault;
    case cuda::kL2CacheSize:
      return static_cast<int>(script.l2_bytes);
    case cuda::kComputeCapabilityMajor:
      return script.major;
    case cuda::kComputeCapabilityMinor:
      return script.minor;
    case cuda::kMaxSharedMemoryPerBlockOptin:
      return 227 << 10;
  }
  return -1;
}

}  // namespace

ThreadState& ThisThread() {
  thread_local ThreadState state;
  return state;
}

}  // namespace phobos::fake

namespace phobos::launch::cuda {

using fake::Call;
using fake::Need;
using fake::ThisThread;
using fake::World;

Result cuInit(unsigned) {
  return Call("cuInit", Need::kNothing, "", [](World& world) {
    if (world.script.cards == 0) return kNoDevice;
    world.is_initialized.store(true);
    return kSuccess;
  });
}

Result cuDriverGetVersion(int* version) {
  *version = World::Get().script.version;
  return kSuccess;
}

Result cuGetErrorName(Result result, const char** text) {
  const auto* named = fake::FindName(result);
  *text = named == nullptr ? nullptr : named->name;
  return named == nullptr ? kInvalidValue : kSuccess;
}

Result cuGetErrorString(Result result, const char** text) {
  const auto* named = fake::FindName(result);
  *text = named == nullptr ? nullptr : named->text;
  return named == nullptr ? kInvalidValue : kSuccess;
}

Result cuDeviceGetCount(int* count) {
  return Call("cuDeviceGetCount", Need::kInit, "", [&](World& world) {
    *count = world.script.cards;
    return kSuccess;
  });
}

Result cuDeviceGet(Device* device, int ordinal) {
  return Call("cuDeviceGet", Need::kInit, "", [&](World& world) {
    *device = ordinal;
    return fake::IsCard(world, ordinal) ? kSuccess : kInvalidDevice;
  });
}

Result cuDeviceGetName(char* name, int size, Device device) {
  return Call("cuDeviceGetName", Need::kInit, "", [&](World& world) {
    if (!fake::IsCard(world, device) || size < 1) return kInvalidDevice;
    strncpy(name, world.script.name.c_str(), static_cast<size_t>(size));
    name[size - 1] = '\0';
    return kSuccess;
  });
}

Result cuDeviceGetUuid(Uuid* uuid, Device device) {
  return Call("cuDeviceGetUuid", Need::kInit, "", [&](World& world) {
    *uuid = fake::UuidOf(device);
    return fake::IsCard(world, device) ? kSuccess : kInvalidDevice;
  });
}

Result cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  const Result result = cuDeviceGetUuid(uuid, device);
  if (World::Get().script.mig) uuid->bytes[14] = 1;
  return result;
}

Result cuDeviceTotalMem_v2(size_t* bytes, Device) {
  return Call("cuDeviceTotalMem_v2", Need::kInit, "", [&](World& world) {
    *bytes = static_cast<size_t>(world.script.memory_bytes);
    return kSuccess;
  });
}

Result cuDeviceGetAttribute(int* value, DeviceAttribute which, Device) {
  return Call("cuDeviceGetAttribute", Need::kInit, "", [&](World& world) {
    *value = fake::AttributeOf(world.script, which);
    return *value < 0 ? kInvalidValue : kSuccess;
  });
}

Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  return Call("cuDevicePrimaryCtxRetain", Need::kInit, "", [&](World& world) {
    if (!fake::IsCard(world, device)) return kInvalidDevice;
    const std::lock_guard<std::mutex> lock(world.mutex);
    *context = &world.contexts[static_cast<size_t>(device)];
    (*context)->device = device;
    ++(*context)->retained;
    return kSuccess;
  });
}

Result cuDevicePrimaryCtxRelease_v2(Device device) {
  return Call("cuDevicePrimaryCtxRelease_v2", Need::kInit, "", [&](World& world) {
    const std::lock_guard<std::mutex> lock(world.mutex);
    ContextRecord& context = world.contexts[static_cast<size_t>(device)];
    return context.retained-- > 0 ? kSuccess : kInvalidContext;
  });
}

Result cuCtxPushCurrent_v2(Context context) {
  return Call("cuCtxPushCurrent_v2", Need::kInit, "", [&](World&) {
    if (context == nullptr || context->retained <= 0) return kInvalidContext;
    ThisThread().contexts.push_back(context);
    return kSuccess;
  });
}

Result cuCtxPopCurrent_v2(Context* context) {
  return Call("cuCtxPopCurrent_v2", Need::kContext, "", [&](World&) {
    *context = ThisThread().contexts.back();
    ThisThread().contexts.pop_back();
    return kSuccess;
  });
}

Result cuCtxGetCurrent(Context* context) {
  return Call("cuCtxGetCurrent", Need::kInit, "", [&](World&) {
    *context = ThisThread().contexts.empty() ? nullptr : ThisThread().contexts.back();
    return kSuccess;
  });
}

Result cuCtxGetDevice(Device* device) {
  return Call("cuCtxGetDevice", Need::kContext, "", [&](World&) {
    *device = ThisThread().contexts.back()->device;
    return kSuccess;
  });
}

Result cuMemAlloc_v2(DevicePointer* pointer, size_t bytes) {
  return Call("cuMemAlloc_v2", Need::kNoCapture, std::to_string(bytes), [&](World& world) {
    return world.memory.Allocate(ThisThread().contexts.back()->device, bytes, pointer);
  });
}

Result cuMemFree_v2(DevicePointer pointer) {
  return Call("cuMemFree_v2", Need::kNoCapture, "", [&](World& world) {
    world.WaitForAll();
    return world.memory.Free(pointer);
  });
}

Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  return Call("cuMemGetInfo_v2", Need::kContext, "", [&](World& world) {
    world.memory.Left(free, total);
    return kSuccess;
  });
}

Result cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  return Call("cuMemHostAlloc", Need::kNoCapture, std::to_string(bytes),
              [&](World& world) { return world.memory.AllocateHost(bytes, memory); });
}

Result cuMemFreeHost(void* memory) {
  return Call("cuMemFreeHost", Need::kNoCapture, "",
              [&](World& world) { return world.memory.FreeHost(memory); });
}

// Memory of the process is within reach of the stand-in card as it is.
Result cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  return Call("cuMemHostRegister_v2", Need::kNoCapture, std::to_string(bytes),
              [&](World&) { return memory == nullptr ? kInvalidValue : kSuccess; });
}

Result cuMemHostUnregister(void*) {
  return Call("cuMemHostUnregister", Need::kNoCapture, "", [](World&) { return kSuccess; });
}

Result cuMemHostGetDevicePointer_v2(DevicePointer* pointer, void* memory, unsigned) {
  return Call("cuMemHostGetDevicePointer_v2", Need::kContext, "", [&](World&) {
    *pointer = reinterpret_cast<DevicePointer>(memory);
    return kSuccess;
  });
}

Result cuMemGetAddressRange_v2(DevicePointer* base, size_t* bytes, DevicePointer pointer) {
  return Call("cuMemGetAddressRange_v2", Need::kContext, "", [&](World& world) {
    const auto range = world.memory.Find(pointer);
    if (!range.has_value()) return kNotFound;
    if (base != nullptr) *base = range->base;
    if (bytes != nullptr) *bytes = range->bytes;
    return kSuccess;
  });
}

Result cuPointerGetAttribute(void* value, PointerAttribute which, DevicePointer pointer) {
  return Call("cuPointerGetAttribute", Need::kContext, "", [&](World& world) {
    const auto range = world.memory.Find(pointer);
    const bool is_device = range.has_value();
    const bool is_host = world.memory.IsHostAllocation(pointer);
    if (!is_device && !is_host) return kInvalidValue;
    if (which == kPointerMemoryType) {
      *static_cast<unsigned*>(value) = is_device ? kMemoryDevice : kMemoryHost;
    } else if (which == kPointerIsIpcCapable) {
      *static_cast<int*>(value) = is_device && !world.script.no_ipc;
    } else if (which == kPointerDeviceOrdinal) {
      *static_cast<int*>(value) = is_device ? range->card : 0;
    } else {
      return kInvalidValue;
    }
    return kSuccess;
  });
}

Result cuIpcGetMemHandle(IpcHandle* handle, DevicePointer pointer) {
  return Call("cuIpcGetMemHandle", Need::kContext, "", [&](World& world) {
    return world.script.no_ipc ? kInvalidValue : world.memory.Export(pointer, handle);
  });
}

Result cuIpcOpenMemHandle_v2(DevicePointer* pointer, IpcHandle handle, unsigned) {
  return Call("cuIpcOpenMemHandle_v2", Need::kNoCapture, "", [&](World& world) {
    return world.memory.Import(ThisThread().contexts.back()->device, handle, pointer);
  });
}

Result cuIpcCloseMemHandle(DevicePointer pointer) {
  return Call("cuIpcCloseMemHandle", Need::kNoCapture, "",
              [&](World& world) { return world.memory.Close(pointer); });
}

}  // namespace phobos::launch::cuda
