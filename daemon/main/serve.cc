// SPDX-License-Identifier: Apache-2.0
#include "daemon/main/serve.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/fd.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "daemon/engine/engine.h"
#include "daemon/main/assemble.h"
#include "daemon/process/cache_folder.h"
#include "daemon/process/ready.h"
#include "daemon/process/segment_pool.h"
#include "daemon/process/self.h"
#include "daemon/process/side_server.h"
#include "daemon/process/socket.h"
#include "daemon/rpc/door.h"
#include "daemon/rpc/server.h"

namespace phobos {
namespace {

// A daemon that is about to end holds the cache's lock a little longer than its socket, and one
// that starts has it a little earlier.
constexpr absl::Duration kLockPatience = absl::Seconds(20);

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What is held while serving, in the order in which it is taken.
struct Ground {
  Fd stop_signals;
  process::CacheFolder cache;
  std::vector<Fd> listeners;
  std::string socket;
  bool is_activated = false;                 // the listeners are systemd's
  std::unique_ptr<process::CacheLock> lock;  // null: another daemon's, at `redirect_socket`
  std::string redirect_socket;
  absl::Status refusal;     // that other daemon, in words
  std::string side_socket;  // beside the socket
  // What was bound there, once it is: others may have removed or replaced it.
  process::FileId socket_file, side_socket_file;
};

absl::StatusOr<Ground> TakeGround(const options::Options& options) {
  Ground ground;
  ASSIGN_OR_RETURN(ground.stop_signals, process::BlockStopSignals());
  process::KeepFilesOurs();
  process::RaiseFileLimit();
  process::KeepMemorySmall();
  ASSIGN_OR_RETURN(
      ground.cache,
      process::ChooseCacheFolder(options.cache_dir, absl::StrCat("/var/tmp/phobos-", geteuid())));
  ASSIGN_OR_RETURN(ground.listeners, process::InheritedSockets(Environment));
  ground.is_activated = !ground.listeners.empty();
  ground.socket =
      ground.is_activated ? process::BoundPath(ground.listeners[0].get()) : options.socket;
  ground.side_socket = absl::StrCat(ground.socket, ".side");
  absl::StatusOr<process::CacheLock> lock =
      process::CacheLock::Take(ground.cache.path, ground.socket, kLockPatience);
  if (lock.ok()) {
    ground.lock = std::make_unique<process::CacheLock>(*std::move(lock));
  } else if (absl::IsAlreadyExists(lock.status())) {
    ground.redirect_socket = process::OwnerOf(ground.cache.path).socket;
    ground.refusal = lock.status();
  } else {
    return lock.status();
  }
  return ground;
}

constexpr int kBusyTickMs = 200;
constexpr int kIdleTickMs = 1000;
constexpr int kRefusalMs = 3000;

bool IsIdleForLong(const options::Options& options, const rpc::Door& door, absl::Time started) {
  if (!options.is_private || options.idle_exit == absl::ZeroDuration() || door.calls() > 0)
    return false;
  return absl::Now() - std::max(started, door.last_call()) > options.idle_exit;
}

// A socket that another daemon put in the place of ours stays.
void RemoveIfOurs(const std::string& path, const process::FileId& ours) {
  if (process::FileAt(path) == ours) unlink(path.c_str());
}

// Whether somebody removed the sockets, so that nobody new comes in, or the cache, so that Results
// go nowhere. The next daemon, which clients start, has both.
bool HasLostItsPlace(const options::Options& options, const Ground& ground) {
  if (!options.is_private || ground.is_activated) return false;
  return process::FileAt(ground.socket) != ground.socket_file ||
         process::FileAt(ground.side_socket) != ground.side_socket_file ||
         !ground.lock->IsInPlace();
}

// Keeps the engine's time until a stop signal, or until a private daemon was idle for long enough
// or has lost its place. `engine` is null where all go to the ground's redirect_socket: then until
// nobody serves there any more, so that the next who asks here starts a daemon that can have the
// cache.
void ServeUntilTheEnd(const options::Options& options, const Ground& ground, const rpc::Door& door,
                      engine::Engine* engine) {
  const absl::Time started = absl::Now();
  bool is_busy = false;
  bool is_trimmed = false;
  while (true) {
    pollfd stop = {ground.stop_signals.get(), POLLIN, 0};
    if (poll(&stop, 1, is_busy ? kBusyTickMs : kIdleTickMs) > 0) return;
    if (engine == nullptr && !process::IsServed(ground.redirect_socket)) return;
    is_busy = engine != nullptr && engine->tunes().Tick();
    if (is_busy) {
      is_trimmed = false;
      continue;
    }
    if (IsIdleForLong(options, door, started) || HasLostItsPlace(options, ground)) return;
    if (!std::exchange(is_trimmed, true)) process::TrimMemory();
  }
}

// Until a stop signal, or until those who had connected before were answered.
void RefuseForAWhile(int stop_signals) {
  pollfd stop = {stop_signals, POLLIN, 0};
  poll(&stop, 1, kRefusalMs);
}

rpc::Facts FactsOf(const options::Options& options, const Ground& ground) {
  rpc::Facts facts;
  facts.daemon_version = kVersion;
  facts.socket = ground.socket;
  facts.side_socket = ground.side_socket;
  facts.cache_dir = ground.cache.path;
  facts.is_private = options.is_private;
  facts.started_unix_ms = absl::ToUnixMillis(absl::Now());
  facts.redirect_socket = ground.redirect_socket;
  if (!ground.cache.problem.empty()) facts.problems.push_back(ground.cache.problem);
  return facts;
}

// Everything that serves, each made after what it needs and so destroyed before it.
struct House {
  std::unique_ptr<process::SegmentPool> segments;
  // Null: the cache is another daemon's, or `failure`.
  std::unique_ptr<engine::Engine> engine;
  absl::Status failure;  // why there is no engine, to be told to those whom systemd let connect
  std::unique_ptr<process::SideServer> side;
  std::unique_ptr<rpc::Door> door;
  std::unique_ptr<rpc::Server> server;
};

absl::StatusOr<House> Build(const options::Options& options, Ground& ground) {
  House house;
  house.segments = std::make_unique<process::SegmentPool>(options.segment_bytes);
  rpc::Facts facts = FactsOf(options, ground);
  if (ground.lock != nullptr) {
    absl::StatusOr<std::unique_ptr<engine::Engine>> engine =
        AssembleEngine(options, ground.cache.path, *house.segments);
    house.failure = engine.status();
    if (engine.ok()) house.engine = *std::move(engine);
    facts.failure = std::string(house.failure.message());
    if (!ground.is_activated) RETURN_IF_ERROR(house.failure);
  }
  // Nobody can connect before all that a call needs is known to work.
  if (!ground.is_activated) {
    ASSIGN_OR_RETURN(Fd listener, process::Listen(options.socket, options.is_private));
    ground.socket_file = process::FileAt(options.socket);
    ground.listeners.push_back(std::move(listener));
  }
  if (house.engine != nullptr) {
    ASSIGN_OR_RETURN(Fd side, process::Listen(ground.side_socket, options.is_private));
    ground.side_socket_file = process::FileAt(ground.side_socket);
    ASSIGN_OR_RETURN(house.side, process::SideServer::Start(std::move(side), *house.segments,
                                                            options.connections_per_uid));
  }
  house.door =
      std::make_unique<rpc::Door>(std::move(facts), house.engine.get(), options.calls_per_uid);
  rpc::ServerOptions server;
  server.connections_per_uid = options.connections_per_uid;
  ASSIGN_OR_RETURN(house.server,
                   rpc::Server::Start(std::move(ground.listeners), *house.door, server));
  return house;
}

absl::Status ServeOn(const options::Options& options, Ground ground, Fd& ready) {
  if (ground.lock == nullptr && !ground.is_activated) {
    // Not ours to serve, and nobody waits on a socket of ours. A starter that asked to be told goes
    // to the other one, as when two start at once; a person is told.
    if (!ready.ok()) return ground.refusal;
    process::SayReady(ready, ground.redirect_socket);
    return absl::OkStatus();
  }
  // Before workers start, so that none of them keeps the starter's terminal or pipe.
  Fd former_stderr;
  if (options.is_private) {
    ASSIGN_OR_RETURN(former_stderr,
                     process::Detach(absl::StrCat(ground.cache.path, "/phobosd.log")));
  }
  absl::StatusOr<House> built = Build(options, ground);
  if (!built.ok()) {
    if (former_stderr.ok()) dup2(former_stderr.get(), STDERR_FILENO);
    return built.status();
  }
  House house = *std::move(built);
  if (!house.failure.ok()) {
    if (former_stderr.ok()) dup2(former_stderr.get(), STDERR_FILENO);
    RefuseForAWhile(ground.stop_signals.get());
    return house.failure;
  }
  former_stderr.Reset();
  process::SayReady(ready, ground.socket);
  ServeUntilTheEnd(options, ground, *house.door, house.engine.get());
  // Nobody new comes in before the cache's lock is free; those in the backlog start the next
  // daemon.
  if (!ground.is_activated) RemoveIfOurs(ground.socket, ground.socket_file);
  if (ground.lock != nullptr) RemoveIfOurs(ground.side_socket, ground.side_socket_file);
  if (house.engine != nullptr) house.engine->Stop();
  house.server.reset();
  return absl::OkStatus();
}

}  // namespace

absl::Status Serve(const options::Options& options) {
  Fd ready(options.ready_fd);
  // Not for the workers: whoever reads from it waits for this process alone.
  if (ready.ok()) fcntl(ready.get(), F_SETFD, FD_CLOEXEC);
  if (options.background) {
    ASSIGN_OR_RETURN(ready, process::GoToBackground());
  }
  absl::StatusOr<Ground> ground = TakeGround(options);
  const absl::Status status =
      ground.ok() ? ServeOn(options, *std::move(ground), ready) : ground.status();
  if (status.ok()) return status;
  process::SayError(ready, status);
  // In the background it is the starter who is told, and tells.
  return options.background ? absl::OkStatus() : status;
}

}  // namespace phobos
