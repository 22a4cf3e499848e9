// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/verbs/verbs.h"

namespace phobos::rpc {

grpc::ServerUnaryReactor* Cancel(Door& door, grpc::CallbackServerContext* context,
                                 const tuner::v1::CancelRequest& request) {
  return Reply(door, context, [&](const Pass& pass) {
    return door.engine().tunes().Cancel(request.job_id(), {pass.peer().uid, pass.peer().pid});
  });
}

}  // namespace phobos::rpc
