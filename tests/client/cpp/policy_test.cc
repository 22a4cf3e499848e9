// SPDX-License-Identifier: Apache-2.0
//
// The table of PHOBOS_TUNE, row by row.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "google/protobuf/any.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"
#include "tests/client/cpp/kernel_fixture.h"

namespace phobos {
namespace {

namespace proto = ::phobos::tuner::v1;
using phobos::testing::AddGrid;
using std::chrono::milliseconds;

class PolicyTest : public phobos::testing::KernelFixture {};

TEST_F(PolicyTest, PolicyOnAHit) {
  tuner_.Store(1000, 1);
  for (const char* policy : {"auto", "frozen", "off"}) {
    const auto kernel = Open(true, policy);
    Arrays a(1000);
    EXPECT_EQ(Launch(*kernel, a), "ok") << policy;
    EXPECT_EQ(kernel->plans().Present({1000})->variant().variant, 1) << policy;
  }
  EXPECT_EQ(tuner_.tunes, 0);
}

TEST_F(PolicyTest, PolicyFrozenOnAMiss) {
  for (const bool with_reference : {true, false}) {
    setenv("PHOBOS_TUNE", "frozen", 1);
    const auto kernel = Open(with_reference);
    Arrays a(1000);
    const Status status = kernel->Launch(a.Arguments(), AddGrid);
    EXPECT_EQ(status.code(), Code::kFailedPrecondition);
    EXPECT_NE(status.message().find("N=1000"), std::string::npos) << status.message();
    ASSERT_NE(status.detail(), nullptr);
    EXPECT_EQ(status.detail()->key, "N=1000");
    EXPECT_EQ(status.detail()->kernel, "add");
    EXPECT_EQ(a.out[0], -7);
  }
  EXPECT_EQ(tuner_.tunes, 0);
}

TEST_F(PolicyTest, PolicyOffOnAMiss) {
  for (const bool with_reference : {true, false}) {
    const auto kernel = Open(with_reference, "off");
    Arrays a(1000);
    EXPECT_EQ(Launch(*kernel, a), "ok");
    EXPECT_TRUE(a.IsSum());
    const int lookups = tuner_.lookups;
    for (int i = 0; i < 50; ++i) ASSERT_EQ(Launch(*kernel, a), "ok");
    EXPECT_LE(tuner_.lookups, lookups + 1);
  }
  EXPECT_EQ(tuner_.tunes, 0);
}

TEST_F(PolicyTest, PolicyWithoutADaemon) {
  const auto automatic = Open(true, "auto");
  const auto frozen = Open(true, "frozen");
  const auto off = Open(true, "off");
  Arrays a(1000);
  ASSERT_EQ(Launch(*off, a), "ok");  // the first choices are here now
  WithoutDaemon();
  EXPECT_EQ(automatic->Launch(a.Arguments(), AddGrid).code(), Code::kUnavailable);
  EXPECT_EQ(frozen->Launch(a.Arguments(), AddGrid).code(), Code::kUnavailable);
  std::this_thread::sleep_for(milliseconds(1100));
  Arrays b(1000);
  EXPECT_EQ(Launch(*off, b), "ok");
  EXPECT_TRUE(b.IsSum());
}

// An answer of Unavailable that says why.
grpc::Status Unavailable(proto::ErrorReason reason, const std::string& message) {
  proto::ErrorDetail detail;
  detail.set_reason(reason);
  google::protobuf::Any any;
  any.PackFrom(detail);
  const std::string bytes = any.SerializeAsString();
  EXPECT_LT(bytes.size(), 128u);
  // google.rpc.Status {details: [any]}.
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, message,
                      std::string("\x1a") + static_cast<char>(bytes.size()) + bytes);
}

TEST_F(PolicyTest, WhatADaemonAnswersIsNotToldAsItsAbsence) {
  for (const proto::ErrorReason reason :
       {proto::ERROR_REASON_MACHINE, proto::ERROR_REASON_DRAINING}) {
    tuner_.compile_status = Unavailable(reason, "no space left");
    Arrays a(1000);
    EXPECT_EQ(Launch(*Open(true, "off"), a), "no space left");
  }
  tuner_.compile_status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "the connection broke");
  Arrays a(1000);
  EXPECT_EQ(Launch(*Open(true, "off"), a),
            "PHOBOS_TUNE=off launches first choices, and it is the daemon that compiles them (it "
            "tunes nothing then); the connection broke");
}

TEST_F(PolicyTest, AnUnknownPolicyIsAnError) {
  const auto kernel = Open(true, "never");
  Arrays a(1000);
  EXPECT_EQ(kernel->Launch(a.Arguments(), AddGrid).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace phobos
