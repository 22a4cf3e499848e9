// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/arguments.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tests/status_matchers.h"

namespace phobos::tuner {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::HasSubstr;

constexpr uid_t kUid = 1000;

std::vector<std::byte> Filled(size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

// What a worker would read there.
std::vector<std::byte> Read(const Arguments& arguments, int memory, int64_t offset, size_t bytes) {
  std::vector<std::byte> read(bytes);
  EXPECT_EQ(pread(arguments.memory()[static_cast<size_t>(memory)].fd, read.data(), bytes, offset),
            static_cast<ssize_t>(bytes));
  return read;
}

TEST(Arguments, CopiesBytes) {
  CopyPool pool(int64_t{1} << 30);
  std::vector<std::byte> x = Filled(20'000'001, 1),
                         y = Filled(7, 2);  // one large enough for threads
  x.back() = std::byte{9};
  ASSERT_OK_AND_ASSIGN(
      const auto arguments,
      Arguments::Copy(pool, kUid, {{"x", x, 16}, {"y", y, 255}, {"empty", {}, 0}}));
  ASSERT_EQ(arguments->tensors().size(), 3u);
  const Arguments::Copied& copied = arguments->tensors()[0];
  EXPECT_EQ(copied.address_mod_256, 16);
  EXPECT_EQ(copied.expected_memory, -1);
  EXPECT_EQ(Read(*arguments, copied.memory, copied.offset_bytes, x.size()), x);
  EXPECT_EQ(arguments->tensors()[1].bytes, 7);
  EXPECT_EQ(
      Read(*arguments, arguments->tensors()[1].memory, arguments->tensors()[1].offset_bytes, 7), y);
}

// The rest of a block, past the arguments, is what kernels of another user could read.
TEST(Arguments, MemoryOfOneUserNeverReachesAnother) {
  CopyPool pool(1 << 20);
  const auto secret = Filled(100'000, 7), x = Filled(10, 1), large = Filled(1'000'000, 2);
  ASSERT_OK(Arguments::Copy(pool, kUid, {{"x", secret, 0}}));
  {
    ASSERT_OK_AND_ASSIGN(const auto others, Arguments::Copy(pool, kUid + 1, {{"x", x, 0}}));
    ASSERT_OK(others->CopyExpected({{"x", x, 0}}));
    for (const int memory : {0, 1}) {
      const auto bytes = static_cast<size_t>(others->memory()[static_cast<size_t>(memory)].bytes);
      EXPECT_THAT(Read(*others, memory, 0, bytes),
                  ::testing::Not(::testing::Contains(std::byte{7})));
    }
  }
  {
    ASSERT_OK_AND_ASSIGN(const auto again, Arguments::Copy(pool, kUid, {{"x", x, 0}}));
    EXPECT_EQ(Read(*again, 0, 50'000, 1)[0], std::byte{7}) << "his own memory is used again, warm";
  }
  EXPECT_OK(Arguments::Copy(pool, kUid + 2, {{"x", large, 0}})) << "idle memory makes room";
}

TEST(Arguments, ExpectedAndReplaced) {
  CopyPool pool(int64_t{1} << 30);
  const auto x = Filled(100, 1), out = Filled(50, 0), want = Filled(50, 7), fresh = Filled(50, 5);
  ASSERT_OK_AND_ASSIGN(const auto arguments,
                       Arguments::Copy(pool, kUid, {{"x", x, 0}, {"out", out, 0}}));
  ASSERT_OK(arguments->CopyExpected({{"out", want, 0}}));
  const Arguments::Copied& copied = arguments->tensors()[1];
  ASSERT_EQ(copied.expected_memory, 1);
  EXPECT_EQ(Read(*arguments, 1, copied.expected_offset_bytes, 50), want);
  ASSERT_OK(arguments->Replace({{"out", fresh, 0}}));
  EXPECT_EQ(Read(*arguments, copied.memory, copied.offset_bytes, 50), fresh);
  EXPECT_EQ(Read(*arguments, 0, arguments->tensors()[0].offset_bytes, 100), x);
  EXPECT_THAT(arguments->CopyExpected({{"z", want, 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"z\"")));
  EXPECT_THAT(arguments->Replace({{"x", want, 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("50, but it has 100")));
}

TEST(Arguments, ATokenNamesTheBytesAsTheyAre) {
  CopyPool pool(1 << 20);
  const auto x = Filled(10, 1), y = Filled(10, 2);
  ASSERT_OK_AND_ASSIGN(const auto first, Arguments::Copy(pool, kUid, {{"x", x, 16}}));
  ASSERT_OK_AND_ASSIGN(const auto second, Arguments::Copy(pool, kUid, {{"x", x, 16}}));
  const uint64_t token = first->token();
  EXPECT_NE(token, 0u);
  EXPECT_NE(token, second->token());
  EXPECT_EQ(first->PreloadCall().token(), token);
  EXPECT_EQ(first->PreloadCall().tensors(0).address_mod_256(), 16);
  ASSERT_OK(first->CopyExpected({{"x", y, 0}}));
  ASSERT_OK(first->Replace({}));
  EXPECT_EQ(first->token(), token);
  ASSERT_OK(first->Replace({{"x", y, 0}}));
  EXPECT_NE(first->token(), token);
  EXPECT_NE(first->token(), second->token());
}

TEST(CopyPool, PreparedMemoryIsTheNextCopys) {
  CopyPool pool(1 << 20);
  pool.Prepare(100'000, kUid);
  const int64_t held = pool.held_bytes();
  EXPECT_GE(held, 100'000);
  const auto x = Filled(100'000, 1);
  ASSERT_OK_AND_ASSIGN(const auto arguments, Arguments::Copy(pool, kUid, {{"x", x, 0}}));
  EXPECT_EQ(pool.held_bytes(), held);
  pool.Prepare(2 << 20, kUid);  // over the limit: no harm
  EXPECT_EQ(pool.held_bytes(), held);
}

TEST(Arguments, MemoryIsSealedAgainstShrinking) {
  CopyPool pool(int64_t{1} << 30);
  const auto x = Filled(100, 1);
  ASSERT_OK_AND_ASSIGN(const auto arguments, Arguments::Copy(pool, kUid, {{"x", x, 0}}));
  EXPECT_NE(fcntl(arguments->memory()[0].fd, F_GET_SEALS) & F_SEAL_SHRINK, 0);
  EXPECT_NE(ftruncate(arguments->memory()[0].fd, 0), 0);
}

TEST(CopyPool, KeepsMemoryForTheNextJobUntilTrimmed) {
  CopyPool pool(int64_t{1} << 30);
  const auto x = Filled(1'000'000, 1);
  int fd = -1;
  {
    ASSERT_OK_AND_ASSIGN(const auto arguments, Arguments::Copy(pool, kUid, {{"x", x, 0}}));
    fd = arguments->memory()[0].fd;
  }
  const int64_t held = pool.held_bytes();
  EXPECT_GE(held, 1'000'000);
  {
    ASSERT_OK_AND_ASSIGN(const auto again, Arguments::Copy(pool, kUid, {{"x", x, 0}}));
    EXPECT_EQ(again->memory()[0].fd, fd);
    EXPECT_EQ(pool.held_bytes(), held);
    pool.Trim();
    EXPECT_EQ(pool.held_bytes(), held);  // in use
  }
  pool.Trim();
  EXPECT_EQ(pool.held_bytes(), 0);
}

TEST(CopyPool, LimitCountsWhatIsInUse) {
  CopyPool pool(10 << 20);
  const auto four = Filled(4 << 20, 1), seven = Filled(7 << 20, 1);
  {
    ASSERT_OK_AND_ASSIGN(const auto first, Arguments::Copy(pool, kUid, {{"x", four, 0}}));
    EXPECT_THAT(Arguments::Copy(pool, kUid, {{"x", seven, 0}}),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         ::testing::AllOf(HasSubstr("7340032"), HasSubstr("10485760"),
                                          HasSubstr("4194304"))));
  }
  // Idle memory makes room.
  EXPECT_OK(Arguments::Copy(pool, kUid, {{"x", seven, 0}}));
}

// Arguments may outlive the pool.
TEST(CopyPool, MayGoFirst) {
  auto pool = std::make_unique<CopyPool>(1 << 20);
  const auto x = Filled(100, 1);
  ASSERT_OK_AND_ASSIGN(auto arguments, Arguments::Copy(*pool, kUid, {{"x", x, 0}}));
  pool.reset();
  EXPECT_EQ(Read(*arguments, 0, 0, 100), x);
  arguments.reset();
}

}  // namespace
}  // namespace phobos::tuner
