// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/error/error.h"
#include "proto/google/rpc/status.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::rpc {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Status FailureOf(int variants, size_t reason_bytes) {
  tuner::v1::ErrorDetail detail;
  detail.set_reason(tuner::v1::ERROR_REASON_NO_WINNER);
  for (int i = 0; i < variants; ++i) {
    tuner::v1::VariantResult& variant = *detail.add_variants();
    variant.set_index(i);
    variant.set_reason(std::string(reason_bytes, 'r'));
    variant.set_race_detail("in so many words");
  }
  return error::Attach(absl::FailedPreconditionError("no variant passed"), detail);
}

tuner::v1::ErrorDetail DetailOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.message(), status.error_message());
  tuner::v1::ErrorDetail detail;
  EXPECT_TRUE(details.details(0).UnpackTo(&detail));
  return detail;
}

TEST(ToGrpc, WhatFitsIsWhole) {
  const grpc::Status status = ToGrpc(FailureOf(3, 500));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "no variant passed");
  const tuner::v1::ErrorDetail detail = DetailOf(status);
  ASSERT_EQ(detail.variants_size(), 3);
  EXPECT_EQ(detail.variants(2).reason(), std::string(500, 'r'));
  EXPECT_EQ(detail.variants(2).race_detail(), "in so many words");
}

TEST(ToGrpc, LongReasonsAreShortenedAndShowIt) {
  const grpc::Status status = ToGrpc(FailureOf(20, 500));
  EXPECT_LT(status.error_details().size(), 4100);
  EXPECT_THAT(status.error_message(), Not(HasSubstr("more variants")));
  const tuner::v1::ErrorDetail detail = DetailOf(status);
  ASSERT_EQ(detail.variants_size(), 20);
  EXPECT_THAT(detail.variants(19).reason(), EndsWith("r ..."));
}

// A header's value has no blanks at its ends, wherever it was cut.
TEST(ToGrpc, ALongMessageIsCutBetweenWordsAndShowsIt) {
  std::string text = "12 34 56789 ";
  while (text.size() < 4000) text += text;
  for (size_t first = 0; first < 12; ++first) {
    const std::string message =
        ToGrpc(absl::FailedPreconditionError(text.substr(first))).error_message();
    EXPECT_LT(message.size(), 2500);
    EXPECT_THAT(message, EndsWith(" ..."));
    EXPECT_NE(message.front(), ' ') << first;
    EXPECT_NE(message[message.size() - 5], ' ') << message;
  }
  EXPECT_EQ(ToGrpc(absl::NotFoundError(" no such file \n")).error_message(), "no such file");
}

TEST(ToGrpc, VariantsThatDoNotFitAreCounted) {
  const grpc::Status status = ToGrpc(FailureOf(500, 300));
  EXPECT_LT(status.error_details().size(), 4100);
  const int shown = DetailOf(status).variants_size();
  EXPECT_GT(shown, 20);
  EXPECT_THAT(status.error_message(), HasSubstr(absl::StrCat(500 - shown, " more variants")));
}

}  // namespace
}  // namespace phobos::rpc
