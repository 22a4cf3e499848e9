// SPDX-License-Identifier: Apache-2.0
//
// GpuVariant: a variant's code, loaded once in each context that it is launched in; what a plan of
// a GPU launches. Any thread.
#ifndef PHOBOS_CLIENT_CPP_GPU_VARIANT_H_
#define PHOBOS_CLIENT_CPP_GPU_VARIANT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cpp/gpu/gpu.h"
#include "client/launch/cuda/kernel.h"
#include "client/launch/grid.h"
#include "client/launch/status.h"

namespace phobos {

class GpuVariant {
 public:
  // `images`: cubins or PTX, the first that loads is taken; `digest` names the kernel.
  GpuVariant(std::shared_ptr<Gpu> gpu, std::string digest, std::vector<std::string> images,
             cuda::KernelShape shape);
  ~GpuVariant();
  GpuVariant(const GpuVariant&) = delete;
  GpuVariant& operator=(const GpuVariant&) = delete;

  Gpu& gpu() const { return *gpu_; }

  // Loads it in the context that a launch from this thread would use, where it is not yet.
  // FailedPrecondition: `stream` is being captured, and it is not loaded; the rest as
  // CudaKernel::Load.
  Status Load(cuda::Stream stream) const;

  // Queues a launch on the caller's stream, in the caller's context, and returns. In a context
  // where it is not loaded, as Load. Errors: the driver's. REQUIRES: as CudaKernel::Launch.
  Status Launch(const uint64_t* slots, size_t count, const launch::Grid& grid,
                cuda::Stream stream) const;

 private:
  // Where it is loaded; a list that only grows, so that it is read without a lock.
  struct Place {
    cuda::Context context;
    const cuda::CudaKernel* kernel;  // the Gpu's
    const Place* next;
  };
  const cuda::CudaKernel* Find(cuda::Context context) const {
    const Place* place = places_.load(std::memory_order_acquire);
    while (place != nullptr && place->context != context) place = place->next;
    return place == nullptr ? nullptr : place->kernel;
  }
  // REQUIRES: the context is current.
  StatusOr<const cuda::CudaKernel*> FindOrLoad(cuda::Context context, cuda::Stream stream) const;
  Status LaunchElsewhere(const uint64_t* slots, size_t count, const launch::Grid& grid,
                         cuda::Stream stream) const;
  Status ErrorOf(cuda::Result result) const;

  const std::shared_ptr<Gpu> gpu_;
  const std::string digest_;
  const std::vector<std::string> images_;
  const cuda::KernelShape shape_;
  mutable std::atomic<const Place*> places_ = nullptr;
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_GPU_VARIANT_H_
