// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "daemon/rpc/verbs/verbs.h"

namespace phobos::rpc {

grpc::ServerUnaryReactor* GetResult(Door& door, grpc::CallbackServerContext* context,
                                    const tuner::v1::GetResultRequest& request,
                                    tuner::v1::GetResultResponse& response) {
  return ReplyLater(door, context, [&](const Answered& answered) -> absl::Status {
    door.engine().GetResult(request, [&response, answered](auto result) {
      const absl::Status status = result.status();
      if (status.ok()) *response.mutable_result() = *std::move(result);
      answered(status);
    });
    return absl::OkStatus();
  });
}

}  // namespace phobos::rpc
