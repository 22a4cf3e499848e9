// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/object/link.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/read_to_end.h"
#include "base/status_macros.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

namespace phobos::compiler::host {
namespace {

// What a machine may lack for a link. lld tells of it in words alone.
constexpr int kLacks[] = {EMFILE, ENFILE, ENOMEM, EAGAIN, ENOSPC, EDQUOT};

constexpr size_t kReaderStackBytes = size_t{256} << 10;

absl::Status SystemError(std::string_view call, std::string_view what, int error) {
  return absl::UnavailableError(
      absl::StrCat(std::string(call), " ", std::string(what), ": ", std::strerror(error)));
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  int get() const { return fd_; }
  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  int fd_;
};

// The reading end of a pipe, and what came out of it.
struct Stream {
  FileDescriptor from;
  std::string bytes;
  int error = 0;
};

// Takes a share in the stream, which it may outlive.
void* Drain(void* argument) {
  const std::unique_ptr<std::shared_ptr<Stream>> owned(
      static_cast<std::shared_ptr<Stream>*>(argument));
  Stream& stream = **owned;
  stream.error = ReadToEnd(stream.from.get(), stream.bytes);
  return nullptr;
}

absl::StatusOr<pthread_t> StartReader(const std::shared_ptr<Stream>& stream) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kReaderStackBytes);
  pthread_t reader;
  auto share = std::make_unique<std::shared_ptr<Stream>>(stream);
  const int error = pthread_create(&reader, &attributes, Drain, share.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) return SystemError("pthread_create", "the linker's output", error);
  static_cast<void>(share.release());  // the reader's now
  return reader;
}

absl::Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return SystemError("write", "object file", errno);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// Errors: Unavailable, Internal and Aborted, as LinkSharedObject.
absl::Status RunLld(const std::string& input, const std::string& output) {
  static absl::Mutex lld_mutex(absl::kConstInit);
  static bool is_lost = false;  // under the mutex
  const std::vector<const char*> arguments = {"ld.lld",
                                              "-shared",
                                              "-nostdlib",
                                              "--no-undefined",
                                              "--gc-sections",
                                              "--strip-all",
                                              "--build-id=none",
                                              "--hash-style=gnu",
                                              "--threads=1",
                                              "--no-rosegment",
                                              "-znoseparate-code",
                                              "-znognustack",
                                              "-znow",
                                              "-o",
                                              output.c_str(),
                                              input.c_str()};
  std::string words;
  llvm::raw_string_ostream stream(words);
  absl::MutexLock lock(&lld_mutex);
  if (is_lost) return absl::AbortedError("lld broke off an earlier link and cannot be used again");
  const lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  is_lost = !result.canRunAgain;
  if (result.retCode == 0 && result.canRunAgain) return absl::OkStatus();
  for (const int lack : kLacks) {
    if (absl::StrContains(stream.str(), std::strerror(lack))) {
      return SystemError("link", "kernel", lack);
    }
  }
  const std::string what =
      absl::StrCat("lld could not link the kernel (status ", result.retCode, "): ", stream.str());
  return is_lost ? absl::AbortedError(what) : absl::InternalError(what);
}

// Links into a pipe. A file would have to lie on a disk with room for it: lld maps its output, and
// a page that the disk has no room for ends the process. Nothing of a pipe stays behind either.
absl::StatusOr<std::string> LinkIntoPipe(const std::string& input) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe2", "the linker's output", errno);
  const auto stream = std::make_shared<Stream>(Stream{FileDescriptor(ends[0]), "", 0});
  absl::Status linked;
  pthread_t reader;
  {
    const FileDescriptor into(ends[1]);
    ASSIGN_OR_RETURN(reader, StartReader(stream));
    linked = RunLld(input, into.path());
  }
  if (!linked.ok()) {
    // A link that was broken off may have left the pipe open, and then the reader waits for ever.
    pthread_detach(reader);
    return linked;
  }
  pthread_join(reader, nullptr);
  if (stream->error != 0) return SystemError("read", "the linker's output", stream->error);
  return std::move(stream->bytes);
}

}  // namespace

absl::StatusOr<std::string> LinkSharedObject(std::string_view object) {
  const FileDescriptor input(memfd_create("phobos-object", MFD_CLOEXEC));
  if (input.get() < 0) return SystemError("memfd_create", "object file", errno);
  RETURN_IF_ERROR(WriteAll(input.get(), object));
  return LinkIntoPipe(input.path());
}

}  // namespace phobos::compiler::host
