// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/gpu/variant.h"

#include <utility>

#include "client/launch/cuda/capture.h"

namespace phobos {

GpuVariant::GpuVariant(std::shared_ptr<Gpu> gpu, std::string digest,
                       std::vector<std::string> images, cuda::KernelShape shape)
    : gpu_(std::move(gpu)),
      digest_(std::move(digest)),
      images_(std::move(images)),
      shape_(std::move(shape)) {}

GpuVariant::~GpuVariant() {
  const Place* place = places_.load();
  while (place != nullptr) {
    const Place* next = place->next;
    delete place;
    place = next;
  }
}

Status GpuVariant::Load(cuda::Stream stream) const {
  const GpuContext current(*gpu_);
  if (!current.status().ok()) return current.status();
  return FindOrLoad(current.context(), stream).status();
}

Status GpuVariant::Launch(const uint64_t* slots, size_t count, const launch::Grid& grid,
                          cuda::Stream stream) const {
  cuda::Context context = nullptr;
  const cuda::Result result = gpu_->driver()->current_context(&context);
  if (result != cuda::kSuccess) return gpu_->driver().Error("cuCtxGetCurrent", result);
  const cuda::CudaKernel* kernel = Find(context);
  if (kernel == nullptr) return LaunchElsewhere(slots, count, grid, stream);
  const cuda::Result launched = kernel->Launch(slots, count, grid, stream);
  return launched == cuda::kSuccess ? Status() : ErrorOf(launched);
}

// In a context that is new to it, or not the current one.
Status GpuVariant::LaunchElsewhere(const uint64_t* slots, size_t count, const launch::Grid& grid,
                                   cuda::Stream stream) const {
  const GpuContext current(*gpu_);
  if (!current.status().ok()) return current.status();
  const StatusOr<const cuda::CudaKernel*> kernel = FindOrLoad(current.context(), stream);
  if (!kernel.ok()) return kernel.status();
  return ErrorOf((*kernel)->Launch(slots, count, grid, stream));
}

StatusOr<const cuda::CudaKernel*> GpuVariant::FindOrLoad(cuda::Context context,
                                                         cuda::Stream stream) const {
  if (const cuda::CudaKernel* kernel = Find(context); kernel != nullptr) return kernel;
  const StatusOr<bool> is_captured = cuda::IsCaptured(gpu_->driver(), stream);
  if (!is_captured.ok()) return is_captured.status();
  if (*is_captured) {
    return Status(Code::kFailedPrecondition,
                  "the stream is being captured, and the kernel is not loaded in its context; "
                  "launch it once before the capture");
  }
  const StatusOr<const cuda::CudaKernel*> kernel = gpu_->Load(context, digest_, images_, shape_);
  if (!kernel.ok()) return kernel.status();
  // Two threads may both add it, which harms nobody.
  auto* place = new Place{context, *kernel, places_.load()};
  while (!places_.compare_exchange_weak(place->next, place, std::memory_order_acq_rel)) {
  }
  return *kernel;
}

Status GpuVariant::ErrorOf(cuda::Result result) const {
  return gpu_->driver().Error("cuLaunchKernel", result);
}

}  // namespace phobos
