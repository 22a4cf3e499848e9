// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/supervisor.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/child_process.h"
#include "base/status_macros.h"
#include "daemon/error/error.h"
#include "daemon/worker/link/channel.h"
#include "daemon/worker/link/launch_mark.h"
#include "daemon/worker/link/nursery.h"

namespace phobos::worker {
namespace {

constexpr int kWorkerSocket = 3;    // its number in the worker process
constexpr size_t kFieldBytes = 16;  // what a message in a list takes beside its own bytes, at most

// A worker process and what is shared with it.
struct Process {
  pid_t pid = 0;
  Fd socket;
  LaunchMark mark;
};

// How long a launch may take, and a call in which none runs.
struct Limits {
  absl::Duration launch;
  absl::Duration quiet;
};

std::string Text(absl::Duration duration) {
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration));
}

// Watches one call by the marks of the worker, which a launch may have overwritten with anything.
class Watch {
 public:
  Watch(const LaunchMark& mark, Limits limits)
      : mark_(mark), limits_(limits), call_ns_(MonotonicNs()) {}

  // Nanoseconds until the next look is due; not positive: something has run past its limit.
  int64_t Look() {
    const int64_t now = MonotonicNs();
    const int64_t started = mark_.started_ns();
    if (started == 0) {
      // A run may begin at any time: looked for often enough that its limit is kept within a tenth.
      const int64_t left = absl::ToInt64Nanoseconds(limits_.quiet) - (now - QuietSince(now));
      const auto look = std::min(limits_.launch / 10, absl::Milliseconds(100));
      overrun_ = absl::StrCat("gave no answer for ", Text(limits_.quiet));
      return std::min(left, absl::ToInt64Nanoseconds(look));
    }
    if (started != seen_started_) {
      seen_started_ = started;
      first_seen_ns_ = now;
    }
    const bool plausible = started >= call_ns_ && started <= now;
    overrun_ = absl::StrCat("ran longer than ", Text(limits_.launch));
    return absl::ToInt64Nanoseconds(limits_.launch) -
           (now - (plausible ? started : first_seen_ns_));
  }

  const std::string& overrun() const { return overrun_; }

 private:
  int64_t QuietSince(int64_t now) const {
    const int64_t ended = mark_.ended_ns();
    return ended <= now ? std::max(ended, call_ns_) : call_ns_;
  }

  const LaunchMark& mark_;
  const Limits limits_;
  const int64_t call_ns_;
  int64_t seen_started_ = 0;
  int64_t first_seen_ns_ = 0;
  std::string overrun_;
};

class ProcessSupervisor : public Supervisor {
 public:
  explicit ProcessSupervisor(SupervisorOptions options) : options_(std::move(options)) {}
  ~ProcessSupervisor() override { Stop(); }

  absl::StatusOr<tuner::v1::Device> Describe() override {
    if (options_.device.has_value()) return *options_.device;
    const absl::MutexLock lock(&mutex_);
    Request request;
    request.mutable_describe();
    ASSIGN_OR_RETURN(const Reply reply, CallFresh(request, {}, "idle"));
    return reply.device();
  }

  absl::Status Begin(const JobSetup& setup, const std::vector<SharedMemory>& memory) override {
    const absl::MutexLock lock(&mutex_);
    Request request;
    *request.mutable_begin() = setup;
    std::vector<int> descriptors;
    for (const SharedMemory& shared : memory) descriptors.push_back(shared.fd);
    absl::Status status = CallFresh(request, descriptors, "checking").status();
    if (!absl::IsResourceExhausted(status) || !AwaitUnended()) return status;
    return Call(request, descriptors, "checking", Watched()).status();
  }

  absl::Status Expect(const std::vector<VariantSetup>& variants) override {
    const absl::MutexLock lock(&mutex_);
    Request request;
    request.mutable_expect();
    size_t bytes = 0;
    for (const VariantSetup& variant : variants) {
      bytes += variant.ByteSizeLong() + kFieldBytes;
      if (bytes > kMostMessageBytes / 2) break;  // the rest is not expected
      *request.mutable_expect()->add_variants() = variant;
    }
    return CallFresh(request, {}, "checking").status();
  }

  absl::Status Preload(const PreloadCall& call, const SharedMemory& memory) override {
    const absl::MutexLock lock(&mutex_);
    Request request;
    *request.mutable_preload() = call;
    return CallFresh(request, {memory.fd}, "idle").status();
  }

  absl::Status Fetch(const FetchCall& call, const SharedMemory& to) override {
    const absl::MutexLock lock(&mutex_);
    Request request;
    *request.mutable_fetch() = call;
    return CallFresh(request, {to.fd}, "idle").status();
  }

  absl::StatusOr<LoadOutcome> Load(const VariantSetup& variant) override {
    const absl::MutexLock lock(&mutex_);
    Request request;
    *request.mutable_load() = variant;
    // Reading a file can take long on a busy disk, which is not the variant's fault.
    ASSIGN_OR_RETURN(const Reply reply,
                     Call(request, {}, "checking", {options_.quiet_limit, options_.quiet_limit}));
    return reply.load();
  }

  absl::StatusOr<CheckOutcome> Check(int variant, uint64_t seed) override {
    const absl::MutexLock lock(&mutex_);
    Request request;
    request.mutable_check()->set_variant(variant);
    request.mutable_check()->set_seed(seed);
    ASSIGN_OR_RETURN(const Reply reply, Call(request, {}, "checking", Watched()));
    return reply.check();
  }

  absl::StatusOr<CheckOutcome> Record(int variant, uint64_t seed) override {
    const absl::MutexLock lock(&mutex_);
    Request request;
    request.mutable_record()->set_variant(variant);
    request.mutable_record()->set_seed(seed);
    ASSIGN_OR_RETURN(const Reply reply, Call(request, {}, "checking", Watched()));
    return reply.check();
  }

  absl::StatusOr<int64_t> WarmUp(const std::vector<int>& variants,
                                 absl::Duration at_least) override {
    const absl::MutexLock lock(&mutex_);
    Request request;
    request.mutable_warm_up()->mutable_variants()->Add(variants.begin(), variants.end());
    request.mutable_warm_up()->set_at_least_ns(absl::ToInt64Nanoseconds(at_least));
    ASSIGN_OR_RETURN(const Reply reply, Call(request, {}, "timing", Watched()));
    return reply.launches();
  }

  absl::StatusOr<RoundOutcome> Round(const std::vector<int>& order, bool flush) override {
    const absl::MutexLock lock(&mutex_);
    Request request;
    request.mutable_round()->mutable_order()->Add(order.begin(), order.end());
    request.mutable_round()->set_flush(flush);
    ASSIGN_OR_RETURN(const Reply reply, Call(request, {}, "timing", Watched()));
    return reply.round();
  }

  absl::Status End() override {
    const absl::MutexLock lock(&mutex_);
    if (!process_.has_value()) return absl::OkStatus();  // the job went with its process
    Request request;
    request.mutable_end();
    // Unloading runs the artifacts' last code, unmarked: it gets a launch's limit.
    return Call(request, {}, "idle", {launch_limit_, launch_limit_}).status();
  }

  void EndIfIdle() override {
    if (!mutex_.TryLock()) return;
    CollectUnended();
    if (process_.has_value() && absl::Now() - last_use_ >= options_.idle_limit) {
      Reap(absl::ZeroDuration());
    }
    mutex_.Unlock();
  }

  void Kill() override {
    const absl::MutexLock lock(&pid_mutex_);
    if (pid_ <= 0) return;
    is_killed_.store(true);
    kill(-pid_, SIGKILL);
  }

  void Stop() override {
    Kill();
    const absl::MutexLock lock(&mutex_);
    if (process_.has_value()) Reap(absl::ZeroDuration());
  }

  pid_t pid() const override {
    const absl::MutexLock lock(&pid_mutex_);
    return pid_;
  }
  std::string state() const override { return state_.load(); }
  int64_t deaths() const override { return deaths_.load(); }

 private:
  Limits Watched() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return {launch_limit_, options_.quiet_limit};
  }

  // Unavailable, with the reason, when no process can be had.
  absl::Status Start() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (process_.has_value()) return absl::OkStatus();
    absl::Status status = TryStart();
    if (status.ok()) return status;
    if (process_.has_value()) Reap(absl::ZeroDuration());
    return error::Attach(absl::UnavailableError(absl::StrCat(
                             "the worker process cannot be started: ", status.message())),
                         error::DetailOf(status));
  }

  absl::Status TryStart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    CollectUnended();
    ASSIGN_OR_RETURN(auto ends, MakeSocketPair());
    ASSIGN_OR_RETURN(LaunchMark mark, LaunchMark::Create());
    ChildOptions child;
    child.argv = options_.command;
    child.argv.push_back(absl::StrCat("--worker-socket=", kWorkerSocket));
    child.descriptors = {{ends.second.get(), kWorkerSocket}};
    ASSIGN_OR_RETURN(const pid_t pid, nursery_.Start(child));
    process_.emplace(Process{pid, std::move(ends.first), std::move(mark)});
    {
      const absl::MutexLock lock(&pid_mutex_);
      pid_ = pid;
      is_killed_.store(false);
    }
    state_.store("idle");
    ends.second = Fd();  // so that the child's end is the only one
    Request request;
    request.mutable_describe();
    return Exchange(request, {process_->mark.fd()}, {options_.start_limit, options_.start_limit})
        .status();
  }

  // A call that needs nothing of what the process holds: a process that died unseen, or was killed,
  // since the last call is replaced.
  absl::StatusOr<Reply> CallFresh(const Request& request, const std::vector<int>& descriptors,
                                  const char* state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // A Kill that came before this was for an earlier call, or for this one's job, which has ended
    // meanwhile and sees so after it; one that comes from here on is for this.
    if (process_.has_value() && is_killed_.load()) Reap(absl::ZeroDuration());
    const bool was_running = process_.has_value();
    absl::StatusOr<Reply> reply = Call(request, descriptors, state, Watched());
    const bool is_news = !last_death_.timed_out && !is_killed_.load();
    if (was_running && absl::IsAborted(reply.status()) && is_news) {
      return Call(request, descriptors, state, Watched());
    }
    return reply;
  }

  // One call, the process started when it is not running.
  absl::StatusOr<Reply> Call(const Request& request, const std::vector<int>& descriptors,
                             const char* state, Limits limits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    RETURN_IF_ERROR(Start());
    state_.store(state);
    absl::StatusOr<Reply> reply = Exchange(request, descriptors, limits);
    state_.store(process_.has_value() ? "idle" : "off");
    return reply;
  }

  // Sends, waits, receives; a process that dies or must be killed meanwhile is Aborted.
  absl::StatusOr<Reply> Exchange(const Request& request, const std::vector<int>& descriptors,
                                 Limits limits) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    process_->mark.Clear();
    absl::Status sent = Send(process_->socket.get(), request, descriptors);
    if (absl::IsInvalidArgument(sent)) return sent;
    if (!sent.ok()) return Died();
    if (std::optional<std::string> overrun = AwaitReply(limits); overrun.has_value()) {
      return KillFor(*overrun);
    }
    Reply reply;
    if (!Receive(process_->socket.get(), reply).ok()) return Died();
    last_use_ = absl::Now();
    if (reply.is_lost()) return Lost(reply.message());
    if (reply.code() == 0) return reply;
    return absl::Status(static_cast<absl::StatusCode>(reply.code()), reply.message());
  }

  // Until something can be read, be it the end. Else what took longer than its limit.
  std::optional<std::string> AwaitReply(Limits limits) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Watch watch(process_->mark, limits);
    while (true) {
      const int64_t wait_ns = watch.Look();
      if (wait_ns <= 0) return watch.overrun();
      pollfd entry = {process_->socket.get(), POLLIN, 0};
      if (poll(&entry, 1, static_cast<int>(wait_ns / 1'000'000) + 1) > 0) return std::nullopt;
    }
  }

  // The process closed its end: it is dead or dying.
  absl::Status Died() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Death death;
    death.variant = process_->mark.variant();
    const pid_t pid = process_->pid;
    const std::optional<int> status = Reap(absl::Seconds(1));
    // No kernel can do that to itself.
    death.killed = status.has_value() && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL;
    death.how = status.has_value() ? DescribeExit(*status)
                                   : absl::StrCat("its socket closed", Unended(pid));
    return Record(std::move(death));
  }

  // The device is lost to the process, which said so and ends.
  absl::Status Lost(const std::string& how) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Death death;
    death.variant = process_->mark.variant();
    death.how = how;
    const pid_t pid = process_->pid;
    if (!Reap(absl::ZeroDuration()).has_value()) absl::StrAppend(&death.how, Unended(pid));
    return Record(std::move(death));
  }

  absl::Status KillFor(const std::string& overrun) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Death death;
    death.variant = process_->mark.variant();
    death.timed_out = true;
    death.how = overrun;
    const pid_t pid = process_->pid;
    if (!Reap(absl::ZeroDuration()).has_value()) absl::StrAppend(&death.how, Unended(pid));
    return Record(std::move(death));
  }

  absl::Status Record(Death death) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!is_killed_.load()) deaths_.fetch_add(1);
    last_death_ = std::move(death);
    return absl::AbortedError(absl::StrCat("the worker process died: ", last_death_.how));
  }

  static std::string Unended(pid_t pid) {
    return absl::StrCat("; process ", pid,
                        " has not ended since it was killed: it hangs in a call ",
                        "of the system (a driver's), and keeps what it has of the device");
  }

  // Waits `grace` for the process to end by itself, kills its group, and forgets it; gives its wait
  // status. nullopt: it does not end.
  std::optional<int> Reap(absl::Duration grace) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const pid_t pid = process_->pid;
    AwaitChild(pid, grace);
    // Before the process is collected: until then its number cannot be given to another group.
    kill(-pid, SIGKILL);
    // Giving its memory back may take a while; Kill must not wait for that.
    AwaitChild(pid, options_.end_limit);
    const absl::MutexLock lock(&pid_mutex_);
    const std::optional<ChildEnd> end = CollectChild(pid);
    if (!end.has_value()) unended_.push_back(pid);
    pid_ = 0;
    process_.reset();
    state_.store("off");
    if (!end.has_value()) return std::nullopt;
    return end->wait_status;
  }

  void CollectUnended() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::erase_if(unended_, [](pid_t pid) { return CollectChild(pid).has_value(); });
  }

  // Waits for processes that were killed before and have not ended. Whether the call is to be tried
  // again: one of them has, or Kill came, which the next try tells.
  bool AwaitUnended() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    constexpr absl::Duration kLookAgain = absl::Milliseconds(50);
    const size_t before = unended_.size();
    CollectUnended();
    const int64_t end_ns = MonotonicNs() + absl::ToInt64Nanoseconds(options_.memory_limit);
    while (!unended_.empty() && !is_killed_.load() && MonotonicNs() < end_ns) {
      AwaitChild(unended_.front(), kLookAgain);
      CollectUnended();
    }
    return unended_.size() < before || is_killed_.load();
  }

  const SupervisorOptions options_;
  Nursery nursery_;

  std::atomic<const char*> state_ = "off";
  std::atomic<int64_t> deaths_ = 0;

  std::atomic<bool> is_killed_ = false;  // by Kill, since it was started

  // Held for moments only, so that pid() and Kill need not wait for a call. Taken after mutex_.
  mutable absl::Mutex pid_mutex_;
  pid_t pid_ ABSL_GUARDED_BY(pid_mutex_) = 0;

  // Held for the length of a call.
  mutable absl::Mutex mutex_;
  std::optional<Process> process_ ABSL_GUARDED_BY(mutex_);
  std::vector<pid_t> unended_ ABSL_GUARDED_BY(mutex_);  // killed, and to be collected
  absl::Time last_use_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace

std::unique_ptr<Supervisor> Supervisor::Create(SupervisorOptions options) {
  return std::make_unique<ProcessSupervisor>(std::move(options));
}

}  // namespace phobos::worker
