// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cuda/card_watch.h"

#include <time.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace phobos::device {
namespace {

constexpr int64_t kAskEveryNs = 5'000'000;
constexpr int64_t kAskUsesEveryNs = 50'000'000;
// What a sampling period says is taken to hold for as long as one lasts.
constexpr int64_t kUseLastsNs = 500'000'000;
// A desktop's own drawing is below.
constexpr unsigned kLeastPercent = 5;
// A batch is disturbed when it took half as long again as the fastest like it, and so much more:
// small batches vary by more.
constexpr double kMostRatio = 1.5;
constexpr int64_t kSlackNs = 100'000;

int64_t ClockNs(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC); }

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
  for (const CardUse& use : nvml_->NewUses(ClockNs(CLOCK_REALTIME) / 1000)) {
    if (!own_process_.has_value() || use.process == *own_process_) continue;
    if (use.percent < kLeastPercent) continue;
    used_until_ns_ = now + kUseLastsNs;
    use_ = absl::StrCat("process ", use.process, " used ", use.percent, " % of the card");
  }
}

std::string CardWatch::Look(size_t launches, size_t flushes, int64_t span_ns) {
  AskNvml();
  std::string found;
  const auto add = [&](const std::string& text) {
    absl::StrAppend(&found, found.empty() ? "" : "; ", text);
  };
  if (!state_.throttling().empty()) {
    add(absl::StrCat("clocks held down by ", state_.throttling()));
  }
  if (clock_() < used_until_ns_) add(use_);
  int64_t& fastest = fastest_ns_.try_emplace({launches, flushes}, span_ns).first->second;
  fastest = std::min(fastest, span_ns);
  if (static_cast<double>(span_ns) > kMostRatio * static_cast<double>(fastest) + kSlackNs) {
    add(absl::StrFormat("the card took %.2f ms for what it did in %.2f ms before",
                        static_cast<double>(span_ns) / 1e6, static_cast<double>(fastest) / 1e6));
  }
  return found;
}

}  // namespace phobos::device
