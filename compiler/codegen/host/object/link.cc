// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/object/link.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

namespace phobos::compiler::host {
namespace {

absl::Status ErrnoError(std::string_view call, std::string_view what) {
  return absl::InternalError(
      absl::StrCat(std::string(call), "(", std::string(what), "): ", std::strerror(errno)));
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// A folder of this process alone, removed with the one file that may be in it.
class OutputFolder {
 public:
  static absl::StatusOr<OutputFolder> Make() {
    std::string names;
    // Memory first: lld maps its output file, and the file lives for a millisecond.
    const char* tmpdir = getenv("TMPDIR");
    for (std::string parent : {"/dev/shm", tmpdir != nullptr ? tmpdir : "", "/tmp"}) {
      if (parent.empty()) continue;
      std::string path = absl::StrCat(parent, "/phobos-link-XXXXXX");
      if (mkdtemp(path.data()) != nullptr) return OutputFolder(std::move(path));
      absl::StrAppend(&names, names.empty() ? "" : ", ", parent, " (", std::strerror(errno), ")");
    }
    return absl::InternalError(
        absl::StrCat("mkdtemp: no folder for the linker's output could be made in ", names,
                     "; make one of them writable or set TMPDIR"));
  }
  OutputFolder(OutputFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder() {
    if (path_.empty()) return;
    unlink(file().c_str());
    rmdir(path_.c_str());
  }
  std::string file() const { return path_ + "/kernel.so"; }

 private:
  explicit OutputFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

absl::Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoError("write", "object file");
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return ErrnoError("open", path);
  struct stat info;
  if (fstat(file.get(), &info) != 0) return ErrnoError("fstat", path);
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return ErrnoError("read", path);
    done += static_cast<size_t>(got);
  }
  return bytes;
}

absl::Status RunLld(const std::string& input, const std::string& output) {
  static absl::Mutex lld_mutex(absl::kConstInit);
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
  const lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) {
    return absl::InternalError(absl::StrCat("lld could not link the kernel: ", stream.str()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> LinkSharedObject(std::string_view object) {
  const FileDescriptor input(memfd_create("phobos-object", MFD_CLOEXEC));
  if (input.get() < 0) return ErrnoError("memfd_create", "object file");
  RETURN_IF_ERROR(WriteAll(input.get(), object));
  ASSIGN_OR_RETURN(const OutputFolder folder, OutputFolder::Make());
  RETURN_IF_ERROR(RunLld(absl::StrCat("/proc/self/fd/", input.get()), folder.file()));
  return ReadFile(folder.file());
}

}  // namespace phobos::compiler::host
