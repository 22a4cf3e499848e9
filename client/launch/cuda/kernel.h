// SPDX-License-Identifier: Apache-2.0
//
// CudaKernel: one artifact of a GPU chip, loaded in one context. The daemon's worker and the
// clients both launch through here, so what is timed is what runs. The ABI is at Artifact in
// proto/phobos/compiler/v1/manifest.proto. Launch: any thread in which the context is current.
#ifndef PHOBOS_CLIENT_LAUNCH_CUDA_KERNEL_H_
#define PHOBOS_CLIENT_LAUNCH_CUDA_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "client/launch/cuda/driver.h"
#include "client/launch/grid.h"
#include "client/launch/status.h"

namespace phobos::launch::cuda {

// What must be known of an artifact to launch it.
struct KernelShape {
  std::string entry;                 // name of the function
  int threads = 0;                   // of a block, in x
  int64_t dynamic_shared_bytes = 0;  // of a block, on top of what the image says
};

class CudaKernel {
 public:
  // Loads an image, a cubin or the text of PTX, into the current context. May wait for work that
  // runs in the context: not for a thread that captures a stream. FailedPrecondition: the card
  // cannot run it (threads, shared memory, PTX too new), with the numbers; InvalidArgument: the
  // image is bad; NotFound: no such entry; the rest as CudaDriver::Error.
  static StatusOr<std::unique_ptr<CudaKernel>> Load(std::shared_ptr<const CudaDriver> driver,
                                                    std::string_view image,
                                                    const KernelShape& shape);
  // Unloads it, in whatever context is current; in a forked child, or when its context is lost,
  // nothing happens. No launch of it may be running.
  ~CudaKernel();
  CudaKernel(const CudaKernel&) = delete;
  CudaKernel& operator=(const CudaKernel&) = delete;

  // Queues one launch and returns. `slots` are copied before it does. No allocation, no lock of
  // ours, no lookup. REQUIRES: the context of Load is current; BlockCount(grid) is ok and > 0;
  // `count` is the number of the kernel's slots.
  Result Launch(const uint64_t* slots, size_t count, const Grid& grid, Stream stream) const {
    size_t bytes = count * sizeof(uint64_t);
    // All parameters are 8 bytes: the slots are the block of memory that the driver copies.
    void* extra[] = {kLaunchBuffer, const_cast<uint64_t*>(slots), kLaunchBufferBytes, &bytes,
                     kLaunchEnd};
    return launch_(function_, static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
                   static_cast<unsigned>(grid.z), threads_, 1, 1, shared_bytes_, stream, nullptr,
                   extra);
  }

  // What the driver says of the loaded code, a thread or a block.
  int registers() const { return registers_; }
  int64_t local_bytes() const { return local_bytes_; }  // spills and arrays
  int64_t shared_bytes() const { return static_shared_bytes_ + shared_bytes_; }

 private:
  CudaKernel(std::shared_ptr<const CudaDriver> driver, Module module);
  Status Find(const KernelShape& shape);

  const std::shared_ptr<const CudaDriver> driver_;
  const Module module_;
  const decltype(Functions::launch) launch_;
  Function function_ = nullptr;
  unsigned threads_ = 0;
  unsigned shared_bytes_ = 0;  // dynamic
  int registers_ = 0;
  int64_t local_bytes_ = 0;
  int64_t static_shared_bytes_ = 0;
};

}  // namespace phobos::launch::cuda

#endif  // PHOBOS_CLIENT_LAUNCH_CUDA_KERNEL_H_
