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
grpc::ServerUnaryReactor* Lookup(Door& door, grpc::CallbackServerContext* context,
                                 const tuner::v1::LookupRequest& request,
                                 tuner::v1::LookupResponse& response);
grpc::ServerBidiReactor<tuner::v1::TuneRequest, tuner::v1::TuneEvent>* Tune(
    Door& door, grpc::CallbackServerContext* context);
grpc::ServerUnaryReactor* Compile(Door& door, grpc::CallbackServerContext* context,
                                  const tuner::v1::CompileRequest& request,
                                  tuner::v1::CompileResponse& response);
grpc::ServerWriteReactor<tuner::v1::ArtifactChunk>* GetArtifact(
    Door& door, grpc::CallbackServerContext* context, const tuner::v1::GetArtifactRequest& request);
grpc::ServerUnaryReactor* Cancel(Door& door, grpc::CallbackServerContext* context,
                                 const tuner::v1::CancelRequest& request);

// CacheService.
grpc::ServerUnaryReactor* ListResults(Door& door, grpc::CallbackServerContext* context,
                                      const tuner::v1::ListResultsRequest& request,
                                      tuner::v1::ListResultsResponse& response);
grpc::ServerUnaryReactor* GetResult(Door& door, grpc::CallbackServerContext* context,
                                    const tuner::v1::GetResultRequest& request,
                                    tuner::v1::GetResultResponse& response);

// AdminService.
grpc::ServerUnaryReactor* GetStatus(Door& door, grpc::CallbackServerContext* context,
                                    tuner::v1::GetStatusResponse& response);
grpc::ServerUnaryReactor* ListDevices(Door& door, grpc::CallbackServerContext* context,
                                      tuner::v1::ListDevicesResponse& response);

}  // namespace phobos::rpc

#endif  // PHOBOS_DAEMON_RPC_VERBS_VERBS_H_
