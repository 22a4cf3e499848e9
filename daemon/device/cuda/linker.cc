// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cuda/linker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "daemon/device/cuda/status.h"

namespace phobos::device {
namespace {

namespace cuda = launch::cuda;

constexpr size_t kLogBytes = 8192;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// Under a temporary name, then renamed: whoever sees the name sees the whole file. Where the disk
// refuses, the cubin is used and not kept.
void KeepFile(const std::string& path, const std::string& bytes) {
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  std::ofstream file(temporary, std::ios::binary);
  file << bytes;
  file.close();
  if (!file || rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

// One link of the driver, with a log of what it says.
class Link {
 public:
  explicit Link(const cuda::CudaDriver& driver) : driver_(driver), log_(kLogBytes, '\0') {}
  ~Link() {
    if (state_ != nullptr) driver_->destroy_link(state_);
  }

  absl::StatusOr<std::string> Run(std::string ptx) {
    cuda::JitOption options[] = {cuda::kJitErrorLogBuffer, cuda::kJitErrorLogBufferBytes};
    void* values[] = {log_.data(), reinterpret_cast<void*>(log_.size() - 1)};
    RETURN_IF_ERROR(Check("cuLinkCreate", driver_->create_link(2, options, values, &state_)));
    // The size counts the closing zero byte, which c_str() has.
    RETURN_IF_ERROR(
        Check("cuLinkAddData", driver_->link_add(state_, cuda::kInputPtx, ptx.data(),
                                                 ptx.size() + 1, "kernel", 0, nullptr, nullptr)));
    void* cubin = nullptr;
    size_t size = 0;
    RETURN_IF_ERROR(Check("cuLinkComplete", driver_->link_complete(state_, &cubin, &size)));
    return std::string(static_cast<const char*>(cubin), size);
  }

 private:
  absl::Status Check(const char* call, cuda::Result result) const {
    return FromLaunch(driver_.Error(call, result, log_.data()));
  }

  const cuda::CudaDriver& driver_;
  std::vector<char> log_;
  cuda::LinkState state_ = nullptr;
};

}  // namespace

Linker::Linker(std::shared_ptr<const cuda::CudaDriver> driver, cuda::Context context, int threads)
    : driver_(std::move(driver)), context_(context), most_threads_(static_cast<size_t>(threads)) {}

Linker::~Linker() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_ending_ = true;
    queue_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Linker::Expect(const std::string& ptx_path, const std::string& cubin_path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto& task = tasks_[ptx_path];
  if (task != nullptr) return;
  task = std::make_shared<Task>(Task{ptx_path, cubin_path, nullptr});
  queue_.push_back(task);
  if (threads_.size() < most_threads_) threads_.emplace_back([this] { Serve(); });
  changed_.notify_all();
}

absl::StatusOr<std::string> Linker::Take(const std::string& ptx_path,
                                         const std::string& cubin_path) {
  Expect(ptx_path, cubin_path);
  std::unique_lock<std::mutex> lock(mutex_);
  const std::shared_ptr<Task> task = tasks_[ptx_path];
  changed_.wait(lock, [&] { return task->cubin != nullptr; });
  tasks_.erase(ptx_path);
  return *std::move(task->cubin);
}

void Linker::Serve() {
  const cuda::ScopedContext current(*driver_, context_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ending_ || !queue_.empty(); });
    if (is_ending_) return;
    const std::shared_ptr<Task> task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    auto cubin = std::make_unique<absl::StatusOr<std::string>>(Link(*task));
    lock.lock();
    task->cubin = std::move(cubin);
    changed_.notify_all();
  }
}

absl::StatusOr<std::string> Linker::Link(const Task& task) const {
  ASSIGN_OR_RETURN(std::string ptx, ReadFile(task.ptx_path));
  ASSIGN_OR_RETURN(std::string cubin, device::Link(*driver_).Run(std::move(ptx)));
  if (!task.cubin_path.empty()) KeepFile(task.cubin_path, cubin);
  return cubin;
}

}  // namespace phobos::device
