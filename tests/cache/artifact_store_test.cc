// SPDX-License-Identifier: Apache-2.0
#include "cache/artifact_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/digest.h"
#include "tests/cache/store_rows.h"
#include "tests/status_matchers.h"

namespace phobos::cache {
namespace {

namespace fs = std::filesystem;

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

class ArtifactStoreTest : public ::testing::Test {
 protected:
  ArtifactStoreTest() : folder_(TestFolder()), kernels_(folder_ + "/chip/kernels") {}

  ArtifactStore MustOpen() {
    absl::StatusOr<ArtifactStore> store = ArtifactStore::Open(kernels_);
    EXPECT_OK(store);
    return *std::move(store);
  }

  // A file with these bytes outside the store.
  std::string Built(const std::string& bytes) {
    const std::string path = folder_ + "/built-" + Sha256Hex(bytes).substr(0, 8);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // Adopts it, and makes it look as if it had been used that many minutes ago.
  void AdoptUsed(ArtifactStore& store, const std::string& bytes, int minutes_ago) {
    ASSERT_OK_AND_ASSIGN(const std::string place,
                         store.Adopt(Built(bytes), Sha256Hex(bytes), "so"));
    fs::last_write_time(place,
                        fs::file_time_type::clock::now() - std::chrono::minutes(minutes_ago));
  }

  std::string folder_;
  std::string kernels_;
};

TEST_F(ArtifactStoreTest, WhatWasDamagedIsNotFoundAndIsTakenAnew) {
  ArtifactStore store = MustOpen();
  const std::string bytes = "a kernel", digest = Sha256Hex(bytes);
  ASSERT_OK_AND_ASSIGN(const std::string place, store.Adopt(Built(bytes), digest, "so"));
  for (const std::string& damaged : {std::string("a kernal"), std::string("a ke"), std::string()}) {
    std::ofstream(place, std::ios::binary) << damaged;
    EXPECT_THAT(store.Find(digest, "so"), testing::StatusIs(absl::StatusCode::kNotFound));
    EXPECT_FALSE(fs::exists(place));
    std::ofstream(place, std::ios::binary) << damaged;
    EXPECT_THAT(store.Adopt(Built(bytes), digest, "so"), testing::IsOkAndHolds(place));
    EXPECT_THAT(store.Find(digest, "so"), testing::IsOkAndHolds(place));
  }
}

TEST_F(ArtifactStoreTest, TakesAFileAndFindsIt) {
  ArtifactStore store = MustOpen();
  const std::string bytes("\0ELF and more", 13);
  ASSERT_OK_AND_ASSIGN(const std::string place, store.Adopt(Built(bytes), Sha256Hex(bytes), "so"));
  EXPECT_EQ(place, kernels_ + "/" + Sha256Hex(bytes) + ".so");
  EXPECT_EQ(Bytes(place), bytes);
  EXPECT_THAT(store.Find(Sha256Hex(bytes), "so"), testing::IsOkAndHolds(place));
  EXPECT_THAT(MustOpen().Find(Sha256Hex(bytes), "so"), testing::IsOkAndHolds(place))
      << "another process finds it";
  EXPECT_THAT(store.Find(Sha256Hex(bytes), "ptx"), testing::StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(fs::status(place).permissions() & fs::perms::others_read, fs::perms::others_read);
}

TEST_F(ArtifactStoreTest, RefusesOtherBytesThanItsName) {
  ArtifactStore store = MustOpen();
  EXPECT_THAT(store.Adopt(Built("other"), Sha256Hex("bytes"), "so"),
              testing::StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(store.Adopt(folder_ + "/none", Sha256Hex("bytes"), "so"),
              testing::StatusIs(absl::StatusCode::kNotFound));
  EXPECT_TRUE(fs::is_empty(kernels_)) << "nothing is left behind";
}

TEST_F(ArtifactStoreTest, MakesARemovedFolderAgain) {
  ArtifactStore store = MustOpen();
  const std::string file = Built("machine code");
  fs::remove_all(kernels_);
  ASSERT_OK_AND_ASSIGN(const std::string path, store.Adopt(file, Sha256Hex("machine code"), "so"));
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(ArtifactStoreTest, SaysThatItsDiskRefuses) {
  ArtifactStore store = MustOpen();
  const std::string file = Built("machine code");
  fs::remove_all(kernels_);
  std::ofstream(kernels_) << "not a folder";
  const absl::Status status = store.Adopt(file, Sha256Hex("machine code"), "so").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("(mkostemp " + kernels_));
}

// A folder can be opened, and not read.
TEST_F(ArtifactStoreTest, AFolderIsNoArtifact) {
  ArtifactStore store = MustOpen();
  const std::string digest = Sha256Hex("machine code");
  fs::create_directories(folder_ + "/folder");
  EXPECT_THAT(store.Adopt(folder_ + "/folder", digest, "so"),
              testing::StatusIs(absl::StatusCode::kNotFound, ::testing::HasSubstr("is a folder")));
  fs::create_directories(kernels_ + "/" + digest + ".so");
  EXPECT_THAT(store.Find(digest, "so"), testing::StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ArtifactStoreTest, RefusesNamesThatAreNone) {
  ArtifactStore store = MustOpen();
  std::ofstream(folder_ + "/secret.so") << "secret";
  const std::string good = Sha256Hex("bytes");
  for (const std::string& digest :
       {std::string("../../secret"), std::string(""), good.substr(1), good + "0",
        std::string(64, 'A'), std::string(64, '/'), std::string(64, '.')}) {
    EXPECT_THAT(store.Find(digest, "so"), testing::StatusIs(absl::StatusCode::kInvalidArgument))
        << digest;
    EXPECT_THAT(store.Adopt(Built("bytes"), digest, "so"),
                testing::StatusIs(absl::StatusCode::kInvalidArgument));
  }
  for (const char* extension : {"", "../x", "s.o", "12345678901234567", "s o"}) {
    EXPECT_THAT(store.Find(good, extension), testing::StatusIs(absl::StatusCode::kInvalidArgument))
        << extension;
  }
}

TEST_F(ArtifactStoreTest, LeavesAnArtifactThatIsHereAsItIs) {
  ArtifactStore store = MustOpen();
  ASSERT_OK_AND_ASSIGN(const std::string place,
                       store.Adopt(Built("bytes"), Sha256Hex("bytes"), "so"));
  const auto inode = [&] { return fs::hard_link_count(place) + Bytes(place).size(); };
  const auto before = inode();
  EXPECT_THAT(store.Adopt("/nowhere", Sha256Hex("bytes"), "so"), testing::IsOkAndHolds(place))
      << "the file is not even looked at";
  EXPECT_EQ(inode(), before);
}

TEST_F(ArtifactStoreTest, TrimsTheLeastRecentlyUsedFirst) {
  ArtifactStore store = MustOpen();
  AdoptUsed(store, std::string(1000, 'a'), 30);
  AdoptUsed(store, std::string(1000, 'b'), 40);
  AdoptUsed(store, std::string(1000, 'c'), 10);
  AdoptUsed(store, std::string(1000, 'd'), 20);
  ASSERT_OK(store.Find(Sha256Hex(std::string(1000, 'b')), "so"));  // used now
  ASSERT_OK_AND_ASSIGN(const ArtifactStats stats, store.Stats());
  EXPECT_EQ(stats.files, 4);
  EXPECT_EQ(stats.bytes, 4000);

  ASSERT_OK_AND_ASSIGN(const ArtifactStats left, store.Trim(2999));
  EXPECT_EQ(left.files, 2);
  EXPECT_EQ(left.bytes, 2000);
  const auto is_here = [&](char c) {
    return store.Find(Sha256Hex(std::string(1000, c)), "so").ok();
  };
  EXPECT_FALSE(is_here('a'));
  EXPECT_FALSE(is_here('d'));
  EXPECT_TRUE(is_here('b'));
  EXPECT_TRUE(is_here('c'));

  EXPECT_EQ(store.Trim(2000)->files, 2) << "it fits already";
  EXPECT_EQ(store.Trim(0)->files, 0);
}

TEST_F(ArtifactStoreTest, AdoptingAgainCountsAsUse) {
  ArtifactStore store = MustOpen();
  AdoptUsed(store, "old", 30);
  AdoptUsed(store, "new", 20);
  ASSERT_OK(store.Adopt(Built("old"), Sha256Hex("old"), "so"));
  ASSERT_OK(store.Trim(3));
  EXPECT_OK(store.Find(Sha256Hex("old"), "so"));
  EXPECT_THAT(store.Find(Sha256Hex("new"), "so"), testing::StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ArtifactStoreTest, RemovesWhatADeadWriterLeft) {
  fs::create_directories(kernels_);
  for (const auto& [name, minutes] : {std::pair{"/.writing-old", 61}, {"/.writing-new", 59}}) {
    std::ofstream(kernels_ + name) << "half";
    fs::last_write_time(kernels_ + name,
                        fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
  }
  ArtifactStore store = MustOpen();
  EXPECT_FALSE(fs::exists(kernels_ + "/.writing-old"));
  EXPECT_TRUE(fs::exists(kernels_ + "/.writing-new")) << "its writer may be alive";
  EXPECT_EQ(store.Stats()->files, 0) << "it is no artifact";
}

TEST_F(ArtifactStoreTest, RefusesAFolderThatIsAFile) {
  std::ofstream(folder_ + "/file") << "x";
  EXPECT_FALSE(ArtifactStore::Open(folder_ + "/file").ok());
  EXPECT_FALSE(ArtifactStore::Open(folder_ + "/file/kernels").ok());
}

// Many writers of the same artifacts, and readers: whoever finds a name finds all of its bytes,
// whatever Trim does.
TEST_F(ArtifactStoreTest, ANameThatExistsIsWhole) {
  std::vector<std::string> contents;
  for (char c = 'a'; c < 'e'; ++c) contents.push_back(std::string(300000, c));
  for (const std::string& bytes : contents) Built(bytes);
  std::atomic<bool> stop = false;
  std::atomic<int> read = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      ArtifactStore store = MustOpen();
      while (!stop) {
        for (const std::string& bytes : contents)
          EXPECT_OK(store.Adopt(folder_ + "/built-" + Sha256Hex(bytes).substr(0, 8),
                                Sha256Hex(bytes), "so"));
        EXPECT_OK(store.Trim(400000));
      }
    });
  }
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      ArtifactStore store = MustOpen();
      while (read < 200) {
        for (const std::string& bytes : contents) {
          const absl::StatusOr<std::string> place = store.Find(Sha256Hex(bytes), "so");
          if (!place.ok()) continue;
          const std::string found = Bytes(*place);
          if (found.empty()) continue;  // trimmed between Find and open
          EXPECT_EQ(found == bytes, true) << "half an artifact: " << found.size() << " bytes";
          ++read;
        }
      }
      stop = true;
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace phobos::cache
