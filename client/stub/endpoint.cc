// SPDX-License-Identifier: Apache-2.0
#include "client/stub/endpoint.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "client/stub/start.h"
#include "client/stub/unix_socket.h"

namespace phobos::stub {
namespace {

// A daemon gets ready in well under a second; a loaded machine may take longer.
constexpr std::chrono::milliseconds kStartLimit(30000);

std::string Environment(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

// The folder of the file that this code is in: libphobos.so, or the program it is linked into.
std::string OwnFolder() {
  Dl_info here = {};
  if (dladdr(reinterpret_cast<const void*>(&OwnFolder), &here) == 0) return "";
  char* path = realpath(here.dli_fname, nullptr);
  if (path == nullptr) return "";
  std::string folder = FolderOf(path);
  free(path);
  return folder;
}

std::vector<std::string> DaemonCandidates() {
  std::vector<std::string> candidates;
  if (const std::string own = OwnFolder(); !own.empty()) {
    candidates.push_back(own + "/../bin/phobosd");
    candidates.push_back(own + "/phobosd");
  }
  std::string_view path = getenv("PATH") == nullptr ? "" : getenv("PATH");
  while (!path.empty()) {
    const size_t colon = std::min(path.find(':'), path.size());
    if (path.starts_with('/'))
      candidates.push_back(std::string(path.substr(0, colon)) + "/phobosd");
    path.remove_prefix(std::min(colon + 1, path.size()));
  }
  return candidates;
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string joined;
  for (const std::string& part : parts) joined += (joined.empty() ? "" : ", ") + part;
  return joined;
}

bool IsOwnFolder(const std::string& path, uid_t uid) {
  struct stat found = {};
  return lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == uid;
}

std::string GroupName(gid_t gid) {
  group entry = {};
  group* found = nullptr;
  char buffer[4096];
  if (getgrgid_r(gid, &entry, buffer, sizeof(buffer), &found) == 0 && found != nullptr) {
    return found->gr_name;
  }
  return std::to_string(gid);
}

// Who may use the socket: the group of its file, or of the folder that hides it.
Status NoPermission(const std::string& socket) {
  struct stat found = {};
  const bool is_known =
      stat(socket.c_str(), &found) == 0 || stat(FolderOf(socket).c_str(), &found) == 0;
  const std::string group = is_known ? GroupName(found.st_gid) : "phobos";
  return Status(Code::kPermissionDenied,
                "no permission to use " + socket + ", which is for the group " + group +
                    ": have yourself added to it (sudo usermod -aG " + group +
                    " $USER, then log in again), or set PHOBOS_SOCKET to a daemon of your own");
}

// The folder in which a private daemon has its socket must be this user's alone: elsewise another
// user might answer there.
Status CheckPrivateFolder(const std::string& folder, uid_t uid) {
  struct stat found = {};
  if (lstat(folder.c_str(), &found) != 0) {
    return Status(Code::kFailedPrecondition, folder + ": " + strerror(errno));
  }
  if (S_ISDIR(found.st_mode) && found.st_uid == uid && (found.st_mode & 0777) == 0700) {
    return Status();
  }
  // Any other one may be there for others.
  const bool is_made_by_us = folder.ends_with("/phobos-" + std::to_string(uid));
  return Status(Code::kFailedPrecondition,
                folder + " is not a folder of user " + std::to_string(uid) +
                    " with mode 0700, which the socket of a private daemon needs: " +
                    (is_made_by_us ? "remove it, or " : "") +
                    "mkdir -m 700 DIR, and set PHOBOS_SOCKET=DIR/tuner.sock");
}

Status CannotStart(const Places& places, const std::string& socket) {
  const std::string nobody = "no daemon listens at " + socket;
  if (!places.why_none_starts.empty()) {
    return Status(Code::kUnavailable,
                  nobody + ", and " + places.why_none_starts +
                      ": start phobosd --private --background (any program that launches a kernel "
                      "does), or set PHOBOS_SOCKET to the socket of one that runs");
  }
  if (places.daemon.empty()) {
    return Status(Code::kUnavailable, nobody + ", and phobosd was not found (" + places.looked_in +
                                          "): start it, or set PHOBOS_DAEMON to its path");
  }
  return Status(Code::kUnavailable, nobody +
                                        ": start the system's daemon, or set PHOBOS_SOCKET to "
                                        "one of your own");
}

// Waits for the lock of those that start a daemon at one socket.
StatusOr<Fd> LockStart(const std::string& socket, const Patience& patience) {
  const std::string path = socket + ".lock";
  Fd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.ok()) return Status(Code::kUnavailable, "open " + path + ": " + strerror(errno));
  while (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return Status(Code::kUnavailable, "flock " + path + ": " + strerror(errno));
    }
    if (Clock::now() >= patience.deadline) {
      return Status(Code::kUnavailable,
                    "another process has been starting the daemon at " + socket + " for too long");
    }
    if (patience.IsInterrupted()) return Status(Code::kCancelled, "the caller cancelled");
    poll(nullptr, 0, 10);
  }
  return lock;
}

// Connects to `socket`, where nobody listened a moment ago, starting a daemon there if need be.
StatusOr<Reached> StartAndReach(const Places& places, const std::string& socket,
                                const Patience& patience) {
  if (!places.why_none_starts.empty() || places.daemon.empty() || socket == places.system_socket) {
    return CannotStart(places, socket);
  }
  const std::string folder = FolderOf(socket);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return Status(Code::kUnavailable, "mkdir " + folder + ": " + strerror(errno));
  }
  // The daemon looks, too; here nothing is left in a folder where none can start.
  if (Status status = CheckPrivateFolder(folder, places.uid); !status.ok()) return status;
  const Patience starting = patience.AtMost(kStartLimit);
  const StatusOr<Fd> lock = LockStart(socket, starting);
  if (!lock.ok()) return lock.status();
  // Whoever had the lock before may have started it.
  if (StatusOr<Fd> fd = Connect(socket); fd.ok()) return Reached{*std::move(fd), socket, {}};
  const StatusOr<std::string> ready = StartPrivateDaemon(places.daemon, socket, starting);
  if (!ready.ok()) return ready.status();
  StatusOr<Fd> fd = Connect(*ready);
  if (!fd.ok()) return fd.status();
  return Reached{*std::move(fd), *ready, {}};
}

StatusOr<Reached> ReachOrStart(const Places& places, const std::string& socket,
                               const Patience& patience) {
  StatusOr<Fd> fd = Connect(socket);
  if (fd.ok()) return Reached{*std::move(fd), socket, {}};
  switch (fd.status().code()) {
    case Code::kNotFound:
    case Code::kUnavailable:
      return StartAndReach(places, socket, patience);
    case Code::kPermissionDenied:
      return NoPermission(socket);
    default:
      return fd.status();
  }
}

// The system daemon; nothing where there is none, or one that does not answer (then with a
// warning).
StatusOr<std::optional<Reached>> ReachSystem(const Places& places, std::string& warning) {
  StatusOr<Fd> fd = Connect(places.system_socket);
  if (fd.ok()) {
    return std::optional<Reached>(Reached{*std::move(fd), places.system_socket, {}});
  }
  if (fd.status().code() == Code::kPermissionDenied) return NoPermission(places.system_socket);
  if (fd.status().code() != Code::kNotFound) {
    warning = "nobody answers at " + places.system_socket +
              " (the system's daemon is not running); a private daemon is used instead";
  }
  return std::optional<Reached>();
}

}  // namespace

Places Places::FromEnvironment(const std::string& socket, const std::string& daemon) {
  Places places;
  places.given_socket = socket.empty() ? Environment("PHOBOS_SOCKET") : socket;
  places.uid = geteuid();
  // Another user's runtime folder, as after sudo, is not for our sockets.
  const std::string runtime = Environment("XDG_RUNTIME_DIR");
  if (IsOwnFolder(runtime, places.uid)) places.runtime_folder = runtime;
  const std::string autostart = Environment("PHOBOS_AUTOSTART");
  if (autostart == "0") {
    places.why_none_starts = "PHOBOS_AUTOSTART=0 keeps this program from starting one";
  } else if (!autostart.empty() && autostart != "1") {
    places.environment = Status(
        Code::kInvalidArgument,
        "'" + autostart + "' is no value of PHOBOS_AUTOSTART; write 0 (start no daemon) or 1");
  }
  const std::string named = daemon.empty() ? Environment("PHOBOS_DAEMON") : daemon;
  const std::vector<std::string> candidates =
      named.empty() ? DaemonCandidates() : std::vector<std::string>{named};
  for (const std::string& candidate : candidates) {
    if (access(candidate.c_str(), X_OK) != 0) continue;
    places.daemon = candidate;
    break;
  }
  places.looked_in = "looked for " + Joined(candidates);
  return places;
}

StatusOr<Reached> Reach(const Places& places, const Patience& patience) {
  if (!places.environment.ok()) return places.environment;
  if (!places.given_socket.empty()) return ReachOrStart(places, places.given_socket, patience);
  std::string warning;
  StatusOr<std::optional<Reached>> system = ReachSystem(places, warning);
  if (!system.ok()) return system.status();
  if (system->has_value()) return **std::move(system);
  std::string folder = places.runtime_folder + "/phobos";
  if (places.runtime_folder.empty()) {
    folder = places.temporary_folder + "/phobos-" + std::to_string(places.uid);
    // Made before it is looked at: what is there then is nobody else's to make.
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return Status(Code::kUnavailable, "mkdir " + folder + ": " + strerror(errno));
    }
    if (Status status = CheckPrivateFolder(folder, places.uid); !status.ok()) return status;
  }
  StatusOr<Reached> own = ReachOrStart(places, folder + "/tuner.sock", patience);
  if (own.ok() && !warning.empty()) own->warnings.push_back(warning);
  return own;
}

}  // namespace phobos::stub
