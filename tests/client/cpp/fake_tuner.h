// SPDX-License-Identifier: Apache-2.0
//
// A tuner of one kernel, the vector add, behind a stock gRPC server: enough of the daemon's side of
// every verb to test the client's. Its "compiled" variants are real shared objects. Any thread.
#ifndef PHOBOS_TESTS_CLIENT_CPP_FAKE_TUNER_H_
#define PHOBOS_TESTS_CLIENT_CPP_FAKE_TUNER_H_

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"
#include "tests/client/stub/fake_daemon.h"

namespace phobos::testing {

// The text that the tuner knows once it was sent.
inline constexpr char kAddSource[] = "# add\n";

class FakeTuner {
 public:
  FakeTuner();

  FakeDaemon& daemon() { return daemon_; }
  FakeSide& side() { return side_; }
  const std::string& socket() const { return daemon_.socket(); }

  // add(x: f32[N], y: f32[N], out: f32[N]), key N, BLOCK in 256, 512. Tests may change it before
  // use.
  compiler::v1::KernelDescription description;

  // What a finished tune makes the winner.
  std::atomic<int> winner = 1;
  // Called between Args and ArgsOwned: the time of the daemon's own copying.
  std::function<void()> during_copy;
  // Asked between ArgsOwned and the Result; a status that is not OK ends the tune.
  std::function<grpc::Status(grpc::ServerContext*, TuneStream*)> during_tune;
  // Sent with a Hit, as if the winner was not admissible.
  std::string substitution;
  // Not empty: a Hit says that its variant was recorded at these.
  std::vector<std::pair<std::string, int64_t>> recorded_extents;
  // Not empty: the devices are these cards, and the variants are PTX with the shared objects as
  // host twins (tests/gpu/fake_driver).
  std::vector<std::string> cards;
  // Whether Lead takes CUDA IPC handles.
  std::atomic<bool> takes_cuda_ipc = false;
  // How often a leader is told Lead again, without takes_cuda_ipc.
  std::atomic<int> leads_again = 0;
  // The artifact's path is not told, only its bytes.
  std::atomic<bool> hides_paths = false;
  std::atomic<int> file_of = -1;               // the variant whose file plans name; -1: their own
  std::atomic<bool> spoils_artifacts = false;  // in what it sends
  // Of Compile: not OK is what it answers.
  grpc::Status compile_status;
  compiler::v1::RaceVerdict race_verdict = compiler::v1::RACE_VERDICT_RACE_FREE;

  // Stores a Result at N as if somebody had tuned it.
  void Store(int64_t n, int variant);
  int64_t Generation(int64_t n);

  // What was asked.
  std::atomic<int> lookups = 0;  // with extents
  std::atomic<int> describes = 0;
  std::atomic<int> tunes = 0;
  std::atomic<int> compiles = 0;
  std::atomic<int> sources = 0;  // texts received
  std::atomic<int> fetched_artifacts = 0;

  // Of the last tune.
  proto::Open last_open();
  proto::Args last_args();
  proto::Expected last_expected();
  std::string last_reference_failure();
  // Contents of a tensor in the segment of the last tune: an argument, or the reference's answer.
  std::vector<float> LastArgument(const std::string& name);
  std::vector<float> LastExpected(const std::string& name);

 private:
  using Context = grpc::ServerContext;
  bool Knows(const proto::KernelRef& kernel);
  std::string ArtifactBytes(int variant) const;
  proto::LaunchPlan PlanOf(int variant) const;
  proto::Result ResultOf(int64_t n, int variant, int64_t generation) const;
  grpc::Status Lookup(const proto::LookupRequest& request, proto::LookupResponse* response);
  grpc::Status Tune(Context* context, TuneStream* stream, bool warm);
  grpc::Status Lead(Context* context, TuneStream* stream, const proto::Open& open);

  std::mutex leading_;  // there is one segment
  std::mutex mutex_;
  std::set<std::string> texts_;
  std::map<int64_t, proto::Result> stored_;
  proto::Open open_;
  proto::Args args_;
  proto::Expected expected_;
  std::string failure_;
  proto::Lead lead_;
  std::string ticket_;

  FakeSide side_;
  FakeDaemon daemon_;  // last: its threads use all of the above
};

}  // namespace phobos::testing

#endif  // PHOBOS_TESTS_CLIENT_CPP_FAKE_TUNER_H_
