// SPDX-License-Identifier: Apache-2.0
//
// The functions of libcuda.so.1 that this project calls: one list, from which come the table that
// driver.h fills, the stand-in driver of tests/gpu/fake_driver and the comparison with cuda.h. No
// code; any thread.
//
// Which symbol: libcuda keeps every version of a function it ever had under a name of its own.
// The bare name is the first one, so that "cuMemAlloc" is a function of 32-bit sizes and only
// "cuMemAlloc_v2" is what cuda.h calls cuMemAlloc. The third column is that suffix, for the newest
// version that the oldest driver we take (12.0) has. Symbols with _ptsz or _ptds, where the stream
// 0 is one a thread, are not taken: a caller's stream means what it means to the caller.
#ifndef PHOBOS_CLIENT_LAUNCH_CUDA_FUNCTIONS_H_
#define PHOBOS_CLIENT_LAUNCH_CUDA_FUNCTIONS_H_

#include "client/launch/cuda/declarations.h"

// X(field, name in cuda.h, suffix of the symbol, parameters); all give a Result.
#define PHOBOS_CUDA_FUNCTIONS(X)                                                                  \
  X(init, cuInit, , (unsigned flags))                                                             \
  X(driver_version, cuDriverGetVersion, , (int* version))                                         \
  X(error_name, cuGetErrorName, , (Result result, const char** text))                             \
  X(error_text, cuGetErrorString, , (Result result, const char** text))                           \
  X(device_count, cuDeviceGetCount, , (int* count))                                               \
  X(device, cuDeviceGet, , (Device * device, int ordinal))                                        \
  X(device_name, cuDeviceGetName, , (char* name, int size, Device device))                        \
  /* Of the card; the next one's is a MIG slice's own where the device is one. */                 \
  X(card_uuid, cuDeviceGetUuid, , (Uuid * uuid, Device device))                                   \
  X(device_uuid, cuDeviceGetUuid, _v2, (Uuid * uuid, Device device))                              \
  X(device_bytes, cuDeviceTotalMem, _v2, (size_t * bytes, Device device))                         \
  X(device_attribute, cuDeviceGetAttribute, , (int* value, DeviceAttribute which, Device device)) \
  X(retain_context, cuDevicePrimaryCtxRetain, , (Context * context, Device device))               \
  X(release_context, cuDevicePrimaryCtxRelease, _v2, (Device device))                             \
  X(push_context, cuCtxPushCurrent, _v2, (Context context))                                       \
  X(pop_context, cuCtxPopCurrent, _v2, (Context * context))                                       \
  X(current_context, cuCtxGetCurrent, , (Context * context))                                      \
  X(current_device, cuCtxGetDevice, , (Device * device))                                          \
  X(allocate, cuMemAlloc, _v2, (DevicePointer * pointer, size_t bytes))                           \
  X(free, cuMemFree, _v2, (DevicePointer pointer))                                                \
  X(memory_left, cuMemGetInfo, _v2, (size_t * free, size_t * total))                              \
  X(host_allocate, cuMemHostAlloc, , (void** memory, size_t bytes, unsigned flags))               \
  X(host_free, cuMemFreeHost, , (void* memory))                                                   \
  X(host_register, cuMemHostRegister, _v2, (void* memory, size_t bytes, unsigned flags))          \
  X(host_unregister, cuMemHostUnregister, , (void* memory))                                       \
  X(host_pointer, cuMemHostGetDevicePointer, _v2,                                                 \
    (DevicePointer * pointer, void* memory, unsigned flags))                                      \
  X(address_range, cuMemGetAddressRange, _v2,                                                     \
    (DevicePointer * base, size_t * bytes, DevicePointer pointer))                                \
  X(pointer_attribute, cuPointerGetAttribute, ,                                                   \
    (void* value, PointerAttribute which, DevicePointer pointer))                                 \
  X(ipc_handle, cuIpcGetMemHandle, , (IpcHandle * handle, DevicePointer pointer))                 \
  X(ipc_open, cuIpcOpenMemHandle, _v2,                                                            \
    (DevicePointer * pointer, IpcHandle handle, unsigned flags))                                  \
  X(ipc_close, cuIpcCloseMemHandle, , (DevicePointer pointer))                                    \
  X(copy, cuMemcpyAsync, , (DevicePointer to, DevicePointer from, size_t bytes, Stream stream))   \
  X(fill, cuMemsetD32Async, , (DevicePointer to, unsigned value, size_t count, Stream stream))    \
  X(create_stream, cuStreamCreate, , (Stream * stream, unsigned flags))                           \
  X(destroy_stream, cuStreamDestroy, _v2, (Stream stream))                                        \
  X(synchronize_stream, cuStreamSynchronize, , (Stream stream))                                   \
  X(query_stream, cuStreamQuery, , (Stream stream))                                               \
  X(wait_value, cuStreamWaitValue32, _v2,                                                         \
    (Stream stream, DevicePointer address, uint32_t value, unsigned flags))                       \
  X(write_value, cuStreamWriteValue32, _v2,                                                       \
    (Stream stream, DevicePointer address, uint32_t value, unsigned flags))                       \
  X(capture_status, cuStreamIsCapturing, , (Stream stream, CaptureStatus * status))               \
  X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, , (CaptureMode * mode))             \
  X(create_event, cuEventCreate, , (Event * event, unsigned flags))                               \
  X(destroy_event, cuEventDestroy, _v2, (Event event))                                            \
  X(record_event, cuEventRecord, , (Event event, Stream stream))                                  \
  X(elapsed, cuEventElapsedTime, , (float* milliseconds, Event start, Event end))                 \
  X(create_link, cuLinkCreate, _v2,                                                               \
    (unsigned count, JitOption* options, void** values, LinkState* state))                        \
  X(link_add, cuLinkAddData, _v2,                                                                 \
    (LinkState state, JitInput kind, void* bytes, size_t size, const char* name, unsigned count,  \
     JitOption* options, void** values))                                                          \
  X(link_complete, cuLinkComplete, , (LinkState state, void** cubin, size_t* size))               \
  X(destroy_link, cuLinkDestroy, , (LinkState state))                                             \
  X(load_module, cuModuleLoadDataEx, ,                                                            \
    (Module * module, const void* image, unsigned count, JitOption* options, void** values))      \
  X(unload_module, cuModuleUnload, , (Module module))                                             \
  X(module_function, cuModuleGetFunction, ,                                                       \
    (Function * function, Module module, const char* name))                                       \
  X(function_attribute, cuFuncGetAttribute, ,                                                     \
    (int* value, FunctionAttribute which, Function function))                                     \
  X(set_function_attribute, cuFuncSetAttribute, ,                                                 \
    (Function function, FunctionAttribute which, int value))                                      \
  X(launch, cuLaunchKernel, ,                                                                     \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,      \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters, \
     void** extra))

namespace phobos::launch::cuda {

// A pointer to each function, none null once driver.h has filled it.
struct Functions {
#define PHOBOS_CUDA_FIELD(field, name, suffix, parameters) Result(*field) parameters = nullptr;
  PHOBOS_CUDA_FUNCTIONS(PHOBOS_CUDA_FIELD)
#undef PHOBOS_CUDA_FIELD
};

}  // namespace phobos::launch::cuda

#endif  // PHOBOS_CLIENT_LAUNCH_CUDA_FUNCTIONS_H_
