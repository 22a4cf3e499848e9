// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/verbs/verbs.h"

namespace phobos::rpc {

grpc::ServerUnaryReactor* ListDevices(Door& door, grpc::CallbackServerContext* context,
                                      tuner::v1::ListDevicesResponse& response) {
  return Reply(door, context, [&](const Pass&) {
    for (const tuner::v1::Device& device : door.engine().devices())
      *response.add_devices() = device;
    for (const std::string& reason : door.engine().unavailable()) response.add_unavailable(reason);
    return absl::OkStatus();
  });
}

}  // namespace phobos::rpc
