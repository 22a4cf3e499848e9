// SPDX-License-Identifier: Apache-2.0
#include "daemon/process/socket.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace phobos::process {
namespace {

constexpr int kFirstInherited = 3;  // SD_LISTEN_FDS_START
constexpr int kBacklog = 512;
constexpr char kPrivateSocket[] =
    "give the private socket a folder of your own with mode 0700: mkdir -m 700 DIR, and "
    "PHOBOS_SOCKET=DIR/tuner.sock or --socket";

std::string FolderOf(const std::string& path) {
  return path.substr(0, std::max<size_t>(path.rfind('/'), 1));
}

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the socket's path ", path, " is longer than ",
                                                   sizeof(address.sun_path) - 1,
                                                   " bytes; choose a shorter one with --socket"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

absl::Status GiveToGroup(const std::string& path) {
  if (chmod(path.c_str(), 0660) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("chmod ", path));
  }
  const group* phobos = getgrnam("phobos");
  // Without the group or the right to give it away the socket stays with this process's own group.
  if (phobos == nullptr || geteuid() != 0) return absl::OkStatus();
  if (chown(path.c_str(), static_cast<uid_t>(-1), phobos->gr_gid) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("chown ", path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PreparePrivateFolder(const std::string& folder, const std::string& instead) {
  const bool is_made_by_us = absl::EndsWith(folder, absl::StrCat("/phobos-", geteuid()));
  const auto refused = [&](const std::string& what, const std::string& mending) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, what, "; ", is_made_by_us ? absl::StrCat(mending, ", or ") : "", instead));
  };
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("mkdir ", folder));
  }
  struct stat found = {};
  if (lstat(folder.c_str(), &found) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("lstat ", folder));
  }
  if (!S_ISDIR(found.st_mode)) {
    return refused(" is not a folder", "remove it");
  }
  if (found.st_uid != geteuid()) {
    return refused(absl::StrCat(" belongs to uid ", found.st_uid, ", not to uid ", geteuid()),
                   "remove it");
  }
  if ((found.st_mode & 077) != 0) {
    return refused(" is open to other users", absl::StrCat("run: chmod 700 ", folder));
  }
  return absl::OkStatus();
}

absl::StatusOr<Fd> Listen(const std::string& path, bool is_private) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  if (is_private) RETURN_IF_ERROR(PreparePrivateFolder(FolderOf(path), kPrivateSocket));
  if (IsServed(path)) {
    return absl::AlreadyExistsError(
        absl::StrCat("another daemon listens on ", path, "; stop it, or choose another --socket"));
  }
  struct stat found = {};
  if (lstat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " exists and is no socket; remove it, or choose another path with --socket"));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return absl::ErrnoToStatus(errno, absl::StrCat("unlink ", path));
  }
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.ok()) return absl::ErrnoToStatus(errno, "socket");
  // Bound with no rights for others, so that nobody comes in before they are set.
  const mode_t before = umask(0177);
  const int bound = bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int bind_errno = errno;
  umask(before);
  if (bound != 0) return absl::ErrnoToStatus(bind_errno, absl::StrCat("bind ", path));
  if (!is_private) RETURN_IF_ERROR(GiveToGroup(path));
  if (listen(fd.get(), kBacklog) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("listen ", path));
  return fd;
}

absl::StatusOr<std::vector<Fd>> InheritedSockets(
    const std::function<std::string(const char*)>& environment) {
  std::vector<Fd> sockets;
  int64_t pid = 0;
  int count = 0;
  if (!absl::SimpleAtoi(environment("LISTEN_PID"), &pid) || pid != getpid()) return sockets;
  if (!absl::SimpleAtoi(environment("LISTEN_FDS"), &count)) return sockets;
  for (int fd = kFirstInherited; fd < kFirstInherited + count; ++fd) {
    int is_listening = 0;
    int domain = 0;
    socklen_t size = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || is_listening == 0 ||
        domain != AF_UNIX) {
      return absl::InvalidArgumentError(absl::StrCat(
          "descriptor ", fd,
          " of LISTEN_FDS is no listening Unix socket; use ListenStream= with a path"));
    }
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
      return absl::ErrnoToStatus(errno, "fcntl");
    }
    sockets.emplace_back(fd);
  }
  return sockets;
}

std::string BoundPath(int fd) {
  sockaddr_un address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  return address.sun_path;
}

FileId FileAt(const std::string& path) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino};
}

FileId FileOf(int fd) {
  struct stat found = {};
  if (fstat(fd, &found) != 0) return {};
  return {found.st_dev, found.st_ino};
}

bool IsServed(const std::string& path) {
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return false;
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) == 0) {
    return true;
  }
  return errno == EAGAIN;  // its backlog is full
}

}  // namespace phobos::process
