// SPDX-License-Identifier: Apache-2.0
//
// phobosctl's side of the wire: gRPC's own stubs over a socket found by the clients' rules. Never
// starts a daemon. One thread.
#ifndef PHOBOS_CLIENT_CLI_DAEMON_H_
#define PHOBOS_CLIENT_CLI_DAEMON_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/phobos/tuner/v1/admin.pb.h"
#include "proto/phobos/tuner/v1/cache.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::cli {

class Daemon {
 public:
  // `socket`: empty: where clients look. Unavailable: nobody there; PermissionDenied: with the
  // remedy.
  static absl::StatusOr<Daemon> Connect(const std::string& socket);

  // Errors: the daemon's, with its remedy in the message.
  absl::StatusOr<tuner::v1::GetStatusResponse> GetStatus();
  // Page after page, until all are here or `limit` (0: none) is reached.
  absl::StatusOr<std::vector<tuner::v1::ResultSummary>> ListResults(
      const tuner::v1::ResultFilter& filter, int64_t limit);
  absl::StatusOr<tuner::v1::Result> GetResult(const std::string& key_digest, int64_t generation);

 private:
  explicit Daemon(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {}
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace phobos::cli

#endif  // PHOBOS_CLIENT_CLI_DAEMON_H_
