// SPDX-License-Identifier: Apache-2.0
#include "daemon/process/cache_folder.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "daemon/error/error.h"

namespace phobos::process {
namespace {

// Network file systems by statfs's f_type: SQLite's locks and shared memory do not hold over them.
// FUSE is among them because most of what is mounted by it is remote.
constexpr uint32_t kNetworkTypes[] = {
    NFS_SUPER_MAGIC,         SMB_SUPER_MAGIC,       0xFF534D42 /* CIFS */,   0xFE534D42 /* SMB2 */,
    0x01021997 /* 9P */,     0x00C36400 /* Ceph */, 0x0BD00BD0 /* Lustre */, 0x47504653 /* GPFS */,
    0x19830326 /* BeeGFS */, AFS_SUPER_MAGIC,       CODA_SUPER_MAGIC,        0x65735546 /* FUSE */,
};

constexpr char kAnother[] =
    "start the daemon with another --cache-dir (or PHOBOS_KERNEL_CACHE_DIR) on a local disk";

// The cache cannot be at `path`: the call's errno, and what to do.
absl::Status NoCache(int code, const std::string& call, const std::string& path) {
  const absl::Status status = error::FromErrno(code, call, path);
  if (!error::DetailOf(status).remedy().empty()) return status;
  return error::Make(status.code(), tuner::v1::ERROR_REASON_MACHINE, std::string(status.message()),
                     kAnother);
}

absl::Status MakeFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    struct stat found = {};
    if (mkdir(part.c_str(), 0755) != 0) {
      if (errno != EEXIST) return NoCache(errno, "mkdir", part);
      // Also what a link leads to.
      if (stat(part.c_str(), &found) != 0) return NoCache(errno, "stat", part);
      if (!S_ISDIR(found.st_mode)) return NoCache(ENOTDIR, "mkdir", part);
    }
    if (slash == std::string::npos) return absl::OkStatus();
  }
}

std::string LockPath(const std::string& folder) { return absl::StrCat(folder, "/LOCK"); }

absl::Status WriteOwner(int fd, const std::string& path, const std::string& socket) {
  const std::string line = absl::StrCat(socket, "\n", getpid(), "\n");
  if (ftruncate(fd, 0) != 0 || pwrite(fd, line.data(), line.size(), 0) != ssize_t(line.size())) {
    return NoCache(errno, "write", path);
  }
  return absl::OkStatus();
}

// Whoever follows this must not kill anybody else: 0 would be their own process group.
std::string HowToEnd(const CacheOwner& owner) {
  return owner.pid > 0 ? absl::StrCat("end it with: kill ", owner.pid) : "end it";
}

}  // namespace

bool IsOnNetwork(const std::string& path) {
  struct statfs found = {};
  if (statfs(path.c_str(), &found) != 0) return false;
  return std::find(std::begin(kNetworkTypes), std::end(kNetworkTypes),
                   static_cast<uint32_t>(found.f_type)) != std::end(kNetworkTypes);
}

absl::StatusOr<CacheFolder> ChooseCacheFolder(const std::string& wanted, const std::string& instead,
                                              const IsNetworkFileSystem& is_network) {
  RETURN_IF_ERROR(MakeFolders(wanted));
  if (!is_network(wanted)) return CacheFolder{wanted, ""};
  RETURN_IF_ERROR(PreparePrivateFolder(instead, kAnother));
  return CacheFolder{instead,
                     absl::StrCat("the cache is in ", instead, " because ", wanted,
                                  " is on a network file system, where a database is not safe; "
                                  "to have it elsewhere, ",
                                  kAnother)};
}

absl::StatusOr<CacheLock> CacheLock::Take(const std::string& folder, const std::string& socket,
                                          absl::Duration patience) {
  const std::string path = LockPath(folder);
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.ok()) return NoCache(errno, "open", path);
  const absl::Time give_up = absl::Now() + patience;
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return NoCache(errno, "flock", path);
    }
    const CacheOwner owner = OwnerOf(folder);
    if (!owner.socket.empty() && IsServed(owner.socket)) {
      return absl::AlreadyExistsError(
          absl::StrCat("the daemon at ", owner.socket, " has the cache ", folder,
                       "; use that one, ", HowToEnd(owner), ", or choose another --cache-dir"));
    }
    if (absl::Now() > give_up) {
      return absl::UnavailableError(absl::StrCat("a process that does not answer holds ", path,
                                                 "; find it with: fuser ", path));
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  RETURN_IF_ERROR(WriteOwner(fd.get(), path, socket));
  return CacheLock(std::move(fd), path);
}

CacheLock::CacheLock(Fd fd, std::string path)
    : fd_(std::move(fd)), path_(std::move(path)), file_(FileOf(fd_.get())) {}

bool CacheLock::IsInPlace() const { return FileAt(path_) == file_; }

CacheOwner OwnerOf(const std::string& folder) {
  std::ifstream file(LockPath(folder));
  CacheOwner owner;
  if (std::getline(file, owner.socket)) file >> owner.pid;
  return owner;
}

}  // namespace phobos::process
