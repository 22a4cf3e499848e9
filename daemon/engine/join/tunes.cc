// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/join/tunes.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "daemon/engine/key.h"
#include "daemon/error/error.h"
#include "daemon/tuner/tolerance.h"

namespace phobos::engine {
namespace {

constexpr int kCompileThreads = 4;
// Opening may ask the compiler; copying must not wait for that.
constexpr int kOpenThreads = 8;
constexpr int kCopyThreads = 4;
// Copies of ended jobs stay mapped this long for the next one.
constexpr absl::Duration kTrimAfter = absl::Seconds(30);
// A contended Result is replaced by itself at most this many times.
constexpr int kMostReplacements = 3;
// Generations before the current one that every store keeps.
constexpr int kKeptBefore = 2;

std::string RunName() {
  absl::BitGen random;
  return absl::StrFormat("%06x", absl::Uniform<uint32_t>(random, 0, 1 << 24));
}

bool IsMadeThisWay(const tuner::v1::Result& result, const Subject& subject) {
  return OptionsText(result.options()) == OptionsText(subject.options);
}

std::string JobKey(const Subject& subject) {
  return absl::StrCat(subject.device.uuid(), " ", subject.key.digest, " ",
                      OptionsText(subject.options));
}

// Slices of a card share its clocks and its memory's bandwidth: they take the card's lock.
const std::string& LockName(const tuner::v1::Device& device) {
  return device.card_uuid().empty() ? device.uuid() : device.card_uuid();
}

// Until the end of a tune that does not run yet; 0: not known.
int64_t EstimateMs(const DeviceQueue::Place& place) {
  if (place.typical == absl::ZeroDuration()) return 0;
  return std::max<int64_t>(0, absl::ToInt64Milliseconds(place.typical + place.wait));
}

}  // namespace

Tunes::Tunes(TuneSettings settings, std::vector<Bench> benches, Kernels& kernels, Chips& chips,
             Finder& finder, compile::Runner& runner, process::SegmentPool& segments,
             tuner::CopyPool& copies)
    : settings_(std::move(settings)),
      kernels_(kernels),
      chips_(chips),
      finder_(finder),
      runner_(runner),
      segments_(segments),
      copies_(copies),
      benches_(std::move(benches)),
      run_name_(RunName()),
      compiling_(kCompileThreads),
      opening_(kOpenThreads),
      copying_(kCopyThreads) {
  for (const Bench& bench : benches_) {
    queues_[bench.device->uuid()] =
        std::make_unique<DeviceQueue>([this, bench](const JobPtr& job) { Run(bench, job); },
                                      [bench] {
                                        bench.worker->EndIfIdle();
                                        return bench.worker->pid() != 0;
                                      });
  }
}

void Tunes::Stop() {
  const absl::MutexLock lock(&mutex_);
  is_stopped_ = true;
  while (!jobs_.empty()) {
    const JobPtr job = jobs_.begin()->second;
    Do(job, job->Fail(error::Stopping()));
  }
}

Tunes::~Tunes() {
  Stop();
  // A long call, such as a warm-up, ends at once; the tune it belongs to has been stopped and gives
  // up.
  for (const Bench& bench : benches_) bench.worker->Stop();
}

// Streams.

uint64_t Tunes::Begin(const Caller& caller, std::shared_ptr<Sink> sink) {
  const absl::MutexLock lock(&mutex_);
  Stream stream;
  stream.caller = caller;
  stream.sink = std::move(sink);
  streams_.emplace(++last_stream_, std::move(stream));
  return last_stream_;
}

void Tunes::Step(uint64_t stream, const tuner::v1::TuneRequest& request) {
  const absl::MutexLock lock(&mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  switch (found->second.state) {
    case Stream::State::kNew:
      if (!request.has_open()) {
        return End(stream, OutOfTurn("a step of the tune", "send Open first"));
      }
      found->second.state = Stream::State::kOpening;
      opening_.Add([this, stream, open = request.open()] { DoOpen(stream, open); });
      return;
    case Stream::State::kOpening:
      return End(stream, OutOfTurn("a step of the tune", "wait for the answer to Open"));
    case Stream::State::kJoined:
      return StepOfJob(stream, found->second.job, request);
    case Stream::State::kOver:
      return;
  }
}

void Tunes::StepOfJob(uint64_t stream, const JobPtr& job, const tuner::v1::TuneRequest& request) {
  const absl::Time now = settings_.now();
  switch (request.step_case()) {
    case tuner::v1::TuneRequest::kArgs:
      return Do(job, job->OnArgs(stream, request.args(), now));
    case tuner::v1::TuneRequest::kExpected:
      return Do(job, job->OnExpected(stream, request.expected(), now));
    case tuner::v1::TuneRequest::kReferenceFailed:
      return Do(job, job->OnReferenceFailed(stream, request.reference_failed().message(), now));
    case tuner::v1::TuneRequest::kOpen:
    case tuner::v1::TuneRequest::STEP_NOT_SET:
      break;
  }
  Do(job, job->Refuse(stream, OutOfTurn("a step of the tune", "send Args and Expected, after Lead"),
                      now));
}

void Tunes::Refuse(uint64_t stream, const absl::Status& status) {
  const absl::MutexLock lock(&mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  const JobPtr job = found->second.job;
  if (job == nullptr) return End(stream, status);
  Do(job, job->Refuse(stream, status, settings_.now()));
}

void Tunes::Leave(uint64_t stream, Job::Departure departure) {
  const absl::MutexLock lock(&mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  const JobPtr job = found->second.job;
  streams_.erase(found);
  if (job != nullptr) Do(job, job->Leave(stream, departure, settings_.now()));
}

absl::Status Tunes::Cancel(const std::string& job_id, const Caller& caller) {
  const absl::MutexLock lock(&mutex_);
  for (const auto& [name, job] : jobs_) {
    if (job->subject().job_id != job_id) continue;
    const uint64_t waiter = job->WaiterOf(caller);
    if (waiter == 0) break;
    const JobPtr found = job;
    Do(found, found->Leave(waiter, Job::Departure::kWithdrawn, settings_.now()));
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("no job ", job_id, " has a waiter of this process; it may have ended"));
}

void Tunes::End(uint64_t stream, const absl::Status& status) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.state == Stream::State::kOver) return;
  found->second.state = Stream::State::kOver;
  found->second.sink->Close(status);
}

void Tunes::EndLocked(uint64_t stream, const absl::Status& status) {
  const absl::MutexLock lock(&mutex_);
  End(stream, status);
}

// Open.

void Tunes::DoOpen(uint64_t stream, tuner::v1::Open open) {
  bool needs_source = false;
  absl::StatusOr<Opened> opened = Resolve(std::move(open), &needs_source);
  if (!opened.ok()) return EndLocked(stream, opened.status());
  if (needs_source) return AskForSource(stream);
  while (true) {
    const int64_t changes = chips_.changes();
    const absl::StatusOr<ResultPtr> stored = Stored(*opened);
    if (!stored.ok()) return EndLocked(stream, stored.status());
    if (*stored != nullptr) return AnswerStored(stream, *opened, **stored);
    // A Result kept since the store was read is found by reading it again.
    if (JoinOrMake(stream, *opened, changes)) return;
  }
}

absl::StatusOr<Tunes::Opened> Tunes::Resolve(tuner::v1::Open open, bool* needs_source) {
  Opened opened;
  ASSIGN_OR_RETURN(const tuner::v1::Device* device, finder_.DeviceOf(open.device_uuid()));
  opened.subject.device = *device;
  opened.subject.chip = chips_.Find(device->chip());
  ASSIGN_OR_RETURN(opened.subject.kernel,
                   kernels_.Resolve(open.kernel(), *opened.subject.chip->results));
  *needs_source = opened.subject.kernel == nullptr;
  if (*needs_source) return opened;
  const compiler::v1::KernelDescription& description = opened.subject.kernel->description;
  const std::vector<tuner::v1::Extent> extents(open.extents().begin(), open.extents().end());
  RETURN_IF_ERROR(CheckExtents(description, extents));
  const std::vector<tuner::v1::Scalar> scalars(open.scalars().begin(), open.scalars().end());
  RETURN_IF_ERROR(CheckScalars(description, scalars));
  RETURN_IF_ERROR(tuner::CheckTolerances(description, open.options()));
  opened.subject.key = MakeKey(description, *device, extents);
  opened.subject.options = Resolved(open.options(), settings_.tie_break);
  open.mutable_kernel()->clear_source_text();
  opened.open = std::move(open);
  return opened;
}

void Tunes::AskForSource(uint64_t stream) {
  const absl::MutexLock lock(&mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.state != Stream::State::kOpening) return;
  found->second.state = Stream::State::kNew;
  tuner::v1::TuneEvent event;
  event.mutable_need_source();
  found->second.sink->Send(event);
}

// The stored Result that answers; null: it is to be tuned.
absl::StatusOr<Tunes::ResultPtr> Tunes::Stored(const Opened& opened) {
  Chip& chip = *opened.subject.chip;
  ASSIGN_OR_RETURN(ResultPtr result, chips_.Current(chip, opened.subject.key.digest));
  if (result == nullptr || !IsMadeThisWay(*result, opened.subject)) return nullptr;
  const int64_t newer_than = opened.open.newer_than_generation();
  if (newer_than != 0) return result->generation() > newer_than ? result : nullptr;
  if (!result->contended()) return result;
  ASSIGN_OR_RETURN(const bool is_tried, IsOftenContended(opened, *result));
  // Asked last: it takes a while.
  return is_tried || !settings_.is_quiet(opened.subject.device) ? result : nullptr;
}

// Whether a contended Result was made again often enough: it and the generations that are kept
// before it are contended, and it is not one of the first.
absl::StatusOr<bool> Tunes::IsOftenContended(const Opened& opened,
                                             const tuner::v1::Result& result) {
  if (result.generation() <= kMostReplacements) return false;
  for (int64_t back = 1; back <= kKeptBefore; ++back) {
    ASSIGN_OR_RETURN(const std::optional<cache::Generation> earlier,
                     opened.subject.chip->results->FindGeneration(opened.subject.key.digest,
                                                                  result.generation() - back));
    const bool is_contended = earlier.has_value() && earlier->contended &&
                              earlier->options == OptionsText(opened.subject.options);
    if (!is_contended) return false;
  }
  return true;
}

void Tunes::AnswerStored(uint64_t stream, const Opened& opened, const tuner::v1::Result& result) {
  const Kernel& kernel = *opened.subject.kernel;
  const std::vector<tuner::v1::Extent> extents(opened.open.extents().begin(),
                                               opened.open.extents().end());
  const std::vector<tuner::v1::Scalar> scalars(opened.open.scalars().begin(),
                                               opened.open.scalars().end());
  absl::StatusOr<Choice> choice =
      finder_.Choose(result, kernel, *opened.subject.chip, extents, scalars);
  const absl::Status status = choice.status();
  tuner::v1::TuneEvent event;
  if (status.ok()) {
    tuner::v1::Hit& hit = *event.mutable_hit();
    hit = HitOf(*std::move(choice), result);
    *hit.mutable_result() = result;
    *hit.mutable_description() = kernel.description;
  }
  const absl::MutexLock lock(&mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.state != Stream::State::kOpening) return;
  if (status.ok()) found->second.sink->Send(event);
  End(stream, status);
}

bool Tunes::JoinOrMake(uint64_t stream, const Opened& opened, int64_t changes) {
  const absl::MutexLock lock(&mutex_);
  const auto found = streams_.find(stream);
  // The caller left, or spoke out of turn, while its Open was looked at.
  if (found == streams_.end() || found->second.state != Stream::State::kOpening) return true;
  if (is_stopped_) {
    End(stream, error::Stopping());
    return true;
  }
  const auto job = jobs_.find(JobKey(opened.subject));
  if (job == jobs_.end() && chips_.changes() != changes) return false;
  absl::StatusOr<JobPtr> joined = job != jobs_.end() ? absl::StatusOr<JobPtr>(job->second)
                                                     : MakeJob(opened, found->second.caller.uid);
  if (!joined.ok()) {
    End(stream, joined.status());
    return true;
  }
  found->second.state = Stream::State::kJoined;
  found->second.job = *joined;
  const absl::Time now = settings_.now();
  Do(*joined,
     (*joined)->Join({stream, found->second.caller, found->second.sink, opened.open, now}, now));
  return true;
}

absl::StatusOr<JobPtr> Tunes::MakeJob(const Opened& opened, uid_t uid) {
  const int64_t of_uid = std::count_if(jobs_.begin(), jobs_.end(), [uid](const auto& named) {
    return named.second->subject().uid == uid;
  });
  if (of_uid >= settings_.jobs_per_uid) {
    return error::Make(absl::StatusCode::kResourceExhausted, tuner::v1::ERROR_REASON_LIMIT,
                       absl::StrCat("uid ", uid, " has ", of_uid, " tunes waiting or running"),
                       "wait for some, or raise --jobs-per-uid");
  }
  Subject subject = opened.subject;
  subject.job_id = absl::StrCat(run_name_, "-", ++last_job_);
  subject.uid = uid;
  const std::string name = JobKey(subject);
  auto job =
      std::make_shared<Job>(std::move(subject), segments_, settings_.copy_bytes, settings_.now());
  // Where nobody can lead yet, the job ends before its compiler starts.
  if (!opened.open.follow_only()) {
    compiling_.Add([this, job] { Compile(job); });
    StartAhead(job);
  }
  jobs_[name] = job;
  return job;
}

// What jobs ask for.

void Tunes::Do(const JobPtr& job, Job::Work work) {
  switch (work) {
    case Job::Work::kNone:
      return;
    case Job::Work::kCopy:
      copying_.Add(
          [this, job, copy = std::make_shared<Job::Copy>(job->TakeCopy())] { Copy(job, *copy); });
      return;
    case Job::Work::kQueue:
      queues_.at(job->subject().device.uuid())->Push(job);
      return;
    case Job::Work::kForget:
      Forget(job);
      return;
  }
}

void Tunes::Forget(const JobPtr& job) {
  last_job_end_ = settings_.now();
  is_trimmed_ = false;
  const auto found = jobs_.find(JobKey(job->subject()));
  if (found != jobs_.end() && found->second == job) jobs_.erase(found);
  if (!job->stop()) return;
  // Nobody waits for the launch under way, which may be one that hangs. The lock is why no other
  // job can have the worker by now.
  for (const Bench& bench : benches_) {
    const auto measured = measured_.find(bench.device->uuid());
    if (measured != measured_.end() && measured->second == job) bench.worker->Kill();
  }
}

void Tunes::Compile(const JobPtr& job) {
  if (job->stop()) return;
  const Subject& subject = job->subject();
  absl::StatusOr<compile::CompiledSpace> space =
      runner_.CompileAll(subject.kernel->source, subject.kernel->description, subject.chip->name,
                         *subject.chip->results, subject.chip->artifacts);
  if (space.ok()) LinkAhead(job, *space);
  const absl::MutexLock lock(&mutex_);
  Do(job, job->OnCompiled(std::move(space), settings_.now()));
}

void Tunes::Copy(const JobPtr& job, const Job::Copy& copy) {
  absl::StatusOr<std::shared_ptr<tuner::Arguments>> arguments = copy.arguments;
  if (copy.is_expected) {
    absl::Status status = copy.arguments->CopyExpected(copy.tensors);
    if (status.ok()) status = copy.arguments->Replace(copy.replaced);
    if (!status.ok()) arguments = status;
  } else {
    arguments = tuner::Arguments::Copy(copies_, copy.uid, copy.tensors);
  }
  if (arguments.ok() && copy.has_foreign()) {
    queues_.at(job->subject().device.uuid())
        ->PushWork(
            [this, job, copy, arguments = *std::move(arguments)] { Fetch(job, copy, arguments); });
    return;
  }
  EndCopy(job, copy, std::move(arguments));
}

// On the device's thread.

void Tunes::Fetch(const JobPtr& job, const Job::Copy& copy,
                  std::shared_ptr<tuner::Arguments> arguments) {
  const std::string& uuid = job->subject().device.uuid();
  {
    const absl::MutexLock lock(&mutex_);
    if (!job->OnFetching(copy)) return;
    measured_[uuid] = job;
  }
  absl::Status status = absl::UnavailableError("the device is gone");
  for (const Bench& bench : benches_) {
    if (bench.device->uuid() != job->subject().device.uuid()) continue;
    ServeOnly(bench, copy.uid);
    status = bench.worker->Fetch(arguments->FetchCall(copy.tensors), arguments->memory()[0]);
  }
  {
    const absl::MutexLock lock(&mutex_);
    measured_.erase(uuid);
  }
  absl::StatusOr<std::shared_ptr<tuner::Arguments>> fetched = std::move(arguments);
  if (!status.ok()) fetched = status;
  EndCopy(job, copy, std::move(fetched));
}

void Tunes::Run(const Bench& bench, const JobPtr& job) {
  if (job->stop()) return;
  absl::StatusOr<tuner::v1::Result> result = Measure(bench, job);
  if (result.ok()) return Complete(job, *std::move(result));
  const absl::MutexLock lock(&mutex_);
  Do(job, job->Fail(result.status()));
}

absl::StatusOr<tuner::v1::Result> Tunes::Measure(const Bench& bench, const JobPtr& job) {
  const std::atomic<bool>& stop = job->stop();
  const std::string& uuid = bench.device->uuid();
  const auto on_busy = [&] {
    const absl::MutexLock lock(&mutex_);
    job->OnCardBusy(settings_.now());
  };
  ASSIGN_OR_RETURN(
      const process::TimingLock card,
      process::TimingLock::Take(settings_.lock_folder, LockName(*bench.device), stop, on_busy));
  absl::StatusOr<Job::Inputs> inputs;
  {
    const absl::MutexLock lock(&mutex_);
    inputs = job->OnStarted(settings_.now());
    if (!inputs.ok()) return inputs.status();
    measured_[uuid] = job;
  }
  ServeOnly(bench, inputs->asked_by.uid);
  const auto progress = [&](const tuner::v1::Progress& news) {
    const absl::MutexLock lock(&mutex_);
    job->OnProgress(news, settings_.now());
  };
  absl::StatusOr<tuner::v1::Result> result =
      MeasureOn(*bench.worker, runner_, settings_.tune, settings_.measuring, job->subject(),
                *inputs, progress, stop);
  {
    const absl::MutexLock lock(&mutex_);
    measured_.erase(uuid);
  }
  if (!result.ok()) return result.status();
  result->set_lock(card.kind());
  result->set_daemon_version(settings_.daemon_version);
  result->set_finished_unix_ms(absl::ToUnixMillis(settings_.now()));
  return result;
}

void Tunes::Complete(const JobPtr& job, tuner::v1::Result result) {
  const Subject& subject = job->subject();
  {
    const absl::MutexLock lock(&mutex_);
    job->FillSplit(*result.mutable_split(), settings_.now());
    tuner::v1::Progress storing;
    storing.set_phase(tuner::v1::PHASE_STORE);
    storing.set_best_ns(result.best_ns());
    storing.set_best_variant(result.winner());
    job->OnProgress(storing, settings_.now());
  }
  // Where nothing can be kept (the status says so) the answer is given all the same, as generation
  // 0.
  const absl::Status kept = chips_.Keep(*subject.chip, subject.key, result);
  if (!kept.ok()) result.set_generation(0);
  std::vector<Waiter> waiters;
  {
    const absl::MutexLock lock(&mutex_);
    waiters = job->Finish();
    Forget(job);
  }
  finished_.fetch_add(1, std::memory_order_relaxed);
  for (const Waiter& waiter : waiters) AnswerDone(waiter, subject, result);
  // What is over the cap goes after the answer; an error shows in the status's size.
  subject.chip->artifacts.Trim(settings_.artifact_bytes).status().IgnoreError();
}

void Tunes::AnswerDone(const Waiter& waiter, const Subject& subject,
                       const tuner::v1::Result& result) {
  const std::vector<tuner::v1::Extent> extents(waiter.open.extents().begin(),
                                               waiter.open.extents().end());
  const std::vector<tuner::v1::Scalar> scalars(waiter.open.scalars().begin(),
                                               waiter.open.scalars().end());
  absl::StatusOr<Choice> choice =
      finder_.Choose(result, *subject.kernel, *subject.chip, extents, scalars);
  if (choice.ok()) {
    tuner::v1::TuneEvent event;
    tuner::v1::TuneDone& done = *event.mutable_done();
    *done.mutable_result() = result;
    *done.mutable_plan() = std::move(choice->plan);
    *done.mutable_description() = subject.kernel->description;
    waiter.sink->Send(event);
  }
  waiter.sink->Close(choice.status());
}

// Time and status.

bool Tunes::Tick() {
  const absl::Time now = settings_.now();
  segments_.Tend(now);
  const absl::MutexLock lock(&mutex_);
  std::vector<JobPtr> jobs;
  for (const auto& [name, job] : jobs_) jobs.push_back(job);
  for (const JobPtr& job : jobs) {
    const DeviceQueue::Place place = queues_.at(job->subject().device.uuid())->PlaceOf(*job, now);
    Do(job, job->Tick(now, place.position, EstimateMs(place)));
  }
  if (jobs_.empty() && !is_trimmed_ && now > last_job_end_ + kTrimAfter) {
    copies_.Trim();
    is_trimmed_ = true;
  }
  return !jobs_.empty();
}

void Tunes::FillStatus(tuner::v1::GetStatusResponse& status) const {
  for (const Bench& bench : benches_) {
    tuner::v1::WorkerStatus& worker = *status.add_workers();
    *worker.mutable_device() = *bench.device;
    worker.set_pid(bench.worker->pid());
    worker.set_state(bench.worker->state());
    worker.set_deaths(bench.worker->deaths());
  }
  const absl::Time now = settings_.now();
  const absl::MutexLock lock(&mutex_);
  // Those that run, then the queues in order, then those that are not ready yet.
  std::vector<std::pair<int, JobPtr>> ordered;
  for (const auto& [name, job] : jobs_) {
    const int position = queues_.at(job->subject().device.uuid())->PlaceOf(*job, now).position;
    const bool is_running = job->stage() == Job::Stage::kRunning;
    ordered.emplace_back(is_running ? 0 : position > 0 ? position : INT32_MAX, job);
  }
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.first, a.second->subject().job_id) <
           std::make_pair(b.first, b.second->subject().job_id);
  });
  for (const auto& [place, job] : ordered) *status.add_jobs() = job->Status(now);
}

}  // namespace phobos::engine
