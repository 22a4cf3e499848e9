// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/status_macros.h"
#include "daemon/rpc/validate.h"
#include "daemon/rpc/verbs/verbs.h"

namespace phobos::rpc {

grpc::ServerUnaryReactor* Compile(Door& door, grpc::CallbackServerContext* context,
                                  const tuner::v1::CompileRequest& request,
                                  tuner::v1::CompileResponse& response) {
  return ReplyLater(door, context, [&](const Answered& answered) -> absl::Status {
    RETURN_IF_ERROR(Check(request));
    door.engine().Compile(request, [&response, answered](auto answer) {
      const absl::Status status = answer.status();
      if (status.ok()) response = *std::move(answer);
      answered(status);
    });
    return absl::OkStatus();
  });
}

}  // namespace phobos::rpc
