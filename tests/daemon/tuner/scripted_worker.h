// SPDX-License-Identifier: Apache-2.0
//
// A Worker in memory for tests of the tuner: answers as it is told and writes down what was asked.
// One thread.
#ifndef PHOBOS_TESTS_DAEMON_TUNER_SCRIPTED_WORKER_H_
#define PHOBOS_TESTS_DAEMON_TUNER_SCRIPTED_WORKER_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/worker/worker.h"

namespace phobos::tuner {

class ScriptedWorker : public worker::Worker {
 public:
  // The answers. Most get the number of the call of its kind, from 1.
  std::function<absl::Status()> on_expect = [] { return absl::OkStatus(); };
  std::function<absl::Status(int call)> on_begin = [](int) { return absl::OkStatus(); };
  std::function<absl::Status(int variant)> on_load = [](int) { return absl::OkStatus(); };
  std::function<absl::StatusOr<worker::CheckOutcome>(int variant, int call)> on_check =
      [](int, int) { return Passed(); };
  std::function<absl::StatusOr<worker::CheckOutcome>(int variant, int call)> on_record =
      [](int, int) { return Passed(); };
  std::function<absl::Status(int call)> on_warm_up = [](int) { return absl::OkStatus(); };
  // A sample of a variant in a round.
  std::function<int64_t(int variant, int round)> sample = [](int variant, int) {
    return 1000 + 100 * variant;
  };
  std::function<absl::Status(int round)> on_round = [](int) { return absl::OkStatus(); };
  std::function<bool(int round)> disturbed = [](int) { return false; };
  std::function<std::string(const std::vector<int>& order, int round)> out_of_bounds =
      [](const std::vector<int>&, int) { return ""; };

  // "begin", "load 1", "check 1", "record 1", "warm 0,1", "round 0,1".
  std::vector<std::string> calls;
  std::vector<uint64_t> seeds;
  std::vector<absl::Duration> limits;  // at each check, recording and round
  worker::LoadOutcome usage;           // what each Load says
  int expected = 0;                    // variants of the last Expect

  absl::Status Die(int variant, bool timed_out = false, bool killed = false) {
    last_death_ = {.variant = variant,
                   .timed_out = timed_out,
                   .killed = killed,
                   .how = timed_out ? "ran longer than 1.0 s" : "signal 11"};
    alive_ = false;
    return absl::AbortedError("the worker process died");
  }

  static worker::CheckOutcome Passed(int64_t launch_ns = 1000) {
    worker::CheckOutcome outcome;
    outcome.set_status(tuner::v1::VARIANT_STATUS_TIMED);
    outcome.set_launch_ns(launch_ns);
    return outcome;
  }

  absl::StatusOr<tuner::v1::Device> Describe() override { return tuner::v1::Device(); }
  absl::Status Begin(const worker::JobSetup& setup,
                     const std::vector<worker::SharedMemory>&) override {
    calls.push_back("begin");
    job = setup;
    loaded_.clear();
    alive_ = true;
    return on_begin(++begins_);
  }
  absl::Status Expect(const std::vector<worker::VariantSetup>& variants) override {
    expected = static_cast<int>(variants.size());
    return on_expect();
  }
  absl::StatusOr<worker::LoadOutcome> Load(const worker::VariantSetup& variant) override {
    calls.push_back(absl::StrCat("load ", variant.variant()));
    const absl::Status status = on_load(variant.variant());
    if (!status.ok()) return status;
    loaded_.insert(variant.variant());
    return usage;
  }
  absl::StatusOr<worker::CheckOutcome> Check(int variant, uint64_t seed) override {
    calls.push_back(absl::StrCat("check ", variant));
    seeds.push_back(seed);
    limits.push_back(launch_limit_);
    if (!Has({variant})) return absl::NotFoundError("not loaded");
    return on_check(variant, ++checks_);
  }
  absl::StatusOr<worker::CheckOutcome> Record(int variant, uint64_t seed) override {
    calls.push_back(absl::StrCat("record ", variant));
    seeds.push_back(seed);
    limits.push_back(launch_limit_);
    if (!Has({variant})) return absl::NotFoundError("not loaded");
    return on_record(variant, ++records_);
  }
  absl::StatusOr<int64_t> WarmUp(const std::vector<int>& variants, absl::Duration) override {
    calls.push_back("warm " + absl::StrJoin(variants, ","));
    if (!Has(variants)) return absl::NotFoundError("not loaded");
    const absl::Status status = on_warm_up(++warm_ups_);
    if (!status.ok()) return status;
    return 10;
  }
  absl::StatusOr<worker::RoundOutcome> Round(const std::vector<int>& order, bool flush) override {
    calls.push_back("round " + absl::StrJoin(order, ","));
    flushed = flush;
    limits.push_back(launch_limit_);
    if (!Has(order)) return absl::NotFoundError("not loaded");
    const int round = ++rounds_;
    const absl::Status status = on_round(round);
    if (!status.ok()) return status;
    worker::RoundOutcome outcome;
    for (const int variant : order) outcome.add_samples_ns(sample(variant, round));
    outcome.set_disturbed(disturbed(round));
    outcome.set_out_of_bounds(out_of_bounds(order, round));
    outcome.set_timer_resolution_ns(1);
    return outcome;
  }
  absl::Status End() override {
    calls.push_back("end");
    return absl::OkStatus();
  }

  worker::JobSetup job;
  bool flushed = false;

 private:
  bool Has(const std::vector<int>& variants) const {
    if (!alive_) return false;
    for (const int variant : variants) {
      if (loaded_.count(variant) == 0) return false;
    }
    return true;
  }

  bool alive_ = false;
  std::set<int> loaded_;
  int begins_ = 0, checks_ = 0, records_ = 0, warm_ups_ = 0, rounds_ = 0;
};

}  // namespace phobos::tuner

#endif  // PHOBOS_TESTS_DAEMON_TUNER_SCRIPTED_WORKER_H_
