// SPDX-License-Identifier: Apache-2.0
//
// The three services as gRPC calls them: each method hands over to its verb (verbs/verbs.h). Verbs
// that this daemon does not have answer UNIMPLEMENTED with a sentence.
#ifndef PHOBOS_DAEMON_RPC_SERVICES_H_
#define PHOBOS_DAEMON_RPC_SERVICES_H_

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <vector>

#include "daemon/rpc/door.h"

namespace phobos::rpc {

// `door` must outlive them.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(Door& door);

}  // namespace phobos::rpc

#endif  // PHOBOS_DAEMON_RPC_SERVICES_H_
