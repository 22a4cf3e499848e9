// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/server.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/rpc_method.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "proto/google/rpc/status.pb.h"
#include "proto/phobos/tuner/v1/admin.grpc.pb.h"
#include "proto/phobos/tuner/v1/cache.grpc.pb.h"
#include "proto/phobos/tuner/v1/tuner.grpc.pb.h"
#include "tests/daemon/engine/engines.h"
#include "tests/daemon/rpc/doors.h"

namespace phobos::rpc {
namespace {

using ::testing::HasSubstr;

Facts SomeFacts() {
  Facts facts;
  facts.daemon_version = "9.8.7";
  facts.cache_dir = "/somewhere";
  facts.is_private = true;
  return facts;
}

grpc::Status Hello(const std::shared_ptr<grpc::Channel>& channel, int wire_version,
                   tuner::v1::HelloResponse& response) {
  grpc::ClientContext context;
  tuner::v1::HelloRequest request;
  request.set_wire_version(wire_version);
  return tuner::v1::TunerService::NewStub(channel)->Hello(&context, request, &response);
}

tuner::v1::ErrorDetail DetailOf(const grpc::Status& status) {
  google::rpc::Status details;
  tuner::v1::ErrorDetail detail;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), status.error_code());
  EXPECT_EQ(details.message(), status.error_message());
  EXPECT_EQ(details.details_size(), 1);
  EXPECT_TRUE(details.details(0).UnpackTo(&detail));
  return detail;
}

TEST(Server, HelloTellsVersionsAndDevices) {
  engine::EngineFixture house;
  house.Start();
  const Served served(SomeFacts(), house.engine.get());
  tuner::v1::HelloResponse response;
  const grpc::Status status = Hello(served.Connect(), 1, response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.wire_version(), 1);
  EXPECT_EQ(response.daemon_version(), "9.8.7");
  EXPECT_EQ(response.cache_dir(), "/somewhere");
  ASSERT_EQ(response.devices_size(), 1);
  EXPECT_EQ(response.devices(0).uuid(), "host");
}

TEST(Server, ErrorsCarryTheDetail) {
  engine::EngineFixture house;
  house.Start();
  const Served served(SomeFacts(), house.engine.get());
  tuner::v1::HelloResponse response;
  const grpc::Status status = Hello(served.Connect(), 0, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailOf(status).reason(), tuner::v1::ERROR_REASON_BAD_ARGUMENT);
  EXPECT_EQ(DetailOf(status).remedy(), "send 1");
}

TEST(Server, VerbsThatItLacksSaySo) {
  engine::EngineFixture house;
  house.Start();
  const Served served(SomeFacts(), house.engine.get());
  const auto cache = tuner::v1::CacheService::NewStub(served.Connect());
  grpc::ClientContext context;
  tuner::v1::PinResponse response;
  const grpc::Status status = cache->Pin(&context, {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("Pin is not available"));

  grpc::ClientContext export_context;
  const auto stream = cache->Export(&export_context, {});
  tuner::v1::ExportChunk chunk;
  EXPECT_FALSE(stream->Read(&chunk));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST(Server, RedirectsToTheOwnerOfTheCache) {
  Facts facts = SomeFacts();
  facts.redirect_socket = "/elsewhere/tuner.sock";
  const Served served(std::move(facts), nullptr);
  const auto channel = served.Connect();
  tuner::v1::HelloResponse response;
  ASSERT_TRUE(Hello(channel, 1, response).ok());
  EXPECT_EQ(response.redirect_socket(), "/elsewhere/tuner.sock");

  grpc::ClientContext context;
  tuner::v1::GetStatusResponse status_response;
  const grpc::Status status =
      tuner::v1::AdminService::NewStub(channel)->GetStatus(&context, {}, &status_response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("/elsewhere/tuner.sock"));
}

TEST(Server, AFailureIsTheAnswerToEverything) {
  Facts facts = SomeFacts();
  facts.failure = "the compiler cannot be run";
  const Served served(std::move(facts), nullptr);
  tuner::v1::HelloResponse response;
  const grpc::Status hello = Hello(served.Connect(), 1, response);
  EXPECT_EQ(hello.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(hello.error_message(), HasSubstr("the compiler cannot be run"));
  grpc::ClientContext context;
  tuner::v1::GetStatusResponse status;
  EXPECT_EQ(tuner::v1::AdminService::NewStub(served.Connect())
                ->GetStatus(&context, {}, &status)
                .error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

// Whatever the socket's rights let in: a private daemon serves its own user alone.
TEST(Server, APrivateOneServesItsOwnUserAlone) {
  engine::EngineFixture house;
  house.Start();
  for (const bool is_private : {true, false}) {
    Facts facts = SomeFacts();
    facts.is_private = is_private;
    Served served(std::move(facts), house.engine.get());
    const auto channel = served.Connect();
    tuner::v1::HelloResponse response;
    ASSERT_TRUE(Hello(channel, 1, response).ok());
    Peer other;
    other.uid = geteuid() + 1;
    for (int fd = 0; fd < 1024; ++fd) served.door().peers().Enter(fd, other);
    const grpc::Status status = Hello(channel, 1, response);
    EXPECT_EQ(status.error_code(),
              is_private ? grpc::StatusCode::PERMISSION_DENIED : grpc::StatusCode::OK);
    if (!is_private) continue;
    EXPECT_EQ(DetailOf(status).reason(), tuner::v1::ERROR_REASON_NOT_PERMITTED);
    grpc::ClientContext context;
    tuner::v1::GetStatusResponse secrets;
    EXPECT_EQ(
        tuner::v1::AdminService::NewStub(channel)->GetStatus(&context, {}, &secrets).error_code(),
        grpc::StatusCode::PERMISSION_DENIED);
  }
}

TEST(Server, CountsConnectionsAndRefusesTooMany) {
  engine::EngineFixture house;
  house.Start();
  Served served(SomeFacts(), house.engine.get(), /*calls_per_uid=*/512, /*connections_per_uid=*/2);
  tuner::v1::HelloResponse response;
  const auto first = served.Connect();
  const auto second = served.Connect();
  ASSERT_TRUE(Hello(first, 1, response).ok());
  ASSERT_TRUE(Hello(second, 1, response).ok());
  EXPECT_EQ(served.door().peers().open(), 2);
  {
    const grpc::Status status = Hello(served.Connect(), 1, response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(DetailOf(status).reason(), tuner::v1::ERROR_REASON_LIMIT);
  }
  while (served.door().peers().open() > 2) absl::SleepFor(absl::Milliseconds(1));
  while (served.door().calls() > 0) absl::SleepFor(absl::Milliseconds(1));
}

TEST(Server, HealthAndReflectionAreOn) {
  engine::EngineFixture house;
  house.Start();
  const Served served(SomeFacts(), house.engine.get());
  const auto channel = served.Connect();
  // An empty health request is the empty message; SERVING is field 1 with value 1.
  grpc::ClientContext context;
  const grpc::internal::RpcMethod method("/grpc.health.v1.Health/Check",
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  tuner::v1::HelloRequest empty;
  tuner::v1::HelloRequest answer;
  const grpc::Status status =
      grpc::internal::BlockingUnaryCall<tuner::v1::HelloRequest, tuner::v1::HelloRequest>(
          channel.get(), method, &context, empty, &answer);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(answer.wire_version(), 1);
}

}  // namespace
}  // namespace phobos::rpc
