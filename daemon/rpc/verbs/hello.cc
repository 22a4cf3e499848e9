// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "daemon/error/error.h"
#include "daemon/rpc/verbs/verbs.h"

namespace phobos::rpc {
namespace {

constexpr int kWireVersion = 1;

// What this daemon has beyond version 1 of the wire, one word each; a word once given keeps its
// meaning.
constexpr const char* kCapabilities[] = {"tune", "compile", "segments"};

}  // namespace

grpc::ServerUnaryReactor* Hello(Door& door, grpc::CallbackServerContext* context,
                                const tuner::v1::HelloRequest& request,
                                tuner::v1::HelloResponse& response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::StatusOr<Pass> pass = door.EnterHello(*context);
  if (!pass.ok()) {
    Finish(reactor, pass.status());
    return reactor;
  }
  if (request.wire_version() < 1) {
    Finish(
        reactor,
        error::Make(absl::StatusCode::kInvalidArgument, tuner::v1::ERROR_REASON_BAD_ARGUMENT,
                    absl::StrCat("wire version ", request.wire_version(), " is none"), "send 1"));
    return reactor;
  }
  const Facts& facts = door.facts();
  response.set_wire_version(kWireVersion);
  response.set_daemon_version(facts.daemon_version);
  response.set_side_socket(facts.side_socket);
  response.set_cache_dir(facts.cache_dir);
  response.set_is_private(facts.is_private);
  response.set_redirect_socket(facts.redirect_socket);
  if (facts.redirect_socket.empty()) {
    for (const char* capability : kCapabilities) response.add_capabilities(capability);
    response.set_compiler_fingerprint(door.engine().compiler_fingerprint());
    for (const tuner::v1::Device& device : door.engine().devices()) {
      *response.add_devices() = device;
    }
  }
  Finish(reactor, absl::OkStatus());
  return reactor;
}

}  // namespace phobos::rpc
