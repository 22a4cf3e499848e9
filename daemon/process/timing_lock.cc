// SPDX-License-Identifier: Apache-2.0
#include "daemon/process/timing_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace phobos::process {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(10);

enum class Attempt { kTaken, kBusy, kImpossible };

// A card's name as a file's or a socket's: nothing that leads elsewhere.
std::string Plain(const std::string& uuid) {
  std::string plain = uuid;
  for (char& c : plain) {
    if (c == '/' || c == '\0') c = '_';
  }
  return plain;
}

// A lock file may belong to another user, and the folder be open to all and sticky: there the
// kernel may refuse O_CREAT of a file that exists (fs.protected_regular). So it is made only when
// missing.
Fd OpenLockFile(const std::string& path) {
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.ok() || errno != ENOENT) return file;
  file = Fd(open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.ok()) {
    fchmod(file.get(), 0644);  // whatever the umask: other users open it too
  } else if (errno == EEXIST) {
    file = Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  return file;
}

Attempt TryFlock(const Fd& file) {
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return Attempt::kTaken;
  return errno == EWOULDBLOCK || errno == EINTR ? Attempt::kBusy : Attempt::kImpossible;
}

Attempt TryAbstract(const Fd& socket, const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);  // a leading zero byte: abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) {
    return Attempt::kTaken;
  }
  return errno == EADDRINUSE ? Attempt::kBusy : Attempt::kImpossible;
}

// Tries until taken (true), impossible (false) or stopped.
absl::StatusOr<bool> Wait(const std::function<Attempt()>& attempt, const std::atomic<bool>& stop,
                          const std::function<void()>& on_busy) {
  for (bool is_first = true;; is_first = false) {
    const Attempt outcome = attempt();
    if (outcome != Attempt::kBusy) return outcome == Attempt::kTaken;
    if (is_first && on_busy) on_busy();
    if (stop) return absl::CancelledError("cancelled while another process timed on the card");
    absl::SleepFor(kPause);
  }
}

}  // namespace

absl::StatusOr<TimingLock> TimingLock::Take(const std::string& folder, const std::string& card_uuid,
                                            const std::atomic<bool>& stop,
                                            const std::function<void()>& on_busy) {
  const std::string path = absl::StrCat(folder, "/", Plain(card_uuid));
  const bool has_folder = access(folder.c_str(), F_OK) == 0 || errno != ENOENT;
  Fd file = has_folder ? OpenLockFile(path) : Fd();
  if (file.ok()) {
    const absl::StatusOr<bool> taken = Wait([&] { return TryFlock(file); }, stop, on_busy);
    if (!taken.ok()) return taken.status();
    if (*taken) return TimingLock(std::move(file), "flock");
  }
  // Others lock the file: another kind of lock would exclude none of them.
  if (has_folder) return TimingLock(Fd(), "none");
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.ok()) {
    const std::string name = absl::StrCat("phobos-card-", Plain(card_uuid));
    const absl::StatusOr<bool> taken =
        Wait([&] { return TryAbstract(socket, name); }, stop, on_busy);
    if (!taken.ok()) return taken.status();
    if (*taken) return TimingLock(std::move(socket), "abstract");
  }
  return TimingLock(Fd(), "none");
}

}  // namespace phobos::process
