// SPDX-License-Identifier: Apache-2.0
#include "base/status_macros.h"
#include "daemon/rpc/validate.h"
#include "daemon/rpc/verbs/verbs.h"

namespace phobos::rpc {

// The hit path: what was answered before is answered by this thread, from memory.
grpc::ServerUnaryReactor* Lookup(Door& door, grpc::CallbackServerContext* context,
                                 const tuner::v1::LookupRequest& request,
                                 tuner::v1::LookupResponse& response) {
  return ReplyLater(door, context, [&](const Answered& answered) -> absl::Status {
    if (const engine::Finder::AnswerPtr ready = door.engine().RecentLookup(request);
        ready != nullptr) {
      response = *ready;
      answered(absl::OkStatus());
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(Check(request));
    door.engine().Lookup(request, [&response, answered](const auto& answer) {
      if (answer.ok()) response = **answer;
      answered(answer.status());
    });
    return absl::OkStatus();
  });
}

}  // namespace phobos::rpc
