// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cuda/card_watch.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace phobos::device {
namespace {

constexpr int64_t kAskEveryNs = 5'000'000;
constexpr int64_t kAskUsesEveryNs = 100'000'000;  // each takes a millisecond and a half
// What a sampling period says is taken to hold for as long as one lasts.
constexpr int64_t kUseLastsNs = 500'000'000;
// A desktop's own drawing is below.
constexpr unsigned kLeastPercent = 5;
// A batch is disturbed when it took half as long again as the fastest like it, and so much more:
// small batches vary by more.
constexpr double kMostRatio = 1.5;
constexpr int64_t kSlackNs = 100'000;
// The same while NVML says that another process has used the card.
constexpr double kMostSuspectedRatio = 1.1;
constexpr int64_t kSuspectedSlackNs = 20'000;
constexpr int64_t kMostLateNs = 300'000;

int64_t ClockNs(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC); }

// LookAtCard's. Each is longer than the shortest sampling period, a sixth of a second: there one
// that began before has ended, and another one has ended after it. Where a card's are longer, what
// ran before may count, and what runs may be missed.
constexpr int64_t kSettleNs = 250'000'000;
constexpr int64_t kLookNs = 250'000'000;

void Sleep(int64_t ns) {
  const timespec span = {ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&span, nullptr);
}

std::string UseText(const CardUse& use) {
  return absl::StrCat("process ", use.process, " used ", use.percent, " % of the card");
}

std::string ThrottlingText(const tuner::v1::CardState& state) {
  return absl::StrCat("clocks held down by ", state.throttling());
}

}  // namespace

CardWatch::CardWatch(std::unique_ptr<Nvml> nvml, std::optional<unsigned> own_process,
                     int64_t (*clock)())
    : nvml_(std::move(nvml)),
      own_process_(own_process),
      clock_(clock == nullptr ? &MonotonicNs : clock) {}

void CardWatch::Reset() { fastest_ns_.clear(); }

void CardWatch::AskNvml() {
  const int64_t now = clock_();
  if (nvml_ == nullptr || (asked_ns_ != 0 && now - asked_ns_ < kAskEveryNs)) return;
  asked_ns_ = now;
  state_ = nvml_->Read();
  if (asked_uses_ns_ != 0 && now - asked_uses_ns_ < kAskUsesEveryNs) return;
  asked_uses_ns_ = now;
  const auto uses = nvml_->NewUses(ClockNs(CLOCK_REALTIME) / 1000);
  if (!uses.ok()) return;  // the batches still tell
  for (const CardUse& use : *uses) {
    if (!own_process_.has_value() || use.process == *own_process_) continue;
    if (use.percent < kLeastPercent) continue;
    used_until_ns_ = now + kUseLastsNs;
    use_ = UseText(use);
  }
}

std::string CardWatch::Delay(const Ran& ran, bool is_suspected) {
  const auto milliseconds = [](int64_t ns) { return static_cast<double>(ns) / 1e6; };
  int64_t& fastest =
      fastest_ns_.try_emplace({ran.launches, ran.flushes}, ran.span_ns).first->second;
  fastest = std::min(fastest, ran.span_ns);
  const double most = is_suspected ? kMostSuspectedRatio : kMostRatio;
  const int64_t slack = is_suspected ? kSuspectedSlackNs : kSlackNs;
  if (static_cast<double>(ran.span_ns - slack) > most * static_cast<double>(fastest)) {
    return absl::StrFormat("the card took %.2f ms for what it did in %.2f ms before",
                           milliseconds(ran.span_ns), milliseconds(fastest));
  }
  if (is_suspected && ran.late_ns > kMostLateNs) {
    return absl::StrFormat("the card was had %.2f ms late", milliseconds(ran.late_ns));
  }
  return "";
}

std::string CardWatch::Look(const Ran& ran) {
  AskNvml();
  const bool is_suspected = clock_() < used_until_ns_;
  std::string found = Delay(ran, is_suspected);
  if (!found.empty() && is_suspected) absl::StrAppend(&found, "; ", use_);
  if (state_.throttling().empty()) return found;
  return absl::StrCat(ThrottlingText(state_), found.empty() ? "" : "; ", found);
}

std::optional<unsigned> OwnProcess(std::optional<unsigned> host_pid,
                                   const std::vector<unsigned>& before,
                                   const std::vector<unsigned>& now) {
  if (host_pid.has_value()) return host_pid;
  std::optional<unsigned> fresh;
  for (const unsigned process : now) {
    if (std::find(before.begin(), before.end(), process) != before.end()) continue;
    if (fresh.has_value()) return std::nullopt;
    fresh = process;
  }
  return fresh;
}

std::optional<unsigned> HostPid() {
  // PROC_PID_INIT_INO, which never changes.
  constexpr absl::string_view kMachines = "pid:[4026531836]";
  char text[64];
  const ssize_t size = readlink("/proc/self/ns/pid", text, sizeof(text));
  const bool is_machines =
      size > 0 && absl::string_view(text, static_cast<size_t>(size)) == kMachines;
  if (!is_machines) return std::nullopt;
  return static_cast<unsigned>(getpid());
}

absl::StatusOr<std::string> LookAtCard(Nvml& nvml, void (*sleep)(int64_t ns)) {
  if (sleep == nullptr) sleep = &Sleep;
  RETURN_IF_ERROR(nvml.NewUses(ClockNs(CLOCK_REALTIME) / 1000).status());
  sleep(kSettleNs);
  RETURN_IF_ERROR(nvml.NewUses(ClockNs(CLOCK_REALTIME) / 1000).status());
  sleep(kLookNs);
  const tuner::v1::CardState state = nvml.Read();
  if (!state.throttling().empty()) return ThrottlingText(state);
  ASSIGN_OR_RETURN(const std::vector<CardUse> uses, nvml.NewUses(ClockNs(CLOCK_REALTIME) / 1000));
  for (const CardUse& use : uses) {
    if (use.percent >= kLeastPercent) return UseText(use);
  }
  return "";
}

}  // namespace phobos::device
