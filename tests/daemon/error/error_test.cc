// SPDX-License-Identifier: Apache-2.0
#include "daemon/error/error.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace phobos::error {
namespace {

using ::testing::HasSubstr;

// None of them is an error of the caller's, as a code of Abseil's for an errno may say it is.
TEST(FromErrno, WhatTheMachineLacksHasARemedy) {
  for (const int error :
       {ENOSPC, EDQUOT, EROFS, EACCES, EPERM, EMFILE, ENFILE, EFBIG, ENOMEM, EAGAIN}) {
    const absl::Status status = FromErrno(error, "open", "/a/file");
    EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("open /a/file: "));
    const tuner::v1::ErrorDetail detail = DetailOf(status);
    EXPECT_EQ(detail.reason(), tuner::v1::ERROR_REASON_MACHINE);
    EXPECT_NE(detail.remedy(), "") << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(detail.remedy()));
  }
  EXPECT_THAT(std::string(FromErrno(ENOSPC, "write", "/f").message()), HasSubstr("No space left"));
}

// Another folder does not help a call that has none, and other memory does.
TEST(FromErrno, OnlyWhatHasAPathHasADisksRemedy) {
  for (const int error : {ENOSPC, EDQUOT, EROFS, EACCES, EPERM}) {
    const absl::Status status = FromErrno(error, "pidfd_open");
    EXPECT_EQ(status.code(), absl::ErrnoToStatusCode(error)) << status;
    EXPECT_EQ(DetailOf(status).remedy(), "") << status;
    EXPECT_EQ(DetailOf(FromErrno(error, "open", "/a")).remedy(), kDiskRemedy);
  }
  EXPECT_EQ(DetailOf(FromErrno(ENOMEM, "mmap")).remedy(), kLimitsRemedy);
}

TEST(FromErrno, NoErrnoIsAnErrorStill) {
  EXPECT_TRUE(absl::IsInternal(FromErrno(0, "read", "/a/file")));
  EXPECT_TRUE(absl::IsInternal(FromErrno(0, "poll")));
}

TEST(FromErrno, OthersAreAbseils) {
  EXPECT_TRUE(absl::IsNotFound(FromErrno(ENOENT, "open")));
  EXPECT_EQ(DetailOf(FromErrno(ENOENT, "open")).remedy(), "");
}

}  // namespace
}  // namespace phobos::error
