// SPDX-License-Identifier: Apache-2.0
//
// The one place where the daemon's Status becomes gRPC's: code, message, and the ErrorDetail as a
// google.rpc.Status in grpc-status-details-bin. Pure, any thread.
#ifndef PHOBOS_DAEMON_RPC_STATUS_H_
#define PHOBOS_DAEMON_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace phobos::rpc {

grpc::Status ToGrpc(const absl::Status& status);

}  // namespace phobos::rpc

#endif  // PHOBOS_DAEMON_RPC_STATUS_H_
