// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "base/status_macros.h"
#include "daemon/error/error.h"
#include "daemon/rpc/status.h"
#include "daemon/rpc/validate.h"
#include "daemon/rpc/verbs/verbs.h"

namespace phobos::rpc {
namespace {

constexpr size_t kChunkBytes = 64 << 10;

// Sends one file chunk by chunk; each is read when the one before is on its way.
class Sending : public grpc::ServerWriteReactor<tuner::v1::ArtifactChunk> {
 public:
  Sending(Door& door, const grpc::CallbackServerContext& context,
          const tuner::v1::GetArtifactRequest& request) {
    if (const absl::Status opened = Open(door, context, request); !opened.ok()) {
      Finish(ToGrpc(opened));
    } else {
      SendNext();
    }
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(ToGrpc(absl::CancelledError("the caller left")));
    SendNext();
  }
  void OnDone() override { delete this; }

 private:
  absl::Status Open(Door& door, const grpc::CallbackServerContext& context,
                    const tuner::v1::GetArtifactRequest& request) {
    ASSIGN_OR_RETURN(Pass pass, door.Enter(context));
    pass_ = std::make_unique<Pass>(std::move(pass));
    RETURN_IF_ERROR(Check(request));
    ASSIGN_OR_RETURN(const std::string path, door.engine().FindArtifact(request));
    file_ = Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_.ok()) return error::FromErrno(errno, "open", path);
    return absl::OkStatus();
  }

  void SendNext() {
    std::string& bytes = *chunk_.mutable_bytes();
    bytes.resize(kChunkBytes);
    const ssize_t n = read(file_.get(), bytes.data(), bytes.size());
    if (n < 0) return Finish(ToGrpc(error::FromErrno(errno, "read the artifact")));
    if (n == 0) return Finish(grpc::Status::OK);
    bytes.resize(n);
    StartWrite(&chunk_);
  }

  std::unique_ptr<Pass> pass_;
  Fd file_;
  tuner::v1::ArtifactChunk chunk_;
};

}  // namespace

grpc::ServerWriteReactor<tuner::v1::ArtifactChunk>* GetArtifact(
    Door& door, grpc::CallbackServerContext* context,
    const tuner::v1::GetArtifactRequest& request) {
  return new Sending(door, *context, request);
}

}  // namespace phobos::rpc
