// SPDX-License-Identifier: Apache-2.0
//
// Client: a process's access to phobos-tuner: the daemon of this machine, the threads that run
// blocks on the host chip, and the GPUs. Connects when first needed. Open one and share it; kernels
// stay loaded on GPUs until it and all that was made of it are gone. Any thread; a forked child may
// go on using it, but for GPUs that its parent had used.
#ifndef PHOBOS_CLIENT_CPP_CLIENT_H_
#define PHOBOS_CLIENT_CPP_CLIENT_H_

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "client/cpp/gpu/gpu.h"
#include "client/launch/host.h"
#include "client/launch/per_process.h"
#include "client/launch/status.h"
#include "client/stub/daemon.h"
#include "client/stub/patience.h"
#include "client/stub/wire/types.h"

namespace phobos {

struct ClientOptions {
  // Empty: $PHOBOS_SOCKET, else the system daemon's, else the user's own.
  std::string socket;
  // phobosd, to be started when none answers. Empty: $PHOBOS_DAEMON, else near this library, else
  // in $PATH.
  std::string daemon;
  // Who calls. Empty: "c++" and the version.
  std::string client_name;
  // False: never start a daemon, as PHOBOS_AUTOSTART=0.
  bool autostart = true;
  // Threads that run blocks, 1024 at most. 0: $PHOBOS_THREADS, else as many as tunes use.
  int threads = 0;
  // Called at least every 200 ms while a call waits for the daemon. True: that call gives
  // Cancelled.
  std::function<bool()> interrupted;
  // Called once for each thing the user should know that is no error. Empty: a line on stderr.
  std::function<void(const std::string& text)> warn;
};

class Client {
 public:
  static std::shared_ptr<Client> Open(ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // What the daemon said of itself, and the socket it was reached at. Connects. The link keeps both
  // valid.
  StatusOr<std::shared_ptr<const stub::Link>> Hello();

  // For the rooms above; users need none of these.
  stub::Daemon& daemon() { return *daemon_; }
  stub::Patience patience() const { return {stub::Clock::time_point::max(), options_.interrupted}; }
  // Hands `text` to the user unless this process has warned of it already.
  void Warn(const std::string& text);
  // The pool for launches on the host chip. Made at the first call, which asks the daemon how many
  // threads that device's tunes use where neither options nor environment say.
  StatusOr<std::shared_ptr<launch::HostPool>> Pool(const std::string& device_uuid);
  // The cards that this process sees; the driver is started by the first call. Unavailable: there
  // is none, and why.
  StatusOr<std::shared_ptr<Gpus>> Cards();
  // One of them; null for the host chip.
  StatusOr<std::shared_ptr<Gpu>> Card(const std::string& device_uuid);
  // Whether that card's stream, a CUstream, is being captured; false for the host chip.
  StatusOr<bool> IsCaptured(const std::string& device_uuid, void* stream);

 private:
  // What fork() must not break.
  struct State {
    std::mutex mutex;
    std::set<std::string> warned;            // guarded by mutex
    std::shared_ptr<launch::HostPool> pool;  // guarded by mutex
    std::shared_ptr<Gpus> cards;             // guarded by mutex
  };

  explicit Client(ClientOptions options);
  StatusOr<int> Threads(const std::string& device_uuid);

  const ClientOptions options_;
  std::unique_ptr<stub::Daemon> daemon_;
  launch::PerProcess<State> state_;
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_CLIENT_H_
