// SPDX-License-Identifier: Apache-2.0
#include "client/cli/daemon.h"

#include <fcntl.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel_posix.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/stub/endpoint.h"
#include "client/stub/wire/codec.h"
#include "proto/phobos/tuner/v1/admin.grpc.pb.h"
#include "proto/phobos/tuner/v1/cache.grpc.pb.h"

namespace phobos::cli {
namespace {

namespace proto = tuner::v1;

constexpr std::chrono::seconds kLimit(30);
constexpr int kPageSize = 1000;

void SetLimit(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
}

// gRPC's status as ours, with the remedy that rides in its details.
absl::Status OurStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  std::string message = status.error_message();
  if (message.empty())
    message = absl::StrCat("the daemon answers ", absl::StatusCodeToString(code));
  const StatusOr<std::optional<ErrorDetail>> detail =
      stub::DecodeErrorDetail(status.error_details());
  // Without one they are gRPC's own words, of how a connection ended.
  if (code == absl::StatusCode::kUnavailable && detail.ok() && !detail->has_value()) {
    return absl::Status(
        code, absl::StrCat("the connection to the daemon was lost (", message,
                           "): it ended, or this user has too many connections; try again"));
  }
  if (detail.ok() && detail->has_value() && !(*detail)->remedy.empty()) {
    absl::StrAppend(&message, "; ", (*detail)->remedy);
  }
  return absl::Status(code, message);
}

}  // namespace

absl::StatusOr<Daemon> Daemon::Connect(const std::string& socket) {
  stub::Places places = stub::Places::FromEnvironment(socket, "");
  // A tool that looks must not change what there is to see.
  places.why_none_starts =
      "phobosctl starts none (programs go on to the daemon that owns the cache: LOCK in the "
      "cache's folder names its socket)";
  places.environment = {};  // PHOBOS_AUTOSTART is not its
  StatusOr<stub::Reached> reached = stub::Reach(places, {});
  if (!reached.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(reached.status().code()),
                        reached.status().message());
  }
  for (const std::string& warning : reached->warnings) {
    std::fprintf(stderr, "phobosctl: %s\n", warning.c_str());
  }
  const int fd = reached->socket.Release();
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);  // as gRPC wants it
  return Daemon(grpc::CreateInsecureChannelFromFd("localhost", fd));
}

absl::StatusOr<proto::GetStatusResponse> Daemon::GetStatus() {
  grpc::ClientContext context;
  SetLimit(context);
  proto::GetStatusResponse response;
  const absl::Status status =
      OurStatus(proto::AdminService::NewStub(channel_)->GetStatus(&context, {}, &response));
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<std::vector<proto::ResultSummary>> Daemon::ListResults(
    const proto::ResultFilter& filter, int64_t limit) {
  const auto service = proto::CacheService::NewStub(channel_);
  std::vector<proto::ResultSummary> results;
  proto::ListResultsRequest request;
  *request.mutable_filter() = filter;
  do {
    const int64_t left = limit == 0 ? kPageSize : limit - static_cast<int64_t>(results.size());
    request.set_page_size(static_cast<int32_t>(std::min<int64_t>(left, kPageSize)));
    grpc::ClientContext context;
    SetLimit(context);
    proto::ListResultsResponse page;
    const absl::Status status = OurStatus(service->ListResults(&context, request, &page));
    if (!status.ok()) return status;
    for (proto::ResultSummary& result : *page.mutable_results()) {
      results.push_back(std::move(result));
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() &&
           (limit == 0 || static_cast<int64_t>(results.size()) < limit));
  return results;
}

absl::StatusOr<proto::Result> Daemon::GetResult(const std::string& key_digest, int64_t generation) {
  grpc::ClientContext context;
  SetLimit(context);
  proto::GetResultRequest request;
  request.set_key_digest(key_digest);
  request.set_generation(generation);
  proto::GetResultResponse response;
  const absl::Status status =
      OurStatus(proto::CacheService::NewStub(channel_)->GetResult(&context, request, &response));
  if (!status.ok()) return status;
  return std::move(*response.mutable_result());
}

}  // namespace phobos::cli
