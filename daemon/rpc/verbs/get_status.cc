// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "daemon/process/self.h"
#include "daemon/rpc/verbs/verbs.h"

namespace phobos::rpc {

grpc::ServerUnaryReactor* GetStatus(Door& door, grpc::CallbackServerContext* context,
                                    tuner::v1::GetStatusResponse& response) {
  return Reply(door, context, [&](const Pass&) {
    const Facts& facts = door.facts();
    response.set_daemon_version(facts.daemon_version);
    response.set_pid(getpid());
    response.set_started_unix_ms(facts.started_unix_ms);
    response.set_socket(facts.socket);
    response.set_cache_dir(facts.cache_dir);
    response.set_is_private(facts.is_private);
    response.set_resident_bytes(process::ResidentBytes());
    response.set_connections(door.peers().open());
    for (const std::string& problem : facts.problems) response.add_problems(problem);
    door.engine().FillStatus(response);
    return absl::OkStatus();
  });
}

}  // namespace phobos::rpc
