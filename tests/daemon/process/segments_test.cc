// SPDX-License-Identifier: Apache-2.0
//
// SegmentPool, and SideServer as a client sees it: over a real socket, with a real descriptor.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "absl/time/clock.h"
#include "base/fd.h"
#include "daemon/process/segment_pool.h"
#include "daemon/process/side_server.h"
#include "daemon/process/socket.h"
#include "tests/status_matchers.h"

namespace phobos::process {
namespace {

using ::phobos::testing::IsOk;
using ::phobos::testing::StatusIs;
using ::testing::HasSubstr;

constexpr SegmentOwner kOwner = {1000, 1};
const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(SegmentPool, ALoanIsZeroAndWhole) {
  SegmentPool pool(1 << 20);
  const absl::StatusOr<SegmentPool::Loan> loan = pool.Lend(kOwner, 5000, {}, kNow);
  ASSERT_THAT(loan, IsOk());
  EXPECT_EQ(loan->bytes(), 8192);
  EXPECT_EQ(loan->memory().size(), 8192);
  EXPECT_EQ(loan->ticket().size(), 16);
  EXPECT_EQ(loan->memory()[8191], std::byte{0});
  EXPECT_EQ(pool.bytes(), 8192);
}

TEST(SegmentPool, TheDescriptorCannotChangeItsSize) {
  SegmentPool pool(1 << 20);
  const absl::StatusOr<SegmentPool::Loan> loan = pool.Lend(kOwner, 4096, {}, kNow);
  const auto redeemed = pool.Redeem(loan->ticket(), 1000, kNow);
  ASSERT_THAT(redeemed, IsOk());
  EXPECT_NE(ftruncate(redeemed->fd, 0), 0);
  EXPECT_NE(ftruncate(redeemed->fd, 8192), 0);
  EXPECT_NE(fcntl(redeemed->fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(pwrite(redeemed->fd, "x", 1, 0), 1);
  EXPECT_EQ(loan->memory()[0], std::byte{'x'});
}

TEST(SegmentPool, TicketsWorkOnceForTheirUidInTime) {
  SegmentPool pool(1 << 20);
  const absl::StatusOr<SegmentPool::Loan> loan = pool.Lend(kOwner, 4096, {}, kNow);
  EXPECT_THAT(pool.Redeem(std::string(16, 'x'), 1000, kNow),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(pool.Redeem(loan->ticket(), 1001, kNow),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(pool.Redeem(loan->ticket(), 1000, kNow + absl::Seconds(31)),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(pool.Redeem(loan->ticket(), 1000, kNow + absl::Seconds(30)), IsOk());
  EXPECT_THAT(pool.Redeem(loan->ticket(), 1000, kNow),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST(SegmentPool, TicketsDiffer) {
  SegmentPool pool(1 << 20);
  const auto one = pool.Lend(kOwner, 1, {}, kNow);
  const auto two = pool.Lend(kOwner, 1, {}, kNow);
  EXPECT_NE(one->ticket(), two->ticket());
  EXPECT_NE(one->id(), two->id());
}

TEST(SegmentPool, ChargesEachUid) {
  SegmentPool pool(8192);
  auto one = pool.Lend(kOwner, 8192, {}, kNow);
  ASSERT_THAT(one, IsOk());
  const auto two = pool.Lend({1000, 2}, 1, {}, kNow);
  EXPECT_THAT(two, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("8192")));
  EXPECT_THAT(pool.Lend({1001, 3}, 1, {}, kNow), IsOk());
  // A ticket that nobody used frees its segment; who reads from it meanwhile keeps the memory, and
  // with it the charge.
  pool.Tend(kNow + absl::Seconds(31));
  EXPECT_EQ(one->memory()[0], std::byte{0});
  EXPECT_THAT(pool.Lend({1000, 2}, 1, {}, kNow), StatusIs(absl::StatusCode::kResourceExhausted));
  *one = SegmentPool::Loan();
  EXPECT_THAT(pool.Lend({1000, 2}, 1, {}, kNow), IsOk());
}

TEST(SegmentPool, WhatALoanKeepsMappedStaysCharged) {
  SegmentPool pool(8192);
  auto loan = pool.Lend(kOwner, 8192, {}, kNow);
  ASSERT_THAT(pool.Redeem(loan->ticket(), kOwner.uid, kNow), IsOk());
  pool.Release(loan->id());
  EXPECT_THAT(pool.Lend(kOwner, 4096, {}, kNow), StatusIs(absl::StatusCode::kResourceExhausted));
  *loan = SegmentPool::Loan();
  EXPECT_THAT(pool.Lend(kOwner, 8192, {}, kNow), IsOk());
}

TEST(SegmentPool, ImpossibleSizesAreRefused) {
  SegmentPool pool(1 << 20);
  EXPECT_THAT(pool.Lend(kOwner, int64_t{1} << 50, {}, kNow),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(pool.Lend(kOwner, 0, {}, kNow), IsOk());
}

TEST(SegmentPool, HeldSegmentsAreLentAgainToTheirOwnerOnly) {
  SegmentPool pool(1 << 20);
  uint64_t id = 0;
  {
    const auto loan = pool.Lend(kOwner, 8192, {}, kNow);
    id = loan->id();
    // Not fetched yet: not held.
    EXPECT_NE(pool.Lend(kOwner, 4096, {id}, kNow)->id(), id);
    ASSERT_THAT(pool.Redeem(loan->ticket(), 1000, kNow), IsOk());
    EXPECT_NE(pool.Lend(kOwner, 4096, {id}, kNow)->id(), id);  // lent to a job now
  }
  EXPECT_NE(pool.Lend({1000, 2}, 4096, {id}, kNow)->id(), id);  // another process
  EXPECT_NE(pool.Lend(kOwner, 8193, {id}, kNow)->id(), id);     // too small
  const auto again = pool.Lend(kOwner, 4096, {77, id}, kNow);
  EXPECT_EQ(again->id(), id);
  EXPECT_EQ(again->ticket(), "");
}

TEST(SegmentPool, RestingPagesGoBackToTheSystem) {
  SegmentPool pool(1 << 20);
  int fd = -1;
  uint64_t id = 0;
  {
    const auto loan = pool.Lend(kOwner, 1 << 16, {}, kNow);
    id = loan->id();
    fd = pool.Redeem(loan->ticket(), 1000, kNow)->fd;
    const std::string bytes(1 << 16, 'b');
    ASSERT_EQ(pwrite(fd, bytes.data(), bytes.size(), 0), 1 << 16);
    pool.Tend(absl::Now() + absl::Hours(1));  // lent: not touched
    EXPECT_EQ(loan->memory()[0], std::byte{'b'});
  }
  struct stat before = {};
  ASSERT_EQ(fstat(fd, &before), 0);
  EXPECT_GT(before.st_blocks, 0);
  pool.Tend(absl::Now() + absl::Hours(1));
  struct stat after = {};
  ASSERT_EQ(fstat(fd, &after), 0);
  EXPECT_EQ(after.st_blocks, 0);
  EXPECT_EQ(after.st_size, 1 << 16);
  EXPECT_EQ(pool.Lend(kOwner, 1 << 16, {id}, kNow)->memory()[0], std::byte{0});
}

class SideServerTest : public ::testing::Test {
 protected:
  SideServerTest() : pool_(1 << 20) {
    folder_ = "/tmp/phobos-side-XXXXXX";  // short: a socket's path has 107 bytes at most
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/s";
    absl::StatusOr<Fd> listener = Listen(path_, /*is_private=*/true);
    EXPECT_THAT(listener, IsOk());
    absl::StatusOr<std::unique_ptr<SideServer>> server =
        SideServer::Start(*std::move(listener), pool_, /*connections_per_uid=*/4);
    EXPECT_THAT(server, IsOk());
    server_ = *std::move(server);
  }
  ~SideServerTest() override {
    server_.reset();
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }

  Fd Connect() {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
    Fd fd(socket(AF_UNIX, SOCK_STREAM, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }

  // Sends `ticket` and reads the answer. The descriptor is none when the server hung up instead.
  static Fd Fetch(int connection, const std::string& ticket, int64_t* size) {
    EXPECT_EQ(send(connection, ticket.data(), ticket.size(), MSG_NOSIGNAL), ssize_t(ticket.size()));
    unsigned char bytes[8] = {};
    iovec vector = {bytes, sizeof(bytes)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    if (recvmsg(connection, &message, 0) != sizeof(bytes)) return Fd();
    *size = 0;
    for (int i = 7; i >= 0; --i) *size = *size << 8 | bytes[i];
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return Fd(fd);
  }

  // Of this process.
  SegmentPool::Loan Lend() { return *pool_.Lend({getuid(), getpid()}, 4096, {}, absl::Now()); }

  SegmentPool pool_;
  std::string folder_;
  std::string path_;
  std::unique_ptr<SideServer> server_;
};

TEST_F(SideServerTest, HandsTheSegmentOver) {
  const SegmentPool::Loan loan = Lend();
  const Fd connection = Connect();
  int64_t size = 0;
  const Fd memory = Fetch(connection.get(), loan.ticket(), &size);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(size, 4096);
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::memcpy(mapped, "hello", 5);
  EXPECT_EQ(std::memcmp(loan.memory().data(), "hello", 5), 0);
  munmap(mapped, size);
}

TEST_F(SideServerTest, ATicketInTwoPiecesIsATicket) {
  const SegmentPool::Loan loan = Lend();
  const Fd connection = Connect();
  ASSERT_EQ(send(connection.get(), loan.ticket().data(), 7, 0), 7);
  absl::SleepFor(absl::Milliseconds(20));
  int64_t size = 0;
  EXPECT_TRUE(Fetch(connection.get(), loan.ticket().substr(7), &size).ok());
}

TEST_F(SideServerTest, WrongUsedAndOverlongTicketsAreHungUpOn) {
  const SegmentPool::Loan loan = Lend();
  int64_t size = 0;
  const Fd wrong = Connect();
  EXPECT_FALSE(Fetch(wrong.get(), std::string(16, 'w'), &size).ok());
  const Fd overlong = Connect();
  EXPECT_FALSE(Fetch(overlong.get(), loan.ticket() + "x", &size).ok());
  const Fd right = Connect();
  EXPECT_TRUE(Fetch(right.get(), loan.ticket(), &size).ok());
  const Fd again = Connect();
  EXPECT_FALSE(Fetch(again.get(), loan.ticket(), &size).ok());
}

TEST_F(SideServerTest, TheSegmentGoesWithItsConnection) {
  {
    const SegmentPool::Loan loan = Lend();
    const Fd connection = Connect();
    int64_t size = 0;
    ASSERT_TRUE(Fetch(connection.get(), loan.ticket(), &size).ok());
    EXPECT_EQ(pool_.bytes(), 4096);
  }
  while (pool_.bytes() > 0) absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(SideServerTest, TalkingAfterTheTicketEndsIt) {
  const SegmentPool::Loan loan = Lend();
  const Fd connection = Connect();
  int64_t size = 0;
  ASSERT_TRUE(Fetch(connection.get(), loan.ticket(), &size).ok());
  ASSERT_EQ(send(connection.get(), "?", 1, MSG_NOSIGNAL), 1);
  char byte = 0;
  EXPECT_EQ(recv(connection.get(), &byte, 1, 0), 0);
  while (pool_.bytes() > 0) absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(SideServerTest, ConnectionsAreCapped) {
  std::vector<Fd> open;
  for (int i = 0; i < 4; ++i) open.push_back(Connect());
  const Fd fifth = Connect();
  char byte = 0;
  EXPECT_EQ(recv(fifth.get(), &byte, 1, 0), 0);
  open.pop_back();
  // A place is free once the server has seen the end of the other.
  int64_t size = 0;
  const SegmentPool::Loan loan = Lend();
  Fd memory;
  for (int i = 0; i < 1000 && !memory.ok(); ++i) {
    open.push_back(Connect());
    memory = Fetch(open.back().get(), loan.ticket(), &size);
    if (!memory.ok()) open.pop_back();
  }
  EXPECT_TRUE(memory.ok());
}

}  // namespace
}  // namespace phobos::process
