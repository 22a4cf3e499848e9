// SPDX-License-Identifier: Apache-2.0
//
// A writer is killed (SIGKILL) in the middle of committing, again and again on the same database.
// What it had acknowledged must be there afterwards, and the database whole. $KILLS says how often.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "absl/status/statusor.h"
#include "base/concat.h"
#include "cache/result_store.h"
#include "cache/sqlite_store.h"
#include "tests/cache/store_rows.h"
#include "tests/status_matchers.h"

namespace phobos::cache {
namespace {

// Appends for ever, one key after the other from `first` on; writes each key's N to `acknowledged`
// once it is stored. Every third key is tuned four times, so that generations are dropped as well.
[[noreturn]] void WriteUntilKilled(const std::string& path, int64_t first, int acknowledged) {
  const absl::StatusOr<std::unique_ptr<ResultStore>> store = OpenSqliteStore(path);
  if (!store.ok()) _exit(1);
  for (int64_t n = first;; ++n) {
    for (int repeat = 0; repeat < (n % 3 == 0 ? 4 : 1); ++repeat) {
      if (!(*store)->Append(AddKey(n), GenerationAt(n, 2000)).ok()) _exit(2);
    }
    if (!(*store)->Health().problem.empty()) _exit(3);
    if (write(acknowledged, &n, sizeof(n)) != sizeof(n)) _exit(4);
  }
}

// Starts a writer, lets it acknowledge `keys` of them, and kills it `delay_us` later: by progress
// and not by time, so that a slow machine kills no less. No keys: it dies while it opens the
// database. Returns the last N that it acknowledged, or `first` - 1.
int64_t RunAndKill(const std::string& path, int64_t first, int keys, int delay_us) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    WriteUntilKilled(path, first, ends[1]);
  }
  close(ends[1]);
  int64_t last = first - 1;
  for (int64_t n = 0; keys > 0 && read(ends[0], &n, sizeof(n)) == sizeof(n); --keys) last = n;
  usleep(delay_us);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      << "the writer failed with " << WEXITSTATUS(status);
  for (int64_t n = 0; read(ends[0], &n, sizeof(n)) == sizeof(n);) last = n;
  close(ends[0]);
  return last;
}

TEST(KilledWriter, LosesNothingThatItAcknowledged) {
  const int kills = std::atoi(std::getenv("KILLS"));
  ASSERT_GT(kills, 0);
  const std::string folder = TestFolder();
  const std::string path = folder + "/results.db";
  std::mt19937 random(20240229);
  std::uniform_int_distribution<int> keys(0, 8);
  std::uniform_int_distribution<int> delay_us(0, 3000);
  int64_t acknowledged = 0;
  for (int i = 0; i < kills; ++i) {
    const int64_t before = acknowledged;
    acknowledged = RunAndKill(path, before + 1, keys(random), delay_us(random));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ResultStore> store, OpenSqliteStore(path));
    ASSERT_EQ(store->Health().problem, "") << "after kill " << i;
    // All of this round, and a sample of the others.
    for (int64_t n = acknowledged; n > 0;
         n -= n > before ? 1 : 1 + static_cast<int64_t>(random() % 97)) {
      ASSERT_OK_AND_ASSIGN(const std::optional<Generation> found, store->Find(AddKey(n).digest));
      ASSERT_TRUE(found.has_value())
          << "N = " << n << " was acknowledged and is gone after kill " << i;
      ASSERT_TRUE(found->result.starts_with(Concat("result of ", n)));
      ASSERT_EQ(found->number, n % 3 == 0 ? 4 : 1);
    }
    // The key that was being written may be there or not; the next writer starts after it.
    ASSERT_OK_AND_ASSIGN(const std::optional<Generation> next,
                         store->Find(AddKey(acknowledged + 1).digest));
    if (next.has_value()) ++acknowledged;
    if (next.has_value() && acknowledged % 3 == 0) {
      for (int64_t number = next->number; number < 4; ++number) {
        ASSERT_OK(store->Append(AddKey(acknowledged), GenerationAt(acknowledged, 2000)));
      }
    }
  }
  EXPECT_GT(acknowledged, kills) << "the writers hardly wrote";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_EQ(entry.path().string().find(".damaged"), std::string::npos) << entry.path();
  }
}

}  // namespace
}  // namespace phobos::cache
