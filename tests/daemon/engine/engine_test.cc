// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "cache/memory_store.h"
#include "cache/sqlite_store.h"
#include "daemon/error/error.h"
#include "tests/daemon/engine/engines.h"

namespace phobos::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A tune that variant 1 wins, and in which `variant` is recorded, not proved.
EngineFixture::Tune TuneWithRecorded(int variant) {
  return [variant](const auto&, const auto&, const auto&, const auto&, const auto&, auto*) {
    tuner::v1::Result result = ResultWith(1);
    result.mutable_variants(variant)->set_race_recorded(true);
    return absl::StatusOr<tuner::v1::Result>(result);
  };
}

class EngineTest : public ::testing::Test, public EngineFixture {
 protected:
  void TuneAt(int64_t n, const std::string& text = kSource) {
    TuningCaller caller(*this, 1);
    const absl::Status status = caller.Run(OpenFor(n, text));
    ASSERT_TRUE(status.ok()) << status;
  }
  absl::StatusOr<tuner::v1::CompileResponse> Compile(int variant) {
    tuner::v1::CompileRequest request;
    *request.mutable_kernel() = OpenFor(16).kernel();
    request.set_variant(variant);
    return Await<tuner::v1::CompileResponse>(
        [&](auto done) { engine->Compile(request, std::move(done)); });
  }
  absl::StatusOr<tuner::v1::ListResultsResponse> List(
      const tuner::v1::ListResultsRequest& request) {
    return Await<tuner::v1::ListResultsResponse>(
        [&](auto done) { engine->ListResults(request, std::move(done)); });
  }
  absl::StatusOr<tuner::v1::Result> Get(const std::string& digest, int64_t generation = 0) {
    tuner::v1::GetResultRequest request;
    request.set_key_digest(digest);
    request.set_generation(generation);
    return Await<tuner::v1::Result>(
        [&](auto done) { engine->GetResult(request, std::move(done)); });
  }
};

TEST_F(EngineTest, LookupAsksForTheSourceOnce) {
  Start();
  const tuner::v1::LookupRequest request = LookupFor(16);
  absl::StatusOr<tuner::v1::LookupResponse> response = Lookup(request);
  ASSERT_TRUE(response.ok());
  EXPECT_TRUE(response->has_need_source());
  Introduce();
  response = Lookup(request);
  ASSERT_TRUE(response.ok());
  ASSERT_TRUE(response->has_miss());
  EXPECT_EQ(response->miss().key(), "N=16");
  EXPECT_FALSE(response->miss().has_description());
}

TEST_F(EngineTest, LookupHitsWhatWasTuned) {
  Begin();
  TuneAt(16);
  tuner::v1::LookupRequest request = LookupFor(16);
  request.set_want_description(true);
  request.set_want_result(true);
  const absl::StatusOr<tuner::v1::LookupResponse> response = Lookup(request);
  ASSERT_TRUE(response.ok()) << response.status();
  const tuner::v1::Hit& hit = response->hit();
  EXPECT_EQ(hit.generation(), 1);
  EXPECT_EQ(hit.substitution(), "");
  EXPECT_EQ(hit.plan().variant(), 1);
  EXPECT_EQ(hit.plan().settings(0).int_value(), 512);
  EXPECT_EQ(hit.plan().chip(), "x86-64-v3");
  EXPECT_EQ(hit.plan().threads(), 256);
  EXPECT_THAT(hit.plan().slots(), ElementsAre("x", "y", "out", "alpha", "extent:N"));
  EXPECT_EQ(hit.result().best_ns(), 1000);
  EXPECT_EQ(hit.description().kernel(), "add");
  EXPECT_TRUE(Lookup(LookupFor(17))->has_miss());
}

TEST_F(EngineTest, AnswersAreReadyUntilSomethingIsKept) {
  Begin();
  const tuner::v1::LookupRequest request = LookupFor(16);
  ASSERT_TRUE(Lookup(request)->has_miss());
  ASSERT_NE(engine->RecentLookup(request), nullptr);
  EXPECT_TRUE(engine->RecentLookup(request)->has_miss());
  TuneAt(16);
  EXPECT_EQ(engine->RecentLookup(request), nullptr);
  ASSERT_TRUE(Lookup(request)->has_hit());
  ASSERT_NE(engine->RecentLookup(request), nullptr);
  EXPECT_EQ(engine->RecentLookup(request)->hit().generation(), 1);
  tuner::v1::Open force = OpenFor(16);
  force.set_newer_than_generation(1);
  ASSERT_TRUE(TuningCaller(*this, 1).Run(force).ok());
  EXPECT_EQ(engine->RecentLookup(request), nullptr);
  EXPECT_EQ(Lookup(request)->hit().generation(), 2);
}

TEST_F(EngineTest, AReadyAnswerWhoseArtifactIsGoneIsMadeAgain) {
  Begin();
  TuneAt(16);
  const tuner::v1::LookupRequest request = LookupFor(16);
  const std::string path = Lookup(request)->hit().plan().artifact_path();
  ASSERT_NE(engine->RecentLookup(request), nullptr);
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_EQ(engine->RecentLookup(request), nullptr);
  EXPECT_EQ(Lookup(request)->hit().plan().artifact_path(), path);
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

TEST_F(EngineTest, AWinnerThatIsNoLongerToBeHadIsReplacedBySayingWhy) {
  Begin();
  TuneAt(16);
  runner->racy_variant = 1;
  const absl::StatusOr<tuner::v1::LookupResponse> response = Lookup(LookupFor(16));
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->hit().plan().variant(), 0);
  EXPECT_THAT(response->hit().substitution(), HasSubstr("variant 1"));
}

TEST_F(EngineTest, AWinnerThatANewerCompilerCannotProveFreeOfRacesIsNotHandedOut) {
  Begin();
  TuneAt(16);
  runner->unproven_variant = 1;
  const absl::StatusOr<tuner::v1::LookupResponse> response = Lookup(LookupFor(16));
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->hit().plan().variant(), 0);
  EXPECT_THAT(response->hit().substitution(),
              HasSubstr("variant 1: the present compiler cannot prove"));
  // The other one is no better: nothing is left to launch.
  runner->racy_variant = 0;
  EXPECT_EQ(Lookup(LookupFor(16)).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(EngineTest, AWinnerThatWasRecordedNeedsNoProof) {
  tune = TuneWithRecorded(1);
  Begin();
  TuneAt(16);
  runner->unproven_variant = 1;
  const absl::StatusOr<tuner::v1::LookupResponse> response = Lookup(LookupFor(16));
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->hit().plan().variant(), 1);
  EXPECT_EQ(response->hit().substitution(), "");
  ASSERT_EQ(response->hit().recorded_extents_size(), 1);
  EXPECT_EQ(response->hit().recorded_extents(0).value(), 16);
  // A tune that the store answers says so too; a compiler that proves it needs no recording.
  TuningCaller caller(*this, 1);
  ASSERT_TRUE(caller.Run(OpenFor(16)).ok());
  EXPECT_EQ(tunes, 1);
  runner->unproven_variant = -1;
  EXPECT_EQ(Lookup(LookupFor(16))->hit().recorded_extents_size(), 0);
}

TEST_F(EngineTest, LargeRequestsAndFieldsThatAreNotKnownAreNotKeptReady) {
  Begin();
  tuner::v1::LookupRequest large = LookupFor(16);
  large.mutable_kernel()->set_file_name(std::string(4096, 'f'));
  ASSERT_TRUE(Lookup(large).ok());
  EXPECT_EQ(engine->RecentLookup(large), nullptr);
  tuner::v1::LookupRequest strange = LookupFor(16);
  strange.GetReflection()->MutableUnknownFields(&strange)->AddVarint(1000, 1);
  ASSERT_TRUE(Lookup(strange).ok());
  EXPECT_EQ(engine->RecentLookup(strange), nullptr);
  EXPECT_NE(engine->RecentLookup(LookupFor(16)), nullptr);
}

TEST_F(EngineTest, AWinnerThatExtentsForbidIsReplaced) {
  Begin();
  Introduce("no key");  // N is then an extent outside the key
  TuneAt(16, "no key");
  const absl::StatusOr<tuner::v1::LookupResponse> response =
      Lookup(LookupFor(int64_t{1} << 32, "no key"));
  ASSERT_TRUE(response.ok()) << response.status();
  // Variant 1 has 32-bit offsets; 0 has 64-bit ones in that kernel.
  EXPECT_EQ(response->hit().plan().variant(), 0);
  EXPECT_THAT(response->hit().substitution(), HasSubstr("32-bit"));
}

TEST_F(EngineTest, ConditionsOverScalarsAreNotALookupsBusiness) {
  Begin();
  Introduce("assume alpha");
  TuneAt(16, "assume alpha");
  const absl::StatusOr<tuner::v1::LookupResponse> response = Lookup(LookupFor(16, "assume alpha"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->hit().plan().variant(), 1);
}

TEST_F(EngineTest, DescribesAKernelAlone) {
  Begin();
  TuneAt(16);
  tuner::v1::LookupRequest request = LookupFor(16);
  request.clear_extents();
  request.set_want_description(true);
  const absl::StatusOr<tuner::v1::LookupResponse> response = Lookup(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->miss().description().kernel(), "add");
  EXPECT_EQ(response->miss().key(), "");
}

TEST_F(EngineTest, BadLookupsAreRefused) {
  Begin();
  tuner::v1::LookupRequest request = LookupFor(16);
  request.set_device_uuid("GPU-7");
  EXPECT_EQ(Lookup(request).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Lookup(request).status().message()), HasSubstr("host"));
  request = LookupFor(16);
  request.clear_extents();
  EXPECT_EQ(Lookup(request).status().code(), absl::StatusCode::kInvalidArgument);
  request = LookupFor(16);
  *request.add_extents() = request.extents(0);
  EXPECT_EQ(Lookup(request).status().code(), absl::StatusCode::kInvalidArgument);
  request = LookupFor(-1);
  EXPECT_EQ(Lookup(request).status().code(), absl::StatusCode::kInvalidArgument);
  request = LookupFor(16, "other");
  request.mutable_kernel()->set_source_text("not that text");
  EXPECT_EQ(Lookup(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(EngineTest, SourcesAndResultsOutliveTheEngine) {
  open_results = cache::OpenSqliteStore;
  Begin();
  TuneAt(16);
  engine.reset();
  Start();
  const absl::StatusOr<tuner::v1::LookupResponse> response = Lookup(LookupFor(16));
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_TRUE(response->has_hit());
  EXPECT_EQ(response->hit().generation(), 1);
  EXPECT_EQ(runner->compiles, 0);
}

// A damaged database is set aside and replaced: what is tuned then is remembered, and the status
// says both.
TEST_F(EngineTest, ADamagedDatabaseIsNamedAndTheNextResultRemembered) {
  open_results = cache::OpenSqliteStore;
  const std::string chip = folder->path() + "/x86-64-v3/autotune";
  std::filesystem::create_directories(chip);
  std::ofstream(chip + "/results.db") << std::string(20000, 'g');
  Begin();
  TuneAt(16);
  tuner::v1::GetStatusResponse status;
  engine->FillStatus(status);
  ASSERT_EQ(status.caches_size(), 1);
  EXPECT_TRUE(status.caches(0).is_remembering());
  ASSERT_EQ(status.problems_size(), 1);
  EXPECT_THAT(status.problems(0), HasSubstr(chip + "/results.db.damaged-"));
  engine.reset();
  Start();
  EXPECT_TRUE(Lookup(LookupFor(16))->has_hit());
  status.Clear();
  engine->FillStatus(status);
  EXPECT_TRUE(status.caches(0).is_remembering());
  EXPECT_THAT(status.problems(), ::testing::IsEmpty());
}

// A store whose every write is refused, and that says so.
class RefusingStore : public cache::ResultStore {
 public:
  absl::StatusOr<int64_t> Append(const cache::KeyColumns&, const cache::Generation&) override {
    return absl::UnavailableError("write: No space left on device");
  }
  absl::StatusOr<std::optional<cache::Generation>> Find(std::string_view key) override {
    return nothing_->Find(key);
  }
  absl::StatusOr<std::optional<cache::Generation>> FindGeneration(std::string_view key,
                                                                  int64_t number) override {
    return nothing_->FindGeneration(key, number);
  }
  absl::StatusOr<cache::Page> List(const cache::Filter& filter, int page_size,
                                   std::string_view token) override {
    return nothing_->List(filter, page_size, token);
  }
  absl::Status Remember(std::string_view, std::string_view, std::string_view) override {
    return absl::UnavailableError("write: No space left on device");
  }
  absl::StatusOr<std::optional<std::string>> Recall(std::string_view kind,
                                                    std::string_view name) override {
    return nothing_->Recall(kind, name);
  }
  absl::StatusOr<cache::StoreStats> Stats() override { return nothing_->Stats(); }
  cache::StoreHealth Health() override { return {false, "the disk is full"}; }

 private:
  const std::unique_ptr<cache::ResultStore> nothing_ = cache::MakeMemoryStore();
};

// Where nothing can be kept the caller still gets what was measured; generation 0 says that it is
// its alone.
TEST_F(EngineTest, AResultThatCannotBeKeptIsAnsweredAllTheSame) {
  open_results = [](const std::string&) { return std::make_unique<RefusingStore>(); };
  Start();
  for (int i = 1; i <= 2; ++i) {
    TuningCaller caller(*this, 1);
    tuner::v1::Open open = OpenFor(16);
    open.mutable_kernel()->set_source_text(kSource);
    const absl::Status status = caller.Run(open);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(caller.result().generation(), 0);
    EXPECT_EQ(caller.result().winner(), 1);
    EXPECT_FALSE(caller.was_hit());
    EXPECT_EQ(tunes, i);
  }
  tuner::v1::GetStatusResponse status;
  engine->FillStatus(status);
  EXPECT_FALSE(status.caches(0).is_remembering());
  ASSERT_EQ(status.problems_size(), 1);
  EXPECT_THAT(status.problems(0), HasSubstr("the disk is full"));
}

TEST_F(EngineTest, CompileGivesOneVariant) {
  Start();
  EXPECT_TRUE(Compile(0)->has_need_source());
  Introduce();
  const absl::StatusOr<tuner::v1::CompileResponse> response = Compile(0);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->compiled().plan().variant(), 0);
  EXPECT_EQ(Compile(3).status().code(), absl::StatusCode::kInvalidArgument);
  runner->racy_variant = 0;
  const absl::Status racy = Compile(0).status();
  EXPECT_EQ(racy.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(error::DetailOf(racy).reason(), tuner::v1::ERROR_REASON_RACE);
  EXPECT_THAT(std::string(racy.message()), HasSubstr("blocks 0 and 1"));
  EXPECT_THAT(error::DetailOf(racy).remedy(), HasSubstr("ph.atomic_"));
}

// Compilers that take long keep nobody waiting who only reads.
TEST_F(EngineTest, SlowCompilersStarveNobody) {
  Begin();
  TuneAt(16);
  absl::Notification may_go;
  runner->before_single_compile = [&](int variant) {
    if (variant == 0) may_go.WaitForNotification();
  };
  constexpr int kCompiles = 40;
  absl::BlockingCounter compiled(kCompiles);
  for (int i = 0; i < kCompiles; ++i) {
    tuner::v1::CompileRequest request;
    *request.mutable_kernel() = OpenFor(16).kernel();
    engine->Compile(request, [&](const auto&) { compiled.DecrementCount(); });
  }
  absl::Notification answered;
  std::thread watchdog([&] {
    EXPECT_TRUE(answered.WaitForNotificationWithTimeout(absl::Seconds(20))) << "starved";
    may_go.Notify();
  });
  EXPECT_TRUE(Lookup(LookupFor(16))->has_hit());
  EXPECT_EQ(List({})->results_size(), 1);
  EXPECT_TRUE(TuningCaller(*this, 1).Run(OpenFor(16)).ok());
  answered.Notify();
  watchdog.join();
  compiled.Wait();
}

TEST_F(EngineTest, ListsAllChipsNewestFirstPageByPage) {
  tuner::v1::Device gpu = HostDevice();
  gpu.set_uuid("GPU-1");
  gpu.set_chip("sm_90");
  devices = {gpu, HostDevice()};
  absl::Time now = absl::FromUnixSeconds(1000);
  settings.now = [&] { return now; };
  Start();
  for (const char* device : {"GPU-1", "host"}) {
    tuner::v1::LookupRequest request = LookupFor(16);
    request.set_device_uuid(device);
    request.mutable_kernel()->set_source_text(kSource);
    ASSERT_TRUE(Lookup(request).ok());
  }
  for (int i = 0; i < 5; ++i) {
    tuner::v1::Open open = OpenFor(16 + i);
    open.set_device_uuid(i % 3 == 0 ? "GPU-1" : "host");
    TuningCaller caller(*this, 1);
    ASSERT_TRUE(caller.Run(open).ok());
    now += absl::Seconds(1);
  }
  std::vector<std::string> keys;
  tuner::v1::ListResultsRequest request;
  request.set_page_size(2);
  int pages = 0;
  do {
    const absl::StatusOr<tuner::v1::ListResultsResponse> page = List(request);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->results_size(), 2);
    for (const tuner::v1::ResultSummary& row : page->results()) {
      keys.push_back(row.chip() + " " + row.key());
    }
    request.set_page_token(page->next_page_token());
    ++pages;
  } while (!request.page_token().empty() && pages < 10);
  EXPECT_THAT(keys, ElementsAre("x86-64-v3 N=20", "sm_90 N=19", "x86-64-v3 N=18", "x86-64-v3 N=17",
                                "sm_90 N=16"));
  request.clear_page_token();
  request.mutable_filter()->set_chip("sm_90");
  EXPECT_EQ(List(request)->results_size(), 2);
  request.set_page_token("not one of ours");
  EXPECT_EQ(List(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.set_page_size(1001);
  EXPECT_EQ(List(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(EngineTest, GetResultByPrefix) {
  Begin();
  TuneAt(16);
  TuneAt(32);
  const absl::StatusOr<tuner::v1::ListResultsResponse> list = List({});
  ASSERT_EQ(list->results_size(), 2);
  const std::string digest = list->results(0).key_digest();
  const absl::StatusOr<tuner::v1::Result> result = Get(digest.substr(0, 12));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->key_digest(), digest);
  EXPECT_EQ(result->generation(), 1);
  EXPECT_TRUE(Get(digest, 1).ok());
  EXPECT_EQ(Get(digest, 2).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Get("abc").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Get("ffffffffffffffff").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(EngineTest, AResultOfAnotherCompilerIsStaleWhereverItIsShown) {
  Begin();
  runner->compiled_by = "fake compiler 0";
  TuneAt(16);
  runner->compiled_by = runner->fingerprint();
  TuneAt(32);
  for (const auto& [key, is_stale] : {std::pair("N=16", true), std::pair("N=32", false)}) {
    const tuner::v1::ListResultsResponse list = *List({});
    ASSERT_EQ(list.results_size(), 2);
    const auto& summary = list.results(0).key() == key ? list.results(0) : list.results(1);
    EXPECT_EQ(summary.stale(), is_stale) << key;
    EXPECT_EQ(Get(summary.key_digest())->stale(), is_stale) << key;
    tuner::v1::LookupRequest request = LookupFor(is_stale ? 16 : 32);
    request.set_want_result(true);
    EXPECT_EQ(Lookup(request)->hit().result().stale(), is_stale) << key;
  }
  tuner::v1::ListResultsRequest request;
  request.mutable_filter()->set_stale(true);
  ASSERT_EQ(List(request)->results_size(), 1);
  EXPECT_EQ(List(request)->results(0).key(), "N=16");
}

TEST_F(EngineTest, AListSaysOfAWinnerThatItWasRecordedNotProved) {
  tune = TuneWithRecorded(1);
  Begin();
  TuneAt(16);
  EXPECT_TRUE(List({})->results(0).race_recorded());
  tune = TuneWithRecorded(0);  // of one that did not win
  TuneAt(32);
  tuner::v1::ListResultsRequest request;
  request.mutable_filter()->add_key()->set_name("N");
  request.mutable_filter()->mutable_key(0)->set_value(32);
  ASSERT_EQ(List(request)->results_size(), 1);
  EXPECT_FALSE(List(request)->results(0).race_recorded());
}

TEST_F(EngineTest, StatusTellsWhatIsThere) {
  Begin();
  TuneAt(16);
  ASSERT_TRUE(Lookup(LookupFor(16)).ok());
  tuner::v1::GetStatusResponse status;
  engine->FillStatus(status);
  EXPECT_EQ(status.compiler_fingerprint(), "fake compiler 1");
  ASSERT_EQ(status.workers_size(), 1);
  EXPECT_EQ(status.workers(0).device().uuid(), "host");
  ASSERT_EQ(status.caches_size(), 1);
  EXPECT_EQ(status.caches(0).results(), 1);
  EXPECT_EQ(status.tunes(), 1);
  EXPECT_EQ(status.lookups(), 2);
  EXPECT_EQ(status.hits(), 1);
}

TEST_F(EngineTest, DatabasesAreInFoldersForThisUserAlone) {
  const mode_t before = umask(0);
  Start();
  umask(before);
  int folders = 0;
  for (const auto& chip : std::filesystem::directory_iterator(folder->path())) {
    const std::filesystem::path databases = chip.path() / "autotune";
    if (!std::filesystem::exists(databases)) continue;
    ++folders;
    EXPECT_EQ(std::filesystem::status(databases).permissions(), std::filesystem::perms::owner_all);
  }
  EXPECT_EQ(folders, 1);
}

TEST_F(EngineTest, NeedsADevice) {
  devices.clear();
  Engine::Parts parts;
  parts.runner = std::make_unique<FakeRunner>(folder->path());
  EXPECT_EQ(Engine::Start(std::move(parts)).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace phobos::engine
