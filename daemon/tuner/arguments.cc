// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/arguments.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/parallel.h"
#include "base/status_macros.h"
#include "daemon/error/error.h"

namespace phobos::tuner {
namespace {

constexpr int64_t kBlockMultiple = int64_t{64} << 10;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, since Linux 5.14

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// A sealed memfd and where this process has it mapped.
struct Block {
  int fd = -1;
  std::byte* data = nullptr;
  int64_t bytes = 0;
  uid_t uid = 0;  // whose bytes are or were in it
};

absl::StatusOr<Block> MakeBlock(int64_t bytes, uid_t uid) {
  Block block = {memfd_create("phobos-arguments", MFD_CLOEXEC | MFD_ALLOW_SEALING), nullptr, bytes,
                 uid};
  if (block.fd < 0) return error::FromErrno(errno, "memfd_create");
  // The pages are had now: missing ones would be a signal in the middle of a copy.
  const bool sized = ftruncate(block.fd, bytes) == 0 && fallocate(block.fd, 0, 0, bytes) == 0 &&
                     fcntl(block.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  void* address = MAP_FAILED;
  if (sized) {
    address =
        mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, block.fd, 0);
  }
  if (address == MAP_FAILED) {
    const int code = errno;
    close(block.fd);
    return error::Make(
        absl::StatusCode::kResourceExhausted, tuner::v1::ERROR_REASON_OUT_OF_MEMORY,
        absl::StrCat("no shared memory of ", bytes, " bytes for the arguments: ", strerror(code)),
        "tune with smaller arguments, or raise the limit of memory that the daemon runs under");
  }
  block.data = static_cast<std::byte*>(address);
  return block;
}

void FreeBlock(const Block& block) {
  munmap(block.data, static_cast<size_t>(block.bytes));
  close(block.fd);
}

}  // namespace

struct CopyPool::State {
  explicit State(int64_t limit) : limit_bytes(limit) {}
  ~State() {
    for (const Block& block : idle) FreeBlock(block);
  }

  absl::StatusOr<Block> Take(int64_t bytes, uid_t uid) {
    const int64_t size = RoundUp(std::max<int64_t>(bytes, 1), kBlockMultiple);
    const absl::MutexLock lock(&mutex);
    auto best = idle.end();
    for (auto block = idle.begin(); block != idle.end(); ++block) {
      const bool fits = block->uid == uid && block->bytes >= size;
      if (fits && (best == idle.end() || block->bytes < best->bytes)) best = block;
    }
    if (best != idle.end()) {
      const Block block = *best;
      idle.erase(best);
      return block;
    }
    while (!idle.empty() && held_bytes + size > limit_bytes) {
      held_bytes -= idle.back().bytes;
      FreeBlock(idle.back());
      idle.pop_back();
    }
    if (held_bytes + size > limit_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the tune's arguments and expected answers need ", size, " more bytes; of ",
                       limit_bytes, " that the daemon may copy, ", held_bytes,
                       " are in use: tune with smaller arguments, wait, or raise --copy-bytes"));
    }
    ASSIGN_OR_RETURN(const Block block, MakeBlock(size, uid));
    held_bytes += size;
    return block;
  }

  void Give(const Block& block) {
    const absl::MutexLock lock(&mutex);
    idle.push_back(block);
  }

  void Trim() {
    const absl::MutexLock lock(&mutex);
    for (const Block& block : idle) {
      held_bytes -= block.bytes;
      FreeBlock(block);
    }
    idle.clear();
  }

  uint64_t NewToken() {
    const absl::MutexLock lock(&mutex);
    return ++last_token;
  }

  const int64_t limit_bytes;
  absl::Mutex mutex;
  uint64_t last_token ABSL_GUARDED_BY(mutex) = 0;
  std::vector<Block> idle ABSL_GUARDED_BY(mutex);
  int64_t held_bytes ABSL_GUARDED_BY(mutex) = 0;  // in use and idle
};

CopyPool::CopyPool(int64_t limit_bytes) : state_(std::make_shared<State>(limit_bytes)) {}

CopyPool::~CopyPool() = default;

void CopyPool::Prepare(int64_t bytes, uid_t uid) {
  const absl::StatusOr<Block> block = state_->Take(bytes, uid);
  if (!block.ok()) return;
  // Not an error where the system does not know it: the pages are mapped when they are written.
  madvise(block->data, static_cast<size_t>(block->bytes), kPopulateWrite);
  state_->Give(*block);
}

void CopyPool::Trim() { state_->Trim(); }

int64_t CopyPool::held_bytes() const {
  const absl::MutexLock lock(&state_->mutex);
  return state_->held_bytes;
}

Arguments::Arguments(std::shared_ptr<CopyPool::State> pool, uid_t uid)
    : pool_(std::move(pool)), uid_(uid), token_(pool_->NewToken()) {}

worker::PreloadCall Arguments::PreloadCall() const {
  worker::PreloadCall call;
  call.set_token(token_);
  for (const Copied& copied : tensors_) {
    worker::PreloadedTensor& tensor = *call.add_tensors();
    tensor.set_offset_bytes(copied.offset_bytes);
    tensor.set_bytes(copied.bytes);
    tensor.set_address_mod_256(copied.address_mod_256);
  }
  return call;
}

absl::StatusOr<std::unique_ptr<Arguments>> Arguments::Copy(
    CopyPool& pool, uid_t uid, const std::vector<TensorBytes>& tensors) {
  std::unique_ptr<Arguments> arguments(new Arguments(pool.state_, uid));
  int64_t total = 0;
  for (const TensorBytes& tensor : tensors) {
    Copied copied;
    copied.parameter = tensor.parameter;
    copied.offset_bytes = total;
    copied.bytes = tensor.foreign.cuda_ipc_handle.empty()
                       ? static_cast<int64_t>(tensor.bytes.size())
                       : tensor.foreign.bytes;
    copied.address_mod_256 = tensor.address_mod_256;
    total = RoundUp(total + copied.bytes, kTensorAlignment);
    arguments->tensors_.push_back(std::move(copied));
  }
  ASSIGN_OR_RETURN(const Block block, arguments->pool_->Take(total, uid));
  arguments->memory_.push_back({block.fd, block.bytes});
  arguments->mapped_.push_back(block.data);
  for (size_t i = 0; i < tensors.size(); ++i) {
    CopyBytes(block.data + arguments->tensors_[i].offset_bytes, tensors[i].bytes.data(),
              static_cast<int64_t>(tensors[i].bytes.size()));
  }
  return arguments;
}

worker::FetchCall Arguments::FetchCall(const std::vector<TensorBytes>& tensors) const {
  worker::FetchCall call;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ForeignBytes& foreign = tensors[i].foreign;
    if (foreign.cuda_ipc_handle.empty()) continue;
    worker::ForeignTensor& tensor = *call.add_tensors();
    tensor.set_parameter(tensors[i].parameter);
    tensor.set_cuda_ipc_handle(foreign.cuda_ipc_handle);
    tensor.set_offset_bytes(foreign.offset_bytes);
    tensor.set_bytes(foreign.bytes);
    tensor.set_to_offset_bytes(tensors_[i].offset_bytes);
  }
  *call.mutable_preload() = PreloadCall();
  return call;
}

Arguments::~Arguments() {
  for (size_t i = 0; i < memory_.size(); ++i) {
    pool_->Give({memory_[i].fd, mapped_[i], memory_[i].bytes, uid_});
  }
}

absl::StatusOr<Arguments::Copied*> Arguments::Find(const TensorBytes& tensor) {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const Copied& copied) {
    return copied.parameter == tensor.parameter;
  });
  if (found == tensors_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", tensor.parameter, "\" is no tensor of this tune"));
  }
  if (found->bytes != static_cast<int64_t>(tensor.bytes.size())) {
    return absl::InvalidArgumentError(absl::StrCat("new bytes for ", tensor.parameter, ": ",
                                                   tensor.bytes.size(), ", but it has ",
                                                   found->bytes));
  }
  return &*found;
}

absl::Status Arguments::CopyExpected(const std::vector<TensorBytes>& expected) {
  std::vector<Copied*> targets;
  int64_t total = 0;
  for (const TensorBytes& tensor : expected) {
    ASSIGN_OR_RETURN(Copied * target, Find(tensor));
    targets.push_back(target);
    total = RoundUp(total + target->bytes, kTensorAlignment);
  }
  ASSIGN_OR_RETURN(const Block block, pool_->Take(total, uid_));
  const int memory = static_cast<int>(memory_.size());
  memory_.push_back({block.fd, block.bytes});
  mapped_.push_back(block.data);
  int64_t offset = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    CopyBytes(block.data + offset, expected[i].bytes.data(),
              static_cast<int64_t>(expected[i].bytes.size()));
    targets[i]->expected_memory = memory;
    targets[i]->expected_offset_bytes = offset;
    offset = RoundUp(offset + targets[i]->bytes, kTensorAlignment);
  }
  return absl::OkStatus();
}

absl::Status Arguments::Replace(const std::vector<TensorBytes>& tensors) {
  if (!tensors.empty()) token_ = pool_->NewToken();
  for (const TensorBytes& tensor : tensors) {
    ASSIGN_OR_RETURN(const Copied* target, Find(tensor));
    CopyBytes(mapped_[static_cast<size_t>(target->memory)] + target->offset_bytes,
              tensor.bytes.data(), static_cast<int64_t>(tensor.bytes.size()));
  }
  return absl::OkStatus();
}

}  // namespace phobos::tuner
