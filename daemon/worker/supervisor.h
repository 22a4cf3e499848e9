// SPDX-License-Identifier: Apache-2.0
//
// The Worker that is a process: `phobosd --worker=DEVICE` in its own process group, spoken to over a socketpair, killed
// when a launch runs past its limit or the daemon goes. Started when first needed, ended by EndIfIdle. One thread at a time
// but for pid(), state(), deaths(), which any thread may read.
#ifndef PHOBOS_DAEMON_WORKER_SUPERVISOR_H_
#define PHOBOS_DAEMON_WORKER_SUPERVISOR_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/worker/worker.h"

namespace phobos::worker {

struct SupervisorOptions {
  std::vector<std::string> command;  // argv of the worker process; "--worker-socket=N" is added
  absl::Duration start_limit = absl::Seconds(20);
  absl::Duration idle_limit = absl::Seconds(60);
};

class Supervisor : public Worker {
 public:
  static std::unique_ptr<Supervisor> Create(SupervisorOptions options);

  // Ends the process when nothing was asked of it for the idle limit. Called now and then by the owner.
  virtual void EndIfIdle() = 0;
  virtual void Stop() = 0;

  virtual pid_t pid() const = 0;      // 0: not running
  virtual std::string state() const = 0;  // "off", "idle", "checking", "timing"
  virtual int64_t deaths() const = 0;
};

// Body of the worker process: serves `socket` until it closes. `device` is "cpu" or "fake:FILE". Returns the exit status.
int WorkerMain(int socket, const std::string& device);

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_SUPERVISOR_H_
