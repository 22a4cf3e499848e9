// SPDX-License-Identifier: Apache-2.0
//
// Which folder holds the cache, and the lock that makes this daemon its only writer. What is in the
// folder is cache/'s business. CacheLock: movable, one owner, any thread.
#ifndef PHOBOS_DAEMON_PROCESS_CACHE_FOLDER_H_
#define PHOBOS_DAEMON_PROCESS_CACHE_FOLDER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "daemon/process/socket.h"

namespace phobos::process {

struct CacheFolder {
  std::string path;     // exists
  std::string problem;  // a sentence for the status when it is not the one asked for; else empty
};

// Whether the file system at `path` is a network's.
using IsNetworkFileSystem = std::function<bool(const std::string& path)>;
bool IsOnNetwork(const std::string& path);

// Makes `wanted` (and what is missing above it, 0755) and gives it, or, where it is on a network
// file system, `instead`, which is made 0700 and must belong to this user.
absl::StatusOr<CacheFolder> ChooseCacheFolder(const std::string& wanted, const std::string& instead,
                                              const IsNetworkFileSystem& is_network = IsOnNetwork);

class CacheLock {
 public:
  // Locks <folder>/LOCK and writes `socket` and this process's id into it. AlreadyExists: a daemon
  // that serves holds it, which OwnerOf(folder) tells of; the message has its id and socket. One
  // that holds it and serves nobody is about to end: it is waited for, at most `patience` (then
  // Unavailable).
  static absl::StatusOr<CacheLock> Take(const std::string& folder, const std::string& socket,
                                        absl::Duration patience);

  // Whether the folder still has the file that is locked. Else somebody removed the cache, and what
  // is written to its database goes nowhere.
  bool IsInPlace() const;

 private:
  CacheLock(Fd fd, std::string path);
  Fd fd_;  // closing it frees the lock
  std::string path_;
  FileId file_;
};

// Who holds or held <folder>/LOCK, as it wrote itself.
struct CacheOwner {
  std::string socket;  // empty: nobody
  int64_t pid = 0;     // 0: not known
};
CacheOwner OwnerOf(const std::string& folder);

}  // namespace phobos::process

#endif  // PHOBOS_DAEMON_PROCESS_CACHE_FOLDER_H_
