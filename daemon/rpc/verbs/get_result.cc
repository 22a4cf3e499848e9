// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "daemon/rpc/verbs/verbs.h"

namespace phobos::rpc {

grpc::ServerUnaryReactor* GetResult(Door& door, grpc::CallbackServerContext* context,
                                    const tuner::v1::GetResultRequest& request,
                                    tuner::v1::GetResultResponse& response) {
  return ReplyLater(door, context, [&](Answered answered) -> absl::Status {
    door.engine().GetResult(request, [&response, answered](auto result) {
      if (result.ok()) *response.mutable_result() = *std::move(result);
      answered(result.status());
    });
    return absl::OkStatus();
  });
}

}  // namespace phobos::rpc
