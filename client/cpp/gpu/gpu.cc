// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/gpu/gpu.h"

#include <algorithm>

#include "client/launch/cuda/capture.h"

namespace phobos {

bool IsGpu(const std::string& device_uuid) {
  return device_uuid.starts_with("GPU-") || device_uuid.starts_with("MIG-");
}

Gpu::~Gpu() {
  for (auto& [place, kernel] : kernels_) {
    const cuda::ScopedContext current(*driver_, place.first);
    kernel = nullptr;
  }
  if (primary_ != nullptr) (*driver_)->release_context(card_.device);
}

StatusOr<const cuda::CudaKernel*> Gpu::Load(cuda::Context context, const std::string& digest,
                                            const std::vector<std::string>& images,
                                            const cuda::KernelShape& shape) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<cuda::CudaKernel>& kernel = kernels_[{context, digest}];
  const cuda::RelaxedCapture relaxed(*driver_);
  Status status;
  for (size_t i = 0; i < images.size() && kernel == nullptr; ++i) {
    StatusOr<std::unique_ptr<cuda::CudaKernel>> loaded =
        cuda::CudaKernel::Load(driver_, images[i], shape);
    status = loaded.status();
    if (loaded.ok()) kernel = *std::move(loaded);
  }
  if (kernel == nullptr) return status;
  return static_cast<const cuda::CudaKernel*>(kernel.get());
}

StatusOr<cuda::Context> Gpu::Primary() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (primary_ == nullptr) {
    const cuda::RelaxedCapture relaxed(*driver_);
    const cuda::Result result = (*driver_)->retain_context(&primary_, card_.device);
    if (result != cuda::kSuccess) {
      primary_ = nullptr;
      return driver_->Error("cuDevicePrimaryCtxRetain", result);
    }
  }
  return primary_;
}

GpuContext::GpuContext(Gpu& gpu) : gpu_(gpu) {
  const cuda::CudaDriver& driver = gpu_.driver();
  cuda::Result result = driver->current_context(&context_);
  if (result != cuda::kSuccess) {
    status_ = driver.Error("cuCtxGetCurrent", result);
    return;
  }
  if (context_ != nullptr) {
    cuda::Device device = -1;
    result = driver->current_device(&device);
    if (result != cuda::kSuccess) status_ = driver.Error("cuCtxGetDevice", result);
    if (!status_.ok() || device == gpu_.card().device) return;
  }
  const StatusOr<cuda::Context> primary = gpu_.Primary();
  if (!primary.ok()) {
    status_ = primary.status();
    return;
  }
  context_ = *primary;
  result = driver->push_context(context_);
  is_pushed_ = result == cuda::kSuccess;
  status_ = driver.Error("cuCtxPushCurrent", result);
}

GpuContext::~GpuContext() {
  cuda::Context popped = nullptr;
  if (is_pushed_) gpu_.driver()->pop_context(&popped);
}

StatusOr<std::shared_ptr<Gpus>> Gpus::Open() {
  StatusOr<std::shared_ptr<const cuda::CudaDriver>> driver = cuda::CudaDriver::Load();
  if (!driver.ok()) return driver.status();
  StatusOr<std::vector<cuda::Card>> cards = cuda::ListCards(**driver);
  if (!cards.ok()) return cards.status();
  return std::shared_ptr<Gpus>(new Gpus(*std::move(driver), *std::move(cards)));
}

StatusOr<std::shared_ptr<Gpu>> Gpus::Find(const std::string& uuid) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = gpus_.find(uuid);
  if (found != gpus_.end()) return found->second;
  std::string known;
  for (const cuda::Card& card : cards_) {
    if (card.uuid.empty()) continue;
    known += (known.empty() ? "" : ", ") + card.uuid;
    if (card.uuid != uuid) continue;
    if (!card.unusable.empty()) return Status(Code::kFailedPrecondition, card.unusable);
    return gpus_[uuid] = std::make_shared<Gpu>(driver_, card);
  }
  return Status(Code::kNotFound, "this process sees no GPU " + uuid +
                                     "; it sees: " + (known.empty() ? "none" : known));
}

StatusOr<std::string> Gpus::UuidOf(int ordinal) const {
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= cards_.size()) {
    return Status(Code::kNotFound, "this process sees no card " + std::to_string(ordinal));
  }
  const cuda::Card& card = cards_[static_cast<size_t>(ordinal)];
  if (card.uuid.empty()) return Status(Code::kFailedPrecondition, card.unusable);
  return card.uuid;
}

Status Gpus::NoUsable() const {
  return Status(Code::kFailedPrecondition,
                cards_.empty() ? "this process sees no GPU" : cards_.front().unusable);
}

StatusOr<std::optional<int>> Gpus::CardOf(uint64_t address) {
  cuda::Context context = nullptr;
  const cuda::Result result = (*driver_)->current_context(&context);
  if (result != cuda::kSuccess) return driver_->Error("cuCtxGetCurrent", result);
  if (context != nullptr) return phobos::CardOf(*driver_, address);
  // Any card's context will do for the question.
  const auto usable = std::find_if(cards_.begin(), cards_.end(),
                                   [](const cuda::Card& card) { return card.unusable.empty(); });
  if (usable == cards_.end()) return NoUsable();
  const StatusOr<std::shared_ptr<Gpu>> gpu = Find(usable->uuid);
  if (!gpu.ok()) return gpu.status();
  const GpuContext current(**gpu);
  if (!current.status().ok()) return current.status();
  return phobos::CardOf(*driver_, address);
}

StatusOr<std::optional<int>> CardOf(const cuda::CudaDriver& driver, uint64_t address) {
  unsigned type = 0;
  cuda::Result result = driver->pointer_attribute(&type, cuda::kPointerMemoryType, address);
  // What the driver does not know is memory of the process's own.
  if (result == cuda::kInvalidValue) return std::optional<int>();
  if (result != cuda::kSuccess) return driver.Error("cuPointerGetAttribute", result);
  if (type != cuda::kMemoryDevice) return std::optional<int>();
  int ordinal = 0;
  result = driver->pointer_attribute(&ordinal, cuda::kPointerDeviceOrdinal, address);
  if (result != cuda::kSuccess) return driver.Error("cuPointerGetAttribute", result);
  return std::optional<int>(ordinal);
}

}  // namespace phobos
