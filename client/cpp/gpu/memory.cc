// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/gpu/memory.h"

#include "client/launch/cuda/capture.h"

namespace phobos {

GpuMemory::~GpuMemory() {
  if (copying_ == nullptr) return;
  const GpuContext current(*gpu_);
  if (!current.status().ok()) return;
  const cuda::RelaxedCapture relaxed(gpu_->driver());
  gpu_->driver()->destroy_stream(copying_);
}

Status GpuMemory::Settle() {
  const GpuContext current(*gpu_);
  if (!current.status().ok()) return current.status();
  const StatusOr<bool> is_captured = cuda::IsCaptured(gpu_->driver(), stream_);
  if (!is_captured.ok()) return is_captured.status();
  if (*is_captured) {
    return Status(Code::kFailedPrecondition,
                  "the stream is being captured, and a tune reads what was queued on it; tune "
                  "before the capture");
  }
  const cuda::RelaxedCapture relaxed(gpu_->driver());
  return gpu_->driver().Error("cuStreamSynchronize", gpu_->driver()->synchronize_stream(stream_));
}

StatusOr<std::optional<Memory::Shared>> GpuMemory::Share(uint64_t address) {
  const cuda::CudaDriver& driver = gpu_->driver();
  const GpuContext current(*gpu_);
  if (!current.status().ok()) return current.status();
  const cuda::RelaxedCapture relaxed(driver);
  int is_capable = 0;
  cuda::DevicePointer base = 0;
  cuda::IpcHandle handle;
  // None of these failing is an error: the bytes go another way.
  if (driver->pointer_attribute(&is_capable, cuda::kPointerIsIpcCapable, address) !=
          cuda::kSuccess ||
      is_capable == 0 || driver->address_range(&base, nullptr, address) != cuda::kSuccess ||
      driver->ipc_handle(&handle, base) != cuda::kSuccess) {
    return std::optional<Shared>();
  }
  return std::optional<Shared>(Shared{std::string(handle.reserved, sizeof(handle.reserved)),
                                      static_cast<int64_t>(address - base)});
}

Status GpuMemory::Copy(void* to, uint64_t from, int64_t bytes) {
  if (bytes == 0) return Status();
  const cuda::CudaDriver& driver = gpu_->driver();
  const GpuContext current(*gpu_);
  if (!current.status().ok()) return current.status();
  const cuda::RelaxedCapture relaxed(driver);
  if (copying_ == nullptr) {
    const cuda::Result created = driver->create_stream(&copying_, cuda::kStreamNonBlocking);
    if (created != cuda::kSuccess) return driver.Error("cuStreamCreate", created);
  }
  const cuda::Result copied = driver->copy(reinterpret_cast<cuda::DevicePointer>(to), from,
                                           static_cast<size_t>(bytes), copying_);
  if (copied != cuda::kSuccess) return driver.Error("cuMemcpyAsync", copied);
  return driver.Error("cuStreamSynchronize", driver->synchronize_stream(copying_));
}

StatusOr<const std::byte*> GpuMemory::Look(uint64_t address, int64_t bytes,
                                           std::vector<std::byte>& buffer) {
  buffer.resize(static_cast<size_t>(bytes));
  if (Status status = Copy(buffer.data(), address, bytes); !status.ok()) return status;
  return static_cast<const std::byte*>(buffer.data());
}

}  // namespace phobos
