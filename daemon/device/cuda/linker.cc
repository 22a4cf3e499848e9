// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cuda/linker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "base/read_to_end.h"
#include "base/status_macros.h"
#include "client/launch/cuda/cubin.h"
#include "daemon/device/cuda/status.h"

namespace phobos::device {
namespace {

namespace cuda = launch::cuda;

constexpr size_t kLogBytes = 8192;
// Of answers that are there and not taken. More of them, such as those of jobs that were cancelled,
// are let go, oldest first: they are on disk, or are linked again.
constexpr size_t kMostAnswerBytes = size_t{32} << 20;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes;
  const int code = file.ok() ? ReadToEnd(file.get(), bytes) : errno;
  if (code == 0) return bytes;
  return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", strerror(code)));
}

// Under a temporary name, then renamed: whoever sees the name sees the whole file. Where the disk
// refuses, the cubin is used and not kept.
void KeepFile(const std::string& path, const std::string& bytes) {
  // The artifacts' folder is cleaned of such names (cache/artifact_store.cc), when a process has
  // ended before it came to rename one.
  const size_t name = path.find_last_of('/') + 1;
  const std::string temporary =
      absl::StrCat(path.substr(0, name), ".writing-", getpid(), "-", path.substr(name));
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

size_t Linker::Task::Bytes() const {
  return cubin->ok() ? (*cubin)->size() : cubin->status().message().size();
}

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
  const auto found = tasks_.find(ptx_path);
  if (found == tasks_.end()) {
    Begin(ptx_path, cubin_path);
  } else if (found->second->cubin != nullptr && !found->second->cubin->ok()) {
    // Nobody took the error, and what it was about may have changed.
    Forget(found->second);
    Begin(ptx_path, cubin_path);
  }
}

absl::StatusOr<std::string> Linker::Take(const std::string& ptx_path,
                                         const std::string& cubin_path) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto found = tasks_.find(ptx_path);
  const std::shared_ptr<Task> task =
      found != tasks_.end() ? found->second : Begin(ptx_path, cubin_path);
  changed_.wait(lock, [&] { return task->cubin != nullptr; });
  Forget(task);
  return *std::move(task->cubin);
}

std::shared_ptr<Linker::Task> Linker::Begin(const std::string& ptx_path,
                                            const std::string& cubin_path) {
  auto task = std::make_shared<Task>(Task{ptx_path, cubin_path, nullptr});
  tasks_[ptx_path] = task;
  queue_.push_back(task);
  if (threads_.size() < most_threads_) threads_.emplace_back([this] { Serve(); });
  changed_.notify_all();
  return task;
}

// By value: callers name what lies in the containers that it is erased from.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void Linker::Forget(std::shared_ptr<Task> task) {
  const auto named = tasks_.find(task->ptx_path);
  if (named != tasks_.end() && named->second == task) tasks_.erase(named);
  if (std::erase(answered_, task) > 0) answer_bytes_ -= task->Bytes();
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
    answered_.push_back(task);
    answer_bytes_ += task->Bytes();
    while (answer_bytes_ > kMostAnswerBytes && answered_.size() > 1) Forget(answered_.front());
    changed_.notify_all();
  }
}

absl::StatusOr<std::string> Linker::Link(const Task& task) const {
  ASSIGN_OR_RETURN(std::string ptx, ReadFile(task.ptx_path));
  ASSIGN_OR_RETURN(std::string cubin, device::Link(*driver_).Run(std::move(ptx)));
  if (!task.cubin_path.empty()) KeepFile(task.cubin_path, cuda::SealCubin(cubin));
  return cubin;
}

}  // namespace phobos::device
