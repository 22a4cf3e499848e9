// SPDX-License-Identifier: Apache-2.0
//
// What a client finds on the other side in its tests: a stock gRPC C++ server of TunerService, each
// verb doing what the test puts into it (UNIMPLEMENTED otherwise, on gRPC's threads), and a side
// socket.
#ifndef PHOBOS_TESTS_CLIENT_STUB_FAKE_DAEMON_H_
#define PHOBOS_TESTS_CLIENT_STUB_FAKE_DAEMON_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proto/phobos/tuner/v1/tuner.grpc.pb.h"

namespace phobos::testing {

namespace proto = tuner::v1;
using TuneStream = grpc::ServerReaderWriter<proto::TuneEvent, proto::TuneRequest>;

class FakeDaemon : public proto::TunerService::Service {
 public:
  // `socket`: its path; one in the test's temporary folder when empty. kLater: listens from Start
  // on, so that whoever calls finds the verbs in place.
  enum class Listen { kAtOnce, kLater };
  explicit FakeDaemon(std::string socket = "", Listen listen = Listen::kAtOnce);
  ~FakeDaemon() override;

  const std::string& socket() const { return socket_; }

  // Says GOAWAY, waits for calls in progress, at most `grace`, and closes; Start listens again.
  void Stop(std::chrono::milliseconds grace = std::chrono::milliseconds(0));
  void Start();

  using Context = grpc::ServerContext;
  std::function<grpc::Status(Context*, const proto::HelloRequest&, proto::HelloResponse*)> hello;
  std::function<grpc::Status(Context*, const proto::LookupRequest&, proto::LookupResponse*)> lookup;
  std::function<grpc::Status(Context*, const proto::CompileRequest&, proto::CompileResponse*)>
      compile;
  std::function<grpc::Status(Context*, const proto::AdoptRequest&, proto::AdoptResponse*)> adopt;
  std::function<grpc::Status(Context*, const proto::GetArtifactRequest&,
                             grpc::ServerWriter<proto::ArtifactChunk>*)>
      get_artifact;
  std::function<grpc::Status(Context*, TuneStream*)> tune;
  std::function<grpc::Status(Context*, TuneStream*)> warm;

 private:
  template <typename Function, typename... Rest>
  static grpc::Status Do(const Function& function, Rest&&... rest) {
    if (!function) return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "not in this test");
    return function(std::forward<Rest>(rest)...);
  }

  grpc::Status Hello(Context* c, const proto::HelloRequest* q, proto::HelloResponse* a) override {
    return Do(hello, c, *q, a);
  }
  grpc::Status Lookup(Context* c, const proto::LookupRequest* q,
                      proto::LookupResponse* a) override {
    return Do(lookup, c, *q, a);
  }
  grpc::Status Compile(Context* c, const proto::CompileRequest* q,
                       proto::CompileResponse* a) override {
    return Do(compile, c, *q, a);
  }
  grpc::Status Adopt(Context* c, const proto::AdoptRequest* q, proto::AdoptResponse* a) override {
    return Do(adopt, c, *q, a);
  }
  grpc::Status GetArtifact(Context* c, const proto::GetArtifactRequest* q,
                           grpc::ServerWriter<proto::ArtifactChunk>* a) override {
    return Do(get_artifact, c, *q, a);
  }
  grpc::Status Tune(Context* c, TuneStream* s) override { return Do(tune, c, s); }
  grpc::Status Warm(Context* c, TuneStream* s) override { return Do(warm, c, s); }

  std::string socket_;
  std::unique_ptr<grpc::Server> server_;
};

// A side socket that hands out memory, as the daemon's does.
class FakeSide {
 public:
  FakeSide();
  ~FakeSide();

  const std::string& socket() const { return socket_; }

  // Makes a segment and gives the ticket for it.
  std::string Make(int64_t bytes) { return MakeTold(bytes, bytes); }
  // Whoever fetches this one is told that it has `told` bytes.
  std::string MakeTold(int64_t bytes, int64_t told);
  // The memory behind a ticket, and how often it was fetched.
  std::byte* Memory(const std::string& ticket);
  int fetched() const { return fetched_; }
  // Side connections that are open.
  int open() const { return open_; }

 private:
  void Serve();
  void ServeOne(int connection);

  std::string socket_;
  int listener_ = -1;
  std::atomic<int> fetched_ = 0;
  std::atomic<int> open_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::pair<int, int64_t>> segments_;  // ticket -> memfd, bytes
  std::vector<std::thread> threads_;
  std::thread server_;
};

}  // namespace phobos::testing

#endif  // PHOBOS_TESTS_CLIENT_STUB_FAKE_DAEMON_H_
