// SPDX-License-Identifier: Apache-2.0
//
// The Worker that is a process: `phobosd --worker=DEVICE` in its own process group, spoken to over
// a socketpair, killed when a launch runs past its limit or the daemon goes. Started when first
// needed, ended by EndIfIdle. The calls of Worker: one thread at a time; the rest any thread.
#ifndef PHOBOS_DAEMON_WORKER_SUPERVISOR_H_
#define PHOBOS_DAEMON_WORKER_SUPERVISOR_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/worker/worker.h"

namespace phobos::worker {

struct SupervisorOptions {
  std::vector<std::string> command;  // argv of the worker process; "--worker-socket=N" is added
  // What Describe says without starting the process; nullopt: the process is asked.
  std::optional<tuner::v1::Device> device;
  absl::Duration start_limit = absl::Seconds(20);
  absl::Duration idle_limit = absl::Seconds(60);
  // Of a call in which no variant runs, or a variant's initializers do: the worker itself hangs,
  // which no input should do.
  absl::Duration quiet_limit = absl::Seconds(300);
  // How long a process that was killed is waited for. One that hangs in a driver's call ends when
  // that call does; meanwhile another takes its place.
  absl::Duration end_limit = absl::Seconds(5);
  // How long a Begin for which there is no memory waits for such a process, which keeps what it has
  // of the device: giving a GPU's memory back may take longer than the end limit.
  absl::Duration memory_limit = absl::Seconds(30);
};

class Supervisor : public Worker {
 public:
  static std::unique_ptr<Supervisor> Create(SupervisorOptions options);

  // Ends the process when nothing was asked of it for the idle limit, and waits for its end, at
  // most for the end limit. Called now and then by the owner; does nothing while a call is under
  // way.
  virtual void EndIfIdle() = 0;
  // Kills the process, whatever it does, and does not wait for its end: a call under way ends with
  // Aborted. No death is counted. Does nothing when no process runs.
  virtual void Kill() = 0;
  // Kill, and returns when the process is gone, or has not gone within the end limit.
  virtual void Stop() = 0;

  virtual pid_t pid() const = 0;          // 0: not running
  virtual std::string state() const = 0;  // "off", "idle", "checking", "timing"
  virtual int64_t deaths() const = 0;
};

// Body of the worker process: serves `socket` until it closes. `device` as for device::Open
// (daemon/device/open.h): "cpu", "cpu:LLC_BYTES", "cuda:CARD" or "fake:FILE". Returns the exit
// status.
int WorkerMain(int socket, const std::string& device);

// Body of the short-lived process that looks for GPUs, so that the daemon itself never loads a
// driver: writes Cards to standard output. Returns the exit status.
int CardsMain();

// Body of the short-lived process that looks whether anything else has a card, by its uuid (a
// slice's parent's). Returns the exit status: 0: nothing has; kCardIsBusy; or another, when it
// cannot be told.
int LookMain(const std::string& card_uuid);
inline constexpr int kCardIsBusy = 10;

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_SUPERVISOR_H_
