// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "daemon/rpc/verbs/verbs.h"

namespace phobos::rpc {

grpc::ServerUnaryReactor* ListResults(Door& door, grpc::CallbackServerContext* context,
                                      const tuner::v1::ListResultsRequest& request,
                                      tuner::v1::ListResultsResponse& response) {
  return ReplyLater(door, context, [&](const Answered& answered) -> absl::Status {
    door.engine().ListResults(request, [&response, answered](auto page) {
      const absl::Status status = page.status();
      if (status.ok()) response = *std::move(page);
      answered(status);
    });
    return absl::OkStatus();
  });
}

}  // namespace phobos::rpc
