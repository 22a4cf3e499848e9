// SPDX-License-Identifier: Apache-2.0
//
// What the store on disk does beyond the contract: durability, files in a bad state, schemas of
// other versions.
#include "cache/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/concat.h"
#include "cache/result_store.h"
#include "cache/sqlite/connection.h"
#include "cache/sqlite/database.h"
#include "cache/sqlite/schema.h"
#include "tests/cache/store_rows.h"
#include "tests/status_matchers.h"

namespace phobos::cache {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Writes over `bytes` of an existing file at `offset`.
void Overwrite(const std::string& path, int64_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(offset);
  file << bytes;
  ASSERT_TRUE(file.good());
}

class SqliteStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = TestFolder();
    path_ = folder_ + "/results.db";
  }

  std::unique_ptr<ResultStore> MustOpen() {
    absl::StatusOr<std::unique_ptr<ResultStore>> store = OpenSqliteStore(path_);
    EXPECT_OK(store);
    return store.ok() ? *std::move(store) : nullptr;
  }

  // Opens, appends one generation for each of N = 1 ... keys, and closes.
  void Fill(int64_t keys, size_t result_bytes = 0) {
    const std::unique_ptr<ResultStore> store = MustOpen();
    for (int64_t n = 1; n <= keys; ++n)
      ASSERT_OK(store->Append(AddKey(n), GenerationAt(n, result_bytes)));
  }

  Connection MustConnect() {
    absl::StatusOr<Connection> connection = Connection::Open(path_, Connection::Mode::kReadWrite);
    EXPECT_OK(connection);
    return *std::move(connection);
  }

  // Files that a repair put aside, without the logs.
  std::vector<std::string> Damaged() {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (name.find(".damaged-") != std::string::npos && !name.ends_with("-wal"))
        found.push_back(entry.path().string());
    }
    return found;
  }

  std::string folder_;
  std::string path_;
};

// N of the key, or 0 when the store has nothing or another Result.
bool HasResult(ResultStore& store, int64_t n) {
  const absl::StatusOr<std::optional<Generation>> found = store.Find(AddKey(n).digest);
  EXPECT_OK(found);
  return found.ok() && found->has_value() && (*found)->result.starts_with(Concat("result of ", n));
}

TEST_F(SqliteStoreTest, MakesAWalDatabaseOfEightKibPages) {
  Fill(1);
  Connection connection = MustConnect();
  EXPECT_THAT(connection.Ask("PRAGMA page_size"), testing::IsOkAndHolds(8192));
  EXPECT_THAT(connection.AskText("PRAGMA journal_mode"), testing::IsOkAndHolds("wal"));
  EXPECT_THAT(connection.AskText("PRAGMA integrity_check"), testing::IsOkAndHolds("ok"));
  EXPECT_THAT(connection.Ask("SELECT version FROM schema_version"), testing::IsOkAndHolds(1));
}

TEST_F(SqliteStoreTest, ItsFilesAreForTheirUserAlone) {
  const mode_t before = umask(0);
  Write(path_, std::string(5000, 'g'));
  ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  for (int i = 0; i < 2; ++i) {  // made by a repair, then anew
    const std::unique_ptr<ResultStore> store = MustOpen();
    ASSERT_OK(store->Append(AddKey(1), GenerationAt(1)));
    for (const char* suffix : {"", "-wal", "-shm"}) {
      EXPECT_EQ(fs::status(path_ + suffix).permissions(),
                fs::perms::owner_read | fs::perms::owner_write)
          << suffix;
    }
    fs::remove(path_);
    fs::remove(path_ + "-wal");
    fs::remove(path_ + "-shm");
  }
  umask(before);
}

TEST_F(SqliteStoreTest, RemembersAcrossOpenings) {
  Fill(3);
  ASSERT_OK(MustOpen()->Remember("kind", "name", "value"));
  const std::unique_ptr<ResultStore> store = MustOpen();
  EXPECT_TRUE(HasResult(*store, 1));
  EXPECT_TRUE(HasResult(*store, 3));
  EXPECT_THAT(store->Recall("kind", "name"),
              testing::IsOkAndHolds(std::optional<std::string>("value")));
  EXPECT_THAT(store->Append(AddKey(3), GenerationAt(4)), testing::IsOkAndHolds(2));
  EXPECT_EQ(store->Health().problem, "");
}

TEST_F(SqliteStoreTest, KeepsVariantsAndSamplesAsRows) {
  Fill(1);
  Connection connection = MustConnect();
  EXPECT_THAT(
      connection.AskText(
          "SELECT settings || '|' || status || '|' || best_ns || '|' || samples_ns FROM variant"),
      testing::IsOkAndHolds("BLOCK=1024|timed|4711|5000 4711"));
}

TEST_F(SqliteStoreTest, DroppedGenerationsTakeTheirVariantsAlong) {
  {
    const std::unique_ptr<ResultStore> store = MustOpen();
    for (int i = 0; i < 10; ++i) ASSERT_OK(store->Append(AddKey(1), GenerationAt(i)));
  }
  Connection connection = MustConnect();
  EXPECT_THAT(connection.Ask("SELECT count(*) FROM generation"), testing::IsOkAndHolds(3));
  EXPECT_THAT(connection.Ask("SELECT count(*) FROM variant"), testing::IsOkAndHolds(3));
}

TEST_F(SqliteStoreTest, APinnedGenerationIsServedAndKept) {
  Fill(1);
  ASSERT_OK(MustConnect().Execute("UPDATE generation SET pinned = 1"));
  const std::unique_ptr<ResultStore> store = MustOpen();
  for (int i = 0; i < 6; ++i) ASSERT_OK(store->Append(AddKey(1), GenerationAt(100 + i)));
  ASSERT_OK_AND_ASSIGN(const std::optional<Generation> served, store->Find(AddKey(1).digest));
  EXPECT_EQ(served->number, 1);
  EXPECT_TRUE(served->pinned);
  ASSERT_OK_AND_ASSIGN(const Page page, store->List({}, 10, ""));
  EXPECT_EQ(page.rows[0].generation.number, 7) << "a list shows the current one";
  ASSERT_OK_AND_ASSIGN(const StoreStats stats, store->Stats());
  EXPECT_EQ(stats.generations, 4);
}

TEST_F(SqliteStoreTest, OddPathsAreTakenLiterally) {
  folder_ += "/a folder?mode=ro#x%20y";
  fs::create_directories(folder_);
  path_ = folder_ + "/results.db";
  Fill(1);
  EXPECT_TRUE(fs::exists(path_));
  EXPECT_TRUE(HasResult(*MustOpen(), 1));
}

TEST_F(SqliteStoreTest, RefusesAFolderThatIsNotThere) {
  EXPECT_THAT(OpenSqliteStore(folder_ + "/none/results.db"),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/none")));
}

TEST_F(SqliteStoreTest, AnEmptyFileIsANewDatabase) {
  Write(path_, "");
  EXPECT_EQ(MustOpen()->Health().problem, "");
  EXPECT_THAT(Damaged(), IsEmpty());
}

TEST_F(SqliteStoreTest, GarbageIsKeptAside) {
  const std::string garbage(20000, 'g');
  Write(path_, garbage);
  const std::unique_ptr<ResultStore> store = MustOpen();
  ASSERT_THAT(Damaged(), SizeIs(1));
  EXPECT_EQ(Bytes(Damaged()[0]), garbage);
  EXPECT_THAT(store->Health().problem, AllOf(HasSubstr("damaged"), HasSubstr(Damaged()[0])));
  ASSERT_OK(store->Append(AddKey(1), GenerationAt(1)));
  EXPECT_TRUE(HasResult(*store, 1));
  EXPECT_THAT(store->Health().problem, HasSubstr("damaged"))
      << "a later success does not hide what happened";
  EXPECT_TRUE(store->Health().is_remembering);
  EXPECT_TRUE(HasResult(*MustOpen(), 1)) << "the new database remembers";
}

TEST_F(SqliteStoreTest, TwoDamagedFilesAreBothKept) {
  for (const char* garbage : {"first", "second"}) {
    Write(path_, std::string(5000, garbage[0]));
    fs::remove(path_ + "-wal");
    MustOpen();
  }
  EXPECT_THAT(Damaged(), SizeIs(2));
}

TEST_F(SqliteStoreTest, ATruncatedFileGivesBackWhatItHas) {
  Fill(200, 4000);
  fs::resize_file(path_, fs::file_size(path_) / 8192 / 2 * 8192);
  const std::unique_ptr<ResultStore> store = MustOpen();
  EXPECT_THAT(Damaged(), SizeIs(1));
  int found = 0;
  for (int64_t n = 1; n <= 200; ++n) found += HasResult(*store, n);
  EXPECT_GT(found, 20);
  EXPECT_LT(found, 200);
  EXPECT_THAT(store->Health().problem, HasSubstr(Concat(found, " Results were read back")));
}

// Every page in turn is overwritten: a leaf costs the rows on it, and nothing wrong is ever served.
TEST_F(SqliteStoreTest, ACorruptPageCostsLittle) {
  constexpr int64_t kKeys = 60;
  Fill(kKeys, 1000);
  const std::string whole = Bytes(path_);
  const int64_t pages = static_cast<int64_t>(whole.size()) / 8192;
  ASSERT_GT(pages, 12);
  int costly_pages = 0;
  int lost_rows = 0;
  for (int64_t page = 1; page < pages; ++page) {  // page 0 has the schema: see below
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Write(path_, whole);
    Overwrite(path_, page * 8192, std::string(8192, static_cast<char>(0xa5)));
    const std::unique_ptr<ResultStore> store = MustOpen();
    int found = 0;
    for (int64_t n = 1; n <= kKeys; ++n) found += HasResult(*store, n);
    const int lost = static_cast<int>(kKeys) - found;
    costly_pages += lost > 8;
    lost_rows += lost;

    if (found < kKeys) EXPECT_THAT(Damaged(), SizeIs(1)) << "page " << page;
    EXPECT_THAT(store->Append(AddKey(1), GenerationAt(1)), testing::IsOk()) << "page " << page;
  }
  EXPECT_GT(lost_rows, 0) << "no page with Results was hit";
  EXPECT_LE(costly_pages, 4) << "only pages of keys, or above others, may cost many";
}

TEST_F(SqliteStoreTest, ACorruptSchemaPageIsKeptAside) {
  Fill(10);
  Overwrite(path_, 100, std::string(2000, static_cast<char>(0xa5)));
  const std::unique_ptr<ResultStore> store = MustOpen();
  EXPECT_THAT(Damaged(), SizeIs(1));
  EXPECT_FALSE(HasResult(*store, 1));
  ASSERT_OK(store->Append(AddKey(1), GenerationAt(1)));
  EXPECT_TRUE(HasResult(*store, 1));
}

// Damage inside a Result leaves SQLite's structure whole; the checksum finds it when it is read.
TEST_F(SqliteStoreTest, ADamagedResultIsNeverServed) {
  Fill(3, 100000);
  const std::string bytes = Bytes(path_);
  const size_t at = bytes.find("result of 2result of 2", 30000);
  ASSERT_NE(at, std::string::npos);
  Overwrite(path_, static_cast<int64_t>(at) + 400, "X");
  const std::unique_ptr<ResultStore> store = MustOpen();
  EXPECT_EQ(store->Health().problem, "") << "quick_check cannot see it";
  EXPECT_FALSE(HasResult(*store, 2));
  EXPECT_THAT(store->Health().problem, HasSubstr("damaged"));
  EXPECT_THAT(Damaged(), SizeIs(1));
  EXPECT_TRUE(HasResult(*store, 1));
  EXPECT_TRUE(HasResult(*store, 3));
}

TEST_F(SqliteStoreTest, ADatabaseWithoutOurTablesIsKeptAside) {
  Fill(2);
  ASSERT_OK(MustConnect().Execute("DROP TABLE fact"));
  const std::unique_ptr<ResultStore> store = MustOpen();
  EXPECT_THAT(Damaged(), SizeIs(1));
  EXPECT_TRUE(HasResult(*store, 2));
  EXPECT_OK(store->Remember("kind", "name", "value"));
}

TEST_F(SqliteStoreTest, FinishesARepairThatWasCutShort) {
  Fill(2);
  fs::rename(path_, path_ + ".new");  // the old one is aside already
  EXPECT_TRUE(HasResult(*MustOpen(), 2));
  EXPECT_FALSE(fs::exists(path_ + ".new"));
}

TEST_F(SqliteStoreTest, TheOldLogIsNotReplayedIntoARepairedDatabase) {
  std::string log;
  {
    const std::unique_ptr<ResultStore> store = MustOpen();
    ASSERT_OK(store->Append(AddKey(7), GenerationAt(7)));
    log = Bytes(path_ + "-wal");
  }
  ASSERT_GT(log.size(), 0);
  fs::remove(path_);
  Fill(2);
  fs::rename(path_, path_ + ".new");  // the old database is aside, its log is not yet
  Write(path_ + "-wal", log);
  Write(path_ + "-shm", std::string(32768, 's'));
  {
    const std::unique_ptr<ResultStore> store = MustOpen();
    EXPECT_EQ(store->Health().problem, "");
    EXPECT_TRUE(HasResult(*store, 1));
    EXPECT_TRUE(HasResult(*store, 2));
    EXPECT_FALSE(HasResult(*store, 7));
  }
  int kept = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string file = entry.path().string();
    if (file.starts_with(path_ + ".damaged-") && file.ends_with("-wal")) kept += Bytes(file) == log;
  }
  EXPECT_EQ(kept, 1);
}

// A repair must not count up to a number from the damaged file.
TEST_F(SqliteStoreTest, AHugeIdDoesNotHoldUpARepair) {
  Fill(30, 3000);
  ASSERT_OK(
      MustConnect().Execute("UPDATE sqlite_sequence SET seq = 1 << 60;"
                            "DELETE FROM generation WHERE id BETWEEN 5 AND 9;"
                            "DROP TABLE fact"));
  {
    const std::unique_ptr<ResultStore> store = MustOpen();
    EXPECT_THAT(store->Health().problem, HasSubstr("25 Results were read back and up to 0"));
    EXPECT_TRUE(HasResult(*store, 4));
    EXPECT_TRUE(HasResult(*store, 30));
  }
  ASSERT_OK(MustConnect().Execute("UPDATE sqlite_sequence SET seq = 1 << 60"));
  // The file's second half is not readable, so the search goes on blind.
  fs::resize_file(path_, fs::file_size(path_) / 8192 / 2 * 8192);
  const std::unique_ptr<ResultStore> store = MustOpen();
  EXPECT_THAT(Damaged(), SizeIs(2));
  EXPECT_THAT(store->Append(AddKey(1), GenerationAt(1)), testing::IsOk());
}

TEST_F(SqliteStoreTest, ARepairThatDiedBeforeItsRenameIsMadeAgain) {
  Fill(2);
  Write(path_ + ".new", "half a database");
  Overwrite(path_, 100, std::string(2000, static_cast<char>(0xa5)));
  MustOpen();
  EXPECT_THAT(Damaged(), SizeIs(1));
  EXPECT_FALSE(fs::exists(path_ + ".new"));
}

TEST_F(SqliteStoreTest, ANewerSchemaIsLeftUntouched) {
  Fill(2);
  ASSERT_OK(MustConnect().Execute("UPDATE schema_version SET version = 99, oldest_reader = 99"));
  const std::string before = Bytes(path_);
  {
    const std::unique_ptr<ResultStore> store = MustOpen();
    EXPECT_FALSE(HasResult(*store, 1)) << "not readable by us";
    EXPECT_THAT(store->Health().problem, AllOf(HasSubstr("newer"), HasSubstr(path_)));
    EXPECT_THAT(store->Append(AddKey(1), GenerationAt(1)), testing::IsOkAndHolds(1));
    EXPECT_TRUE(HasResult(*store, 1)) << "kept in memory";
    EXPECT_OK(store->Remember("kind", "name", "value"));
    EXPECT_THAT(store->Recall("kind", "name"),
                testing::IsOkAndHolds(std::optional<std::string>("value")));
  }
  EXPECT_EQ(Bytes(path_), before);
  EXPECT_THAT(Damaged(), IsEmpty());
}

TEST_F(SqliteStoreTest, ANewerSchemaThatMayBeReadIsRead) {
  Fill(2);
  ASSERT_OK(
      MustConnect().Execute("ALTER TABLE generation ADD COLUMN later TEXT;"
                            "UPDATE schema_version SET version = 99, oldest_reader = 1"));
  const std::string before = Bytes(path_);
  {
    const std::unique_ptr<ResultStore> store = MustOpen();
    EXPECT_TRUE(HasResult(*store, 1));
    EXPECT_THAT(store->Health().problem, HasSubstr("newer"));
    EXPECT_THAT(store->Append(AddKey(1), GenerationAt(7)), testing::IsOkAndHolds(2))
        << "numbers go on";
    EXPECT_TRUE(HasResult(*store, 7) || !HasResult(*store, 1));
    ASSERT_OK_AND_ASSIGN(const Page page, store->List({}, 10, ""));
    ASSERT_THAT(page.rows, SizeIs(2)) << "memory hides what is on disk";
    EXPECT_EQ(page.rows[0].generation.finished_unix_ms, 7);
    EXPECT_EQ(page.rows[1].generation.finished_unix_ms, 2);
    ASSERT_OK_AND_ASSIGN(const std::optional<Generation> first,
                         store->FindGeneration(AddKey(1).digest, 1));
    EXPECT_TRUE(first.has_value());
    ASSERT_OK_AND_ASSIGN(const StoreStats stats, store->Stats());
    EXPECT_EQ(stats.keys, 2);
    EXPECT_EQ(stats.generations, 3);
  }
  EXPECT_EQ(Bytes(path_), before);
}

TEST_F(SqliteStoreTest, AnotherProgramsDatabaseIsLeftUntouched) {
  ASSERT_OK(MustConnect().Execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)"));
  const std::string before = Bytes(path_);
  EXPECT_THAT(MustOpen()->Health().problem, HasSubstr("another program"));
  EXPECT_EQ(Bytes(path_), before);
}

// The dump is the schema as it was released, with rows in it; see schema.h.
TEST_F(SqliteStoreTest, BringsTheOldestSchemaUpToDate) {
  ASSERT_OK(MustConnect().Execute(Bytes("tests/cache/testdata/results_v1.sql")));
  const std::unique_ptr<ResultStore> store = MustOpen();
  EXPECT_EQ(store->Health().problem, "");
  ASSERT_OK_AND_ASSIGN(const Page page, store->List({.values = {{"N", 4096}}}, 10, ""));
  ASSERT_THAT(page.rows, SizeIs(1));
  EXPECT_EQ(page.rows[0].key.kernel, "gelu");
  ASSERT_OK_AND_ASSIGN(const std::optional<Generation> found, store->Find(page.rows[0].key.digest));
  EXPECT_EQ(found->number, 2);
  EXPECT_EQ(found->result, "second result");
  EXPECT_THAT(store->Append(page.rows[0].key, GenerationAt(3)), testing::IsOkAndHolds(3));
}

TEST_F(SqliteStoreTest, AStepOfTheSchemaKeepsTheRows) {
  ASSERT_OK(MustConnect().Execute(Bytes("tests/cache/testdata/results_v1.sql")));
  std::vector<Migration> migrations(Migrations().begin(), Migrations().end());
  const int next = migrations.back().to + 1;
  migrations.push_back({.to = next,
                        .oldest_reader = 1,
                        .sql = "ALTER TABLE variant ADD COLUMN spills INTEGER DEFAULT 7;"});
  {
    ASSERT_OK_AND_ASSIGN(Database database, OpenDatabase(path_, migrations));
    EXPECT_EQ(database.problem, "");
    ASSERT_TRUE(database.reading.has_value());
    EXPECT_THAT(database.reading->Ask("SELECT version FROM schema_version"),
                testing::IsOkAndHolds(next));
    EXPECT_THAT(database.reading->Ask("SELECT sum(spills) FROM variant"),
                testing::IsOkAndHolds(7 * 3));
  }
  // To this program it is a newer one now, and one that it may read.
  const std::unique_ptr<ResultStore> store = MustOpen();
  EXPECT_THAT(store->Health().problem, HasSubstr("newer"));
  ASSERT_OK_AND_ASSIGN(const Page page, store->List({}, 10, ""));
  EXPECT_THAT(page.rows, SizeIs(1));
}

TEST_F(SqliteStoreTest, AFailedStepChangesNothing) {
  Fill(1);
  std::vector<Migration> migrations(Migrations().begin(), Migrations().end());
  migrations.push_back(
      {.to = 2, .oldest_reader = 2, .sql = "DELETE FROM generation; CREATE TABLE fact (x)"});
  {
    ASSERT_OK_AND_ASSIGN(Connection connection,
                         Connection::Open(path_, Connection::Mode::kReadWrite));
    EXPECT_THAT(Migrate(connection, migrations), testing::StatusIs(absl::StatusCode::kInternal));
  }
  EXPECT_TRUE(HasResult(*MustOpen(), 1));
}

// A released version is never edited: the first step must still make what the dump has.
TEST_F(SqliteStoreTest, TheFirstSchemaIsAsItWasReleased) {
  constexpr char kSchema[] =
      "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL "
      "AND name NOT LIKE 'sqlite_%' ORDER BY name)";
  std::vector<std::string> schemas;
  {
    Connection dumped = MustConnect();
    ASSERT_OK(dumped.Execute(Bytes("tests/cache/testdata/results_v1.sql")));
    ASSERT_OK_AND_ASSIGN(schemas.emplace_back(), dumped.AskText(kSchema));
  }
  path_ = folder_ + "/fresh.db";
  Connection fresh = MustConnect();
  ASSERT_OK(Migrate(fresh, Migrations().subspan(0, 1)));
  ASSERT_OK_AND_ASSIGN(schemas.emplace_back(), fresh.AskText(kSchema));
  EXPECT_EQ(schemas[0], schemas[1]);
}

}  // namespace
}  // namespace phobos::cache
