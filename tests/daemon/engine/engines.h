// SPDX-License-Identifier: Apache-2.0
//
// A whole Engine on fakes, and a caller that tunes with it: what the tests of the engine share. For
// tests only.
#ifndef PHOBOS_TESTS_DAEMON_ENGINE_ENGINES_H_
#define PHOBOS_TESTS_DAEMON_ENGINE_ENGINES_H_

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "cache/memory_store.h"
#include "daemon/engine/engine.h"
#include "tests/daemon/engine/fakes.h"
#include "tests/daemon/engine/messages.h"
#include "tests/daemon/engine/recording_sink.h"

namespace phobos::engine {

// Answers once; for the engine's methods that take a callback.
template <typename Value, typename Call>
absl::StatusOr<Value> Await(Call call) {
  absl::Notification answered;
  absl::StatusOr<Value> answer;
  call([&](absl::StatusOr<Value> value) {
    answer = std::move(value);
    answered.Notify();
  });
  answered.WaitForNotification();
  return answer;
}

struct EngineFixture {
  EngineFixture() : segments(int64_t{1} << 30) {
    folder = std::make_unique<TemporaryFolder>();
    devices = {HostDevice()};
    open_results = [](const std::string&) { return cache::MakeMemoryStore(); };
    settings.daemon_version = "test";
    settings.lock_folder = folder->path();
    settings.now = absl::Now;
    settings.is_quiet = [](const tuner::v1::Device&) { return true; };
    settings.tune = [this](const tuner::Spec& spec, const compile::CompiledSpace& space,
                           const tuner::Arguments& arguments, worker::Worker&,
                           const tuner::Measuring&, const tuner::ProgressSink& progress,
                           tuner::StopToken stop, std::vector<tuner::v1::VariantResult>* failed) {
      ++tunes;
      return tune ? tune(spec, space, arguments, progress, stop, failed)
                  : absl::StatusOr<tuner::v1::Result>(ResultWith(1));
    };
  }

  // REQUIRES: the fields below are as they are to be.
  void Start() {
    Engine::Parts parts;
    parts.cache_dir = folder->path();
    for (const tuner::v1::Device& device : devices) {
      auto worker = std::make_unique<FakeSupervisor>(device);
      workers.push_back(worker.get());
      parts.workers.push_back(std::move(worker));
    }
    auto owned = std::make_unique<FakeRunner>(folder->path());
    owned->before_compile = before_compile;
    runner = owned.get();
    parts.runner = std::move(owned);
    parts.open_results = open_results;
    parts.segments = &segments;
    parts.copy_bytes = int64_t{1} << 30;
    parts.settings = settings;
    absl::StatusOr<std::unique_ptr<Engine>> started = Engine::Start(std::move(parts));
    ASSERT_TRUE(started.ok()) << started.status();
    engine = *std::move(started);
  }

  absl::StatusOr<tuner::v1::LookupResponse> Lookup(const tuner::v1::LookupRequest& request) {
    auto answer =
        Await<Finder::AnswerPtr>([&](auto done) { engine->Lookup(request, std::move(done)); });
    if (!answer.ok()) return answer.status();
    return **answer;
  }

  // Makes the source known to the daemon.
  void Introduce(const std::string& text = kSource) {
    tuner::v1::LookupRequest request = LookupFor(16, text);
    request.mutable_kernel()->set_source_text(text);
    ASSERT_TRUE(Lookup(request).ok());
  }

  void Begin() {
    Start();
    Introduce();
  }

  static tuner::v1::LookupRequest LookupFor(int64_t n, const std::string& text = kSource) {
    tuner::v1::LookupRequest request;
    *request.mutable_kernel() = OpenFor(n, text).kernel();
    request.set_device_uuid("host");
    *request.mutable_extents() = OpenFor(n).extents();
    return request;
  }

  using Tune = std::function<absl::StatusOr<tuner::v1::Result>(
      const tuner::Spec&, const compile::CompiledSpace&, const tuner::Arguments&,
      const tuner::ProgressSink&, tuner::StopToken, std::vector<tuner::v1::VariantResult>*)>;

  std::unique_ptr<TemporaryFolder> folder;
  std::vector<tuner::v1::Device> devices;
  Chips::OpenResults open_results;
  std::function<void()> before_compile;
  TuneSettings settings;
  Tune tune;  // empty: variant 1 wins at once
  std::atomic<int> tunes{0};
  std::vector<FakeSupervisor*> workers;  // one a device
  process::SegmentPool segments;
  std::unique_ptr<Engine> engine;
  FakeRunner* runner = nullptr;
};

// One process that tunes: what the thin client does, in one thread.
class TuningCaller {
 public:
  TuningCaller(EngineFixture& fixture, pid_t pid, uid_t uid = 1000)
      : tunes_(fixture.engine->tunes()), caller_{uid, pid} {
    stream_ = tunes_.Begin(caller_, sink_);
  }
  ~TuningCaller() { Leave(); }
  TuningCaller(const TuningCaller&) = delete;
  TuningCaller& operator=(const TuningCaller&) = delete;

  void Open(const tuner::v1::Open& open) {
    tuner::v1::TuneRequest request;
    *request.mutable_open() = open;
    tunes_.Step(stream_, request);
  }
  void SendArgs() { SendArgs(ArgsFor(lead_)); }
  void SendArgs(const tuner::v1::Args& args) {
    tuner::v1::TuneRequest request;
    *request.mutable_args() = args;
    tunes_.Step(stream_, request);
  }
  void SendExpected() {
    tuner::v1::TuneRequest request;
    *request.mutable_expected() = ExpectedFor(lead_);
    tunes_.Step(stream_, request);
  }
  // Waits for Lead; false: it ended without.
  bool AwaitLead() {
    const tuner::v1::TuneEvent event = sink_->Wait(tuner::v1::TuneEvent::kLead);
    lead_ = event.lead();
    return event.has_lead();
  }
  // It was told Lead again.
  void Lead(const tuner::v1::Lead& lead) { lead_ = lead; }
  // Opens and leads as far as that the tune needs nobody any more. REQUIRES: it is told to lead.
  void HandOver(const tuner::v1::Open& open) {
    Open(open);
    ASSERT_TRUE(AwaitLead());
    SendArgs();
    ASSERT_TRUE(AwaitArgsOwned());
    SendExpected();
  }
  bool AwaitArgsOwned() { return sink_->Wait(tuner::v1::TuneEvent::kArgsOwned).has_args_owned(); }
  void Leave() {
    if (std::exchange(has_left_, true)) return;
    tunes_.Leave(stream_, Job::Departure::kLost);
  }

  // Opens and does all that it is asked until the end.
  absl::Status Run(const tuner::v1::Open& open) {
    Open(open);
    if (AwaitLead()) {
      SendArgs();
      if (AwaitArgsOwned()) SendExpected();
    }
    return sink_->WaitForEnd();
  }

  RecordingSink& sink() { return *sink_; }
  const tuner::v1::Lead& lead() const { return lead_; }
  const Caller& caller() const { return caller_; }
  // The Result of Hit or Done; an empty one when neither came.
  tuner::v1::Result result() const {
    for (const tuner::v1::TuneEvent& event : sink_->events()) {
      if (event.has_hit()) return event.hit().result();
      if (event.has_done()) return event.done().result();
    }
    return {};
  }
  bool was_hit() const {
    const std::vector<tuner::v1::TuneEvent> events = sink_->events();
    return !events.empty() && events.back().has_hit();
  }

 private:
  Tunes& tunes_;
  const Caller caller_;
  const std::shared_ptr<RecordingSink> sink_ = std::make_shared<RecordingSink>();
  uint64_t stream_ = 0;
  tuner::v1::Lead lead_;
  bool has_left_ = false;
};

}  // namespace phobos::engine

#endif  // PHOBOS_TESTS_DAEMON_ENGINE_ENGINES_H_
