// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/link/mapping.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "tests/status_matchers.h"

namespace phobos::worker {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int64_t kBytes = 8192;

absl::StatusOr<std::vector<absl::Span<const std::byte>>> MapOne(MappingPool& pool, Fd fd) {
  EXPECT_TRUE(fd.ok());
  std::vector<Fd> descriptors;
  descriptors.push_back(std::move(fd));
  return pool.Map(descriptors);
}

Fd Memory(int seals) {
  Fd memory(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(memory.get(), kBytes), 0);
  EXPECT_EQ(fcntl(memory.get(), F_ADD_SEALS, seals), 0);
  return memory;
}

TEST(MappingPool, MapsWhatCannotShrink) {
  MappingPool pool;
  ASSERT_OK_AND_ASSIGN(const auto spans, MapOne(pool, Memory(F_SEAL_SHRINK)));
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].size(), static_cast<size_t>(kBytes));
  EXPECT_EQ(spans[0][kBytes - 1], std::byte{0});
}

TEST(MappingPool, RefusesWhatCanShrink) {
  MappingPool pool;
  EXPECT_THAT(MapOne(pool, Memory(F_SEAL_GROW)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not sealed")));
}

// A file on disk has no seals at all: asking for them fails.
TEST(MappingPool, RefusesAFile) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/file-", getpid());
  Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(ftruncate(file.get(), kBytes), 0);
  MappingPool pool;
  EXPECT_THAT(MapOne(pool, std::move(file)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not sealed")));
}

// Whether a page of this process is there.
bool IsMapped(const std::byte* address) {
  unsigned char present = 0;
  return mincore(const_cast<std::byte*>(address), 1, &present) == 0;
}

TEST(MappingPool, KeepsWhatTheCallBeforeNamed) {
  MappingPool pool;
  const Fd arguments = Memory(F_SEAL_SHRINK);
  const Fd answers = Memory(F_SEAL_SHRINK);
  const auto both = [&] {
    std::vector<Fd> fds;
    fds.emplace_back(dup(arguments.get()));
    fds.emplace_back(dup(answers.get()));
    return fds;
  };
  const auto first = pool.Map(both());
  ASSERT_OK(first);
  ASSERT_OK(MapOne(pool, Fd(dup(arguments.get()))));
  const auto second = pool.Map(both());
  ASSERT_OK(second);
  for (const size_t i : {0U, 1U}) EXPECT_EQ((*first)[i].data(), (*second)[i].data());
  ASSERT_OK(MapOne(pool, Fd(dup(arguments.get()))));
  ASSERT_OK(MapOne(pool, Fd(dup(arguments.get()))));
  EXPECT_TRUE(IsMapped((*second)[0].data()));
  EXPECT_FALSE(IsMapped((*second)[1].data())) << "named two calls ago";
}

}  // namespace
}  // namespace phobos::worker
