// SPDX-License-Identifier: Apache-2.0
//
// Gpus: the cards that this process sees, and Gpu: one of them, with the kernels that are loaded on
// it. They use the contexts that the program has and make none but a card's primary one. Any
// thread; of no use to a forked child, whose calls say so.
#ifndef PHOBOS_CLIENT_CPP_GPU_GPU_H_
#define PHOBOS_CLIENT_CPP_GPU_GPU_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/launch/cuda/card.h"
#include "client/launch/cuda/driver.h"
#include "client/launch/cuda/kernel.h"
#include "client/launch/status.h"

namespace phobos {

namespace cuda = launch::cuda;

// Whether a device of the wire is a GPU.
bool IsGpu(const std::string& device_uuid);

class Gpu {
 public:
  Gpu(std::shared_ptr<const cuda::CudaDriver> driver, cuda::Card card)
      : driver_(std::move(driver)), card_(std::move(card)) {}
  // Unloads all kernels: no launch of one may be running, no graph that holds one may run again.
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const cuda::CudaDriver& driver() const { return *driver_; }
  const cuda::Card& card() const { return card_; }

  // The kernel of an image in a context of this card, which is current: loaded by the first such
  // call, and for as long as this object lives, because graphs may hold it. `digest` names the
  // kernel, and the first of `images` that loads is taken. Errors: CudaKernel::Load's of the last.
  StatusOr<const cuda::CudaKernel*> Load(cuda::Context context, const std::string& digest,
                                         const std::vector<std::string>& images,
                                         const cuda::KernelShape& shape);

  // The card's primary context, kept until this object goes.
  StatusOr<cuda::Context> Primary();

 private:
  const std::shared_ptr<const cuda::CudaDriver> driver_;
  const cuda::Card card_;
  std::mutex mutex_;
  cuda::Context primary_ = nullptr;  // guarded by mutex_
  // By context and digest; guarded by mutex_.
  std::map<std::pair<cuda::Context, std::string>, std::unique_ptr<cuda::CudaKernel>> kernels_;
};

// Keeps a context of a card current on this thread for as long as it lives: the caller's own where
// that is of this card, else the primary one.
class GpuContext {
 public:
  explicit GpuContext(Gpu& gpu);
  ~GpuContext();
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;

  const Status& status() const { return status_; }
  cuda::Context context() const { return context_; }  // REQUIRES: status() is OK

 private:
  Gpu& gpu_;
  Status status_;
  cuda::Context context_ = nullptr;
  bool is_pushed_ = false;
};

class Gpus {
 public:
  // Starts the driver, some 0.2 s the first time in a process. Unavailable: there is none, or no
  // card, and why.
  static StatusOr<std::shared_ptr<Gpus>> Open();

  // NotFound: no such card, and those there are; FailedPrecondition: one that cannot be used.
  StatusOr<std::shared_ptr<Gpu>> Find(const std::string& uuid);

  // NotFound: there is no such card; FailedPrecondition: it cannot be read, and why.
  StatusOr<std::string> UuidOf(int ordinal) const;

  // The ordinal of the card whose memory an address is; nothing: it is the host's.
  StatusOr<std::optional<int>> CardOf(uint64_t address);

 private:
  Gpus(std::shared_ptr<const cuda::CudaDriver> driver, std::vector<cuda::Card> cards)
      : driver_(std::move(driver)), cards_(std::move(cards)) {}

  const std::shared_ptr<const cuda::CudaDriver> driver_;
  Status NoUsable() const;  // why no card can be used

  const std::vector<cuda::Card> cards_;  // by ordinal
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Gpu>> gpus_;  // guarded by mutex_
};

// The ordinal of the card whose memory an address is; nothing: it is the host's. REQUIRES: a
// context is current.
StatusOr<std::optional<int>> CardOf(const cuda::CudaDriver& driver, uint64_t address);

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_GPU_GPU_H_
