// SPDX-License-Identifier: Apache-2.0
//
// The Tune stream: what the client sends goes to the engine step by step, what the engine says goes
// out through an Outbox. Its states are the engine's (engine/join/job.h); here are only the two
// directions of one stream.
#include <memory>
#include <utility>

#include "daemon/rpc/outbox.h"
#include "daemon/rpc/validate.h"
#include "daemon/rpc/verbs/verbs.h"

namespace phobos::rpc {
namespace {

using engine::Job;

class Tuning : public Outbox::Reactor {
 public:
  Tuning(Door& door, const grpc::CallbackServerContext& context)
      : context_(context), outbox_(std::make_shared<Outbox>(this)) {
    absl::StatusOr<Pass> pass = door.Enter(context);
    if (!pass.ok()) {
      outbox_->Close(pass.status());
      return;
    }
    tunes_ = &door.engine().tunes();
    stream_ = tunes_->Begin({pass->peer().uid, pass->peer().pid}, outbox_);
    pass_ = std::make_unique<Pass>(*std::move(pass));
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;  // the client has said all that it will, or is gone (OnCancel)
    if (const absl::Status status = Check(request_); !status.ok()) {
      tunes_->Refuse(stream_, status);
    } else {
      tunes_->Step(stream_, request_);
    }
    if (!outbox_->is_closed()) StartRead(&request_);
  }

  void OnWriteDone(bool ok) override { outbox_->OnWritten(ok); }

  // The client took back its call, or its connection broke.
  void OnCancel() override {
    if (tunes_ != nullptr) {
      tunes_->Leave(stream_, IsConnected(context_.peer()) ? Job::Departure::kWithdrawn
                                                          : Job::Departure::kLost);
    }
    outbox_->Close(absl::CancelledError("the caller left"));
  }

  void OnDone() override {
    if (tunes_ != nullptr) tunes_->Leave(stream_, Job::Departure::kLost);
    delete this;
  }

 private:
  const grpc::CallbackServerContext& context_;
  const std::shared_ptr<Outbox> outbox_;
  std::unique_ptr<Pass> pass_;
  engine::Tunes* tunes_ = nullptr;  // null: refused at the door
  uint64_t stream_ = 0;
  tuner::v1::TuneRequest request_;
};

}  // namespace

Outbox::Reactor* Tune(Door& door, grpc::CallbackServerContext* context) {
  return new Tuning(door, *context);
}

}  // namespace phobos::rpc
