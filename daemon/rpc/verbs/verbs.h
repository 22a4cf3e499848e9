// SPDX-License-Identifier: Apache-2.0
//
// The verbs, one a file: each decodes and validates its request once, asks the engine, and encodes
// the answer. Called by gRPC's threads through services.cc; none of them blocks.
#ifndef PHOBOS_DAEMON_RPC_VERBS_VERBS_H_
#define PHOBOS_DAEMON_RPC_VERBS_VERBS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "daemon/rpc/door.h"
#include "proto/phobos/tuner/v1/admin.pb.h"
#include "proto/phobos/tuner/v1/cache.pb.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"

namespace phobos::rpc {

// TunerService.
grpc::ServerUnaryReactor* Hello(Door& door, grpc::CallbackServerContext* context,
                                const tuner::v1::HelloRequest& request,
                                tuner::v1::HelloResponse& response);

// AdminService.
grpc::ServerUnaryReactor* GetStatus(Door& door, grpc::CallbackServerContext* context,
                                    tuner::v1::GetStatusResponse& response);
grpc::ServerUnaryReactor* ListDevices(Door& door, grpc::CallbackServerContext* context,
                                      tuner::v1::ListDevicesResponse& response);

}  // namespace phobos::rpc

#endif  // PHOBOS_DAEMON_RPC_VERBS_VERBS_H_
