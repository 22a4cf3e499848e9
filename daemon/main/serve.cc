// SPDX-License-Identifier: Apache-2.0
#include "daemon/main/serve.h"

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
#include "daemon/engine/engine.h"
#include "daemon/process/cache_folder.h"
#include "daemon/process/ready.h"
#include "daemon/process/self.h"
#include "daemon/process/socket.h"
#include "daemon/rpc/door.h"
#include "daemon/rpc/server.h"

namespace phobos {
namespace {

// A daemon that is about to end holds the cache's lock a little longer than its socket.
constexpr absl::Duration kLockPatience = absl::Seconds(5);

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
};

absl::StatusOr<Ground> TakeGround(const options::Options& options) {
  Ground ground;
  ASSIGN_OR_RETURN(ground.stop_signals, process::BlockStopSignals());
  process::RaiseFileLimit();
  process::KeepMemorySmall();
  ASSIGN_OR_RETURN(
      ground.cache,
      process::ChooseCacheFolder(options.cache_dir, absl::StrCat("/var/tmp/phobos-", geteuid())));
  ASSIGN_OR_RETURN(ground.listeners, process::InheritedSockets(Environment));
  ground.is_activated = !ground.listeners.empty();
  ground.socket =
      ground.is_activated ? process::BoundPath(ground.listeners[0].get()) : options.socket;
  absl::StatusOr<process::CacheLock> lock =
      process::CacheLock::Take(ground.cache.path, ground.socket, kLockPatience);
  if (lock.ok()) {
    ground.lock = std::make_unique<process::CacheLock>(*std::move(lock));
  } else if (absl::IsAlreadyExists(lock.status())) {
    ground.redirect_socket = process::OwnerSocket(ground.cache.path);
  } else {
    return lock.status();
  }
  if (!ground.is_activated && ground.lock != nullptr) {
    ASSIGN_OR_RETURN(Fd listener, process::Listen(options.socket, options.is_private));
    ground.listeners.push_back(std::move(listener));
  }
  return ground;
}

// Until a stop signal, or until a private daemon has had no call for the idle limit.
void WaitForTheEnd(const options::Options& options, int stop_signals, const rpc::Door& door) {
  const absl::Time started = absl::Now();
  while (true) {
    pollfd stop = {stop_signals, POLLIN, 0};
    if (poll(&stop, 1, 1000) > 0) return;
    if (!options.is_private || options.idle_exit == absl::ZeroDuration() || door.calls() > 0)
      continue;
    if (absl::Now() - std::max(started, door.last_call()) > options.idle_exit) return;
  }
}

absl::Status ServeOn(const options::Options& options, Ground ground, Fd& ready) {
  if (ground.listeners.empty()) {
    // Not ours to serve, and nobody waits on a socket of ours.
    process::SayReady(ready, ground.redirect_socket);
    return absl::OkStatus();
  }
  rpc::Facts facts;
  facts.daemon_version = kVersion;
  facts.socket = ground.socket;
  facts.cache_dir = ground.cache.path;
  facts.is_private = options.is_private;
  facts.started_unix_ms = absl::ToUnixMillis(absl::Now());
  facts.redirect_socket = ground.redirect_socket;
  if (!ground.cache.problem.empty()) facts.problems.push_back(ground.cache.problem);
  engine::Engine engine({});
  rpc::Door door(std::move(facts), ground.lock == nullptr ? nullptr : &engine,
                 options.calls_per_uid);
  rpc::ServerOptions server_options;
  server_options.connections_per_uid = options.connections_per_uid;
  ASSIGN_OR_RETURN(std::unique_ptr<rpc::Server> server,
                   rpc::Server::Start(std::move(ground.listeners), door, server_options));
  if (options.is_private) {
    RETURN_IF_ERROR(process::Detach(absl::StrCat(ground.cache.path, "/phobosd.log")));
  }
  process::SayReady(ready, ground.socket);
  WaitForTheEnd(options, ground.stop_signals.get(), door);
  // Nobody new comes in before the cache's lock is free; those in the backlog start the next
  // daemon.
  if (!ground.is_activated) unlink(ground.socket.c_str());
  return absl::OkStatus();
}

}  // namespace

absl::Status Serve(const options::Options& options) {
  Fd ready(options.ready_fd);
  if (options.background) {
    ASSIGN_OR_RETURN(ready, process::GoToBackground());
  }
  absl::StatusOr<Ground> ground = TakeGround(options);
  const absl::Status status =
      ground.ok() ? ServeOn(options, *std::move(ground), ready) : ground.status();
  if (!status.ok()) process::SayError(ready, status);
  return status;
}

}  // namespace phobos
