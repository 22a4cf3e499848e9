// SPDX-License-Identifier: Apache-2.0
//
// What every ResultStore must do, written against the interface and registered for each
// implementation.
#include "cache/result_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/digest.h"
#include "cache/memory_store.h"
#include "cache/sqlite_store.h"
#include "tests/status_matchers.h"

namespace phobos::cache {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

KeyColumns KeyOf(const std::string& kernel, int64_t n) {
  KeyColumns key = {.kernel = kernel,
                    .source_digest = Sha256Hex(kernel),
                    .chip = "x86-64-v3",
                    .card_name = "Test CPU, 2 threads",
                    .values = {{"N", n}, {"M", 7}}};
  key.text = "kernel=" + kernel + "\nN=" + std::to_string(n) + "\nM=7\n";
  key.digest = Sha256Hex(key.text);
  return key;
}

// A generation in which every column differs from every other one.
Generation GenerationMade(int64_t finished_unix_ms) {
  return {.result = std::string("result\0with a zero ", 19) + std::to_string(finished_unix_ms),
          .winner = "BLOCK=1024",
          .best_ns = 4711,
          .options = "rtol=1e-6 flush_l2=1",
          .compiler_fingerprint = "phobos-compile 1 llvm 19",
          .driver = "6.1.0",
          .card_uuid = "host",
          .extents = "N=16 M=7",
          .contended = true,
          .finished_unix_ms = finished_unix_ms,
          .asked_by = "uid 1000 pid 4711",
          .variants = {
              {.index = 0, .settings = "BLOCK=256", .status = "wrong_result", .reason = "out[3]"},
              {.index = 1,
               .settings = "BLOCK=1024",
               .status = "timed",
               .best_ns = 4711,
               .median_ns = 5000,
               .artifact_digest = Sha256Hex("artifact"),
               .samples_ns = {5000, 4711}}}};
}

auto Columns(const Generation& g) {
  return std::tie(g.number, g.winner, g.best_ns, g.options, g.compiler_fingerprint, g.driver,
                  g.card_uuid, g.extents, g.contended, g.finished_unix_ms, g.asked_by, g.pinned);
}

std::vector<std::string> KernelsIn(const Page& page) {
  std::vector<std::string> kernels;
  for (const Listed& row : page.rows) kernels.push_back(row.key.kernel);
  return kernels;
}

struct Implementation {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<ResultStore>>(const std::string& folder)> make;
};

class ResultStoreTest : public ::testing::TestWithParam<Implementation> {
 protected:
  void SetUp() override {
    folder_ =
        ::testing::TempDir() + "/" +
        Sha256Hex(::testing::UnitTest::GetInstance()->current_test_info()->name()).substr(0, 16) +
        GetParam().name;
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    ASSERT_OK_AND_ASSIGN(store_, GetParam().make(folder_));
  }

  int64_t MustAppend(const KeyColumns& key, const Generation& generation) {
    const absl::StatusOr<int64_t> number = store_->Append(key, generation);
    EXPECT_OK(number);
    return number.value_or(-1);
  }

  // Whether a launch would find something. An error is a failure of the test.
  bool Finds(const std::string& key_digest) {
    const absl::StatusOr<std::optional<Generation>> found = store_->Find(key_digest);
    EXPECT_OK(found);
    return found.ok() && found->has_value();
  }

  std::string folder_;
  std::unique_ptr<ResultStore> store_;
};

TEST_P(ResultStoreTest, FindsNothingInAnEmptyStore) {
  EXPECT_FALSE(Finds(KeyOf("add", 16).digest));
  EXPECT_FALSE(Finds(""));
  ASSERT_OK_AND_ASSIGN(const std::optional<Generation> found,
                       store_->FindGeneration(KeyOf("add", 16).digest, 1));
  EXPECT_FALSE(found.has_value());
  ASSERT_OK_AND_ASSIGN(const Page page, store_->List({}, 10, ""));
  EXPECT_THAT(page.rows, IsEmpty());
  EXPECT_EQ(page.next_token, "");
  ASSERT_OK_AND_ASSIGN(const StoreStats stats, store_->Stats());
  EXPECT_EQ(stats.keys, 0);
  EXPECT_EQ(stats.generations, 0);
  EXPECT_EQ(store_->Health().problem, "");
}

TEST_P(ResultStoreTest, GivesBackEveryColumn) {
  Generation generation = GenerationMade(1000);
  EXPECT_EQ(MustAppend(KeyOf("add", 16), generation), 1);
  ASSERT_OK_AND_ASSIGN(const std::optional<Generation> found,
                       store_->Find(KeyOf("add", 16).digest));
  ASSERT_TRUE(found.has_value());
  generation.number = 1;
  EXPECT_EQ(Columns(*found), Columns(generation));
  EXPECT_EQ(found->result, generation.result);

  ASSERT_OK_AND_ASSIGN(const Page page, store_->List({}, 10, ""));
  ASSERT_THAT(page.rows, SizeIs(1));
  const Listed& row = page.rows[0];
  EXPECT_EQ(Columns(row.generation), Columns(generation));
  EXPECT_EQ(row.generation.result, "") << "a list does not carry the Results";
  EXPECT_EQ(row.variants_timed, 1);
  EXPECT_EQ(row.variants_total, 2);
  const KeyColumns key = KeyOf("add", 16);
  EXPECT_EQ(std::tie(row.key.digest, row.key.text, row.key.kernel, row.key.source_digest,
                     row.key.chip, row.key.card_name, row.key.values),
            std::tie(key.digest, key.text, key.kernel, key.source_digest, key.chip, key.card_name,
                     key.values));
}

TEST_P(ResultStoreTest, NumberAndPinAreNotTheCallersToGive) {
  Generation generation = GenerationMade(1000);
  generation.number = 17;
  generation.pinned = true;
  EXPECT_EQ(MustAppend(KeyOf("add", 16), generation), 1);
  ASSERT_OK_AND_ASSIGN(const std::optional<Generation> found,
                       store_->Find(KeyOf("add", 16).digest));
  EXPECT_EQ(found->number, 1);
  EXPECT_FALSE(found->pinned);
}

TEST_P(ResultStoreTest, KeysAreApart) {
  MustAppend(KeyOf("add", 16), GenerationMade(1));
  MustAppend(KeyOf("add", 32), GenerationMade(2));
  ASSERT_OK_AND_ASSIGN(const std::optional<Generation> first,
                       store_->Find(KeyOf("add", 16).digest));
  ASSERT_OK_AND_ASSIGN(const std::optional<Generation> second,
                       store_->Find(KeyOf("add", 32).digest));
  EXPECT_EQ(first->finished_unix_ms, 1);
  EXPECT_EQ(second->finished_unix_ms, 2);
  EXPECT_EQ(second->number, 1);
  EXPECT_FALSE(Finds(KeyOf("add", 48).digest));
}

TEST_P(ResultStoreTest, KeepsTheLastThreeGenerations) {
  const KeyColumns key = KeyOf("add", 16);
  for (int64_t number = 1; number <= 5; ++number) {
    EXPECT_EQ(MustAppend(key, GenerationMade(number * 10)), number);
    ASSERT_OK_AND_ASSIGN(const std::optional<Generation> current, store_->Find(key.digest));
    EXPECT_EQ(current->number, number) << "the newest is current, whatever its time";
  }
  for (int64_t number = 1; number <= 5; ++number) {
    ASSERT_OK_AND_ASSIGN(const std::optional<Generation> found,
                         store_->FindGeneration(key.digest, number));
    EXPECT_EQ(found.has_value(), number >= 3) << "generation " << number;
    if (found.has_value()) EXPECT_EQ(found->finished_unix_ms, number * 10);
  }
  ASSERT_OK_AND_ASSIGN(const StoreStats stats, store_->Stats());
  EXPECT_EQ(stats.keys, 1);
  EXPECT_EQ(stats.generations, 3);
}

TEST_P(ResultStoreTest, TheNewestGenerationIsCurrentEvenWhenAClockWentBack) {
  const KeyColumns key = KeyOf("add", 16);
  MustAppend(key, GenerationMade(2000));
  MustAppend(key, GenerationMade(1000));
  ASSERT_OK_AND_ASSIGN(const std::optional<Generation> current, store_->Find(key.digest));
  EXPECT_EQ(current->finished_unix_ms, 1000);
  ASSERT_OK_AND_ASSIGN(const Page page, store_->List({}, 10, ""));
  ASSERT_THAT(page.rows, SizeIs(1));
  EXPECT_EQ(page.rows[0].generation.number, 2);
}

TEST_P(ResultStoreTest, ListsNewestFirstThenByDigest) {
  MustAppend(KeyOf("old", 1), GenerationMade(1));
  MustAppend(KeyOf("new", 1), GenerationMade(3));
  std::set<std::string> same_time;
  for (int64_t n = 0; n < 5; ++n) {
    MustAppend(KeyOf("same", n), GenerationMade(2));
    same_time.insert(KeyOf("same", n).digest);
  }
  ASSERT_OK_AND_ASSIGN(const Page page, store_->List({}, 10, ""));
  EXPECT_THAT(KernelsIn(page), ElementsAre("new", "same", "same", "same", "same", "same", "old"));
  std::vector<std::string> digests;
  for (size_t i = 1; i < 6; ++i) digests.push_back(page.rows[i].key.digest);
  EXPECT_EQ(digests, std::vector<std::string>(same_time.begin(), same_time.end()));
}

TEST_P(ResultStoreTest, FiltersListings) {
  MustAppend(KeyOf("add", 16), GenerationMade(1));
  MustAppend(KeyOf("add", 32), GenerationMade(2));
  KeyColumns other_card = KeyOf("gelu", 16);
  other_card.card_name = "Other CPU";
  Generation other_compiler = GenerationMade(3);
  other_compiler.compiler_fingerprint = "phobos-compile 2";
  MustAppend(other_card, other_compiler);

  const auto listed = [&](const Filter& filter) {
    const absl::StatusOr<Page> page = store_->List(filter, 10, "");
    EXPECT_OK(page);
    std::vector<int64_t> times;
    if (page.ok()) {
      for (const Listed& row : page->rows) times.push_back(row.generation.finished_unix_ms);
    }
    return times;
  };
  EXPECT_THAT(listed({}), ElementsAre(3, 2, 1));
  EXPECT_THAT(listed({.kernel = "add"}), ElementsAre(2, 1));
  EXPECT_THAT(listed({.kernel = "ad"}), IsEmpty());
  EXPECT_THAT(listed({.card_name = "Other CPU"}), ElementsAre(3));
  EXPECT_THAT(listed({.source_digest_prefix = Sha256Hex("add").substr(0, 10)}), ElementsAre(2, 1));
  EXPECT_THAT(listed({.key_digest_prefix = KeyOf("add", 16).digest}), ElementsAre(1));
  EXPECT_THAT(listed({.key_digest_prefix = KeyOf("add", 16).digest.substr(1)}), IsEmpty());
  EXPECT_THAT(listed({.values = {{"N", 16}}}), ElementsAre(3, 1));
  EXPECT_THAT(listed({.values = {{"N", 16}, {"M", 7}}}), ElementsAre(3, 1));
  EXPECT_THAT(listed({.values = {{"N", 16}, {"M", 8}}}), IsEmpty());
  EXPECT_THAT(listed({.values = {{"N' OR 1=1 --", 16}}}), IsEmpty());
  EXPECT_THAT(listed({.other_compiler_than = "phobos-compile 2"}), ElementsAre(2, 1));
  EXPECT_THAT(listed({.kernel = "add", .values = {{"N", 32}}}), ElementsAre(2));
}

TEST_P(ResultStoreTest, PagesThroughEverythingOnce) {
  std::set<std::string> all;
  for (int64_t n = 0; n < 25; ++n) {
    MustAppend(KeyOf("add", n), GenerationMade(n / 4));  // four at a time
    all.insert(KeyOf("add", n).digest);
  }
  for (const int page_size : {1, 3, 5, 24, 25, 26}) {
    std::set<std::string> seen;
    std::string token;
    int pages = 0;
    do {
      ASSERT_OK_AND_ASSIGN(const Page page, store_->List({}, page_size, token));
      EXPECT_LE(static_cast<int>(page.rows.size()), page_size);
      for (const Listed& row : page.rows) {
        EXPECT_TRUE(seen.insert(row.key.digest).second) << "seen twice at page size " << page_size;
      }
      token = page.next_token;
      ++pages;
    } while (!token.empty() && pages <= 25);
    EXPECT_EQ(seen, all) << "page size " << page_size;
    EXPECT_EQ(pages, (25 + page_size - 1) / page_size) << "no empty page at the end";
  }
}

// While somebody pages, other keys are stored, listed keys and keys still to come are tuned again.
TEST_P(ResultStoreTest, PagesAreStableWhileRowsAreAdded) {
  std::set<std::string> all;
  for (int64_t n = 0; n < 20; ++n) {
    MustAppend(KeyOf("add", n), GenerationMade(n));
    all.insert(KeyOf("add", n).digest);
  }
  std::set<std::string> seen;
  std::string token;
  int64_t round = 0;
  do {
    ASSERT_OK_AND_ASSIGN(const Page page, store_->List({}, 6, token));
    for (const Listed& row : page.rows) {
      EXPECT_TRUE(seen.insert(row.key.digest).second) << "twice: " << row.key.text;
    }
    token = page.next_token;
    ++round;
    MustAppend(KeyOf("other", round), GenerationMade(100 + round));
    MustAppend(KeyOf("other in between", round), GenerationMade(10));
    if (round <= 2) {  // the generation of the first page is still among the last three
      MustAppend(KeyOf("add", 19), GenerationMade(200 + round));
      MustAppend(KeyOf("add", 0), GenerationMade(200 + round));
    }
  } while (!token.empty() && round < 20);
  EXPECT_EQ(seen, all);
}

TEST_P(ResultStoreTest, RefusesBadPagesAndTokens) {
  EXPECT_THAT(store_->List({}, 0, ""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store_->List({}, 1001, ""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_OK(store_->List({}, 1000, ""));
  for (const char* token : {"x", "1", "1.2.3", "9.1.1.1.abc", "1.a.1.1.abc", "1.1.b.1.abc",
                            "1.1.1.c.abc", "....", "1.99999999999999999999.1.1.abc"}) {
    EXPECT_THAT(store_->List({}, 10, token), StatusIs(absl::StatusCode::kInvalidArgument)) << token;
  }
}

TEST_P(ResultStoreTest, RemembersTheNewestValueOfAName) {
  EXPECT_THAT(store_->Recall("variant", "a"), testing::IsOkAndHolds(std::nullopt));
  const std::string bytes("\0\xff text", 7);
  EXPECT_OK(store_->Remember("variant", "a", "first"));
  EXPECT_OK(store_->Remember("variant", "a", bytes));
  EXPECT_OK(store_->Remember("description", "a", ""));
  EXPECT_THAT(store_->Recall("variant", "a"), testing::IsOkAndHolds(bytes));
  EXPECT_THAT(store_->Recall("description", "a"), testing::IsOkAndHolds(std::string()));
  EXPECT_THAT(store_->Recall("variant", "b"), testing::IsOkAndHolds(std::nullopt));
}

TEST_P(ResultStoreTest, TakesLargeResultsAndManyVariants) {
  Generation generation = GenerationMade(1);
  generation.result = std::string(3 << 20, 'r');
  generation.variants.clear();
  for (int32_t i = 0; i < 256; ++i) {
    generation.variants.push_back({.index = i,
                                   .status = "timed",
                                   .best_ns = 1 + i,
                                   .samples_ns = std::vector<int64_t>(20, i)});
  }
  MustAppend(KeyOf("add", 1), generation);
  ASSERT_OK_AND_ASSIGN(const std::optional<Generation> found, store_->Find(KeyOf("add", 1).digest));
  EXPECT_EQ(found->result, generation.result);
  ASSERT_OK_AND_ASSIGN(const Page page, store_->List({}, 1, ""));
  EXPECT_EQ(page.rows[0].variants_timed, 256);
}

TEST_P(ResultStoreTest, ManyThreadsAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 25;
  const KeyColumns shared = KeyOf("shared", 0);
  std::vector<std::set<int64_t>> numbers(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const absl::StatusOr<int64_t> number = store_->Append(shared, GenerationMade(i));
        EXPECT_OK(number);
        if (number.ok()) numbers[t].insert(*number);
        const KeyColumns own = KeyOf("own", t * kRounds + i);
        EXPECT_THAT(store_->Append(own, GenerationMade(i)), testing::IsOkAndHolds(1));
        EXPECT_TRUE(Finds(own.digest)) << "what was appended is found at once";
        EXPECT_OK(store_->Remember("kind", own.digest, "value"));
        EXPECT_OK(store_->List({.kernel = "own"}, 5, ""));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<int64_t> all;
  for (const std::set<int64_t>& some : numbers) all.insert(some.begin(), some.end());
  EXPECT_THAT(all, SizeIs(kThreads * kRounds)) << "each append got a number of its own";
  EXPECT_EQ(*all.rbegin(), kThreads * kRounds);
  ASSERT_OK_AND_ASSIGN(const StoreStats stats, store_->Stats());
  EXPECT_EQ(stats.keys, 1 + kThreads * kRounds);
}

INSTANTIATE_TEST_SUITE_P(
    Stores, ResultStoreTest,
    ::testing::Values(Implementation{"Memory",
                                     [](const std::string&) { return MakeMemoryStore(); }},
                      Implementation{"Sqlite",
                                     [](const std::string& folder) {
                                       return OpenSqliteStore(folder + "/results.db");
                                     }}),
    [](const ::testing::TestParamInfo<Implementation>& info) { return info.param.name; });

}  // namespace
}  // namespace phobos::cache
