// SPDX-License-Identifier: Apache-2.0
//
// Outbox is the sending side of one Tune stream: events go out in order, one at a time as gRPC
// wants it, and of progress only the newest is kept while the reader is slow. Outlives its reactor
// harmlessly: whoever still has it sends to nobody. Any thread.
#ifndef PHOBOS_DAEMON_RPC_OUTBOX_H_
#define PHOBOS_DAEMON_RPC_OUTBOX_H_

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "daemon/engine/join/job.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"

namespace phobos::rpc {

class Outbox : public engine::Sink {
 public:
  using Reactor = grpc::ServerBidiReactor<tuner::v1::TuneRequest, tuner::v1::TuneEvent>;

  // Ends the reactor (Finish) once, when closed and all is sent; the reactor lives until its
  // OnDone.
  explicit Outbox(Reactor* reactor) : reactor_(reactor) {}

  void Send(const tuner::v1::TuneEvent& event) override;
  void Close(const absl::Status& status) override;

  bool is_closed() const;

  // The reactor's OnWriteDone.
  void OnWritten(bool ok);

 private:
  void Next() ABSL_LOCKS_EXCLUDED(mutex_);
  // What is to be done now: write `sending_`, finish, or nothing.
  enum class Move { kNothing, kWrite, kFinish };
  Move Decide() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Reactor* const reactor_;
  mutable absl::Mutex mutex_;
  std::deque<tuner::v1::TuneEvent> waiting_ ABSL_GUARDED_BY(mutex_);
  std::optional<tuner::v1::TuneEvent> progress_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> closing_ ABSL_GUARDED_BY(mutex_);
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
  tuner::v1::TuneEvent sending_;  // constant while is_writing_
};

}  // namespace phobos::rpc

#endif  // PHOBOS_DAEMON_RPC_OUTBOX_H_
