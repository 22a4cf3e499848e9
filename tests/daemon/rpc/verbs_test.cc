// SPDX-License-Identifier: Apache-2.0
//
// The verbs over a real socket, asked by stock gRPC clients; the engine behind them stands on
// fakes.
#include "daemon/rpc/verbs/verbs.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "absl/synchronization/notification.h"
#include "proto/phobos/tuner/v1/admin.grpc.pb.h"
#include "proto/phobos/tuner/v1/cache.grpc.pb.h"
#include "proto/phobos/tuner/v1/tuner.grpc.pb.h"
#include "tests/daemon/engine/engines.h"
#include "tests/daemon/rpc/doors.h"

namespace phobos::rpc {
namespace {

using engine::ArgsFor;
using engine::EngineFixture;
using engine::ExpectedFor;
using engine::OpenFor;
using engine::ResultWith;
using ::testing::HasSubstr;
using Stub = tuner::v1::TunerService::Stub;

class VerbsTest : public ::testing::Test, public EngineFixture {
 protected:
  void SetUp() override {
    Start();
    Introduce();
    served_ = std::make_unique<Served>(Facts(), engine.get());
    stub_ = tuner::v1::TunerService::NewStub(served_->Connect());
  }

  grpc::Status Lookup(const tuner::v1::LookupRequest& request,
                      tuner::v1::LookupResponse& response) {
    grpc::ClientContext context;
    return stub_->Lookup(&context, request, &response);
  }

  std::unique_ptr<Served> served_;
  std::unique_ptr<Stub> stub_;
};

// One Tune stream.
class Stream {
 public:
  explicit Stream(Stub& stub) : stream_(stub.Tune(&context_)) {}

  void Open(const tuner::v1::Open& open) {
    tuner::v1::TuneRequest request;
    *request.mutable_open() = open;
    stream_->Write(request);
  }
  // The next event that is no progress; an empty one at the end.
  tuner::v1::TuneEvent Next() {
    tuner::v1::TuneEvent event;
    while (stream_->Read(&event)) {
      if (!event.has_progress()) return event;
    }
    return {};
  }
  void SendArgs(const tuner::v1::Lead& lead) {
    tuner::v1::TuneRequest request;
    *request.mutable_args() = ArgsFor(lead);
    stream_->Write(request);
  }
  void SendExpected(const tuner::v1::Lead& lead) {
    tuner::v1::TuneRequest request;
    *request.mutable_expected() = ExpectedFor(lead);
    stream_->Write(request);
  }
  void Break() { context_.TryCancel(); }
  grpc::Status Finish() {
    stream_->WritesDone();
    tuner::v1::TuneEvent event;
    while (stream_->Read(&event)) {
    }
    return stream_->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<tuner::v1::TuneRequest, tuner::v1::TuneEvent>> stream_;
};

// Accepts one connection and copies bytes both ways to `socket` until either side ends; `behind` is
// the far descriptor.
void Relay(int listener, const std::string& socket_path, std::atomic<int>& behind) {
  pollfd waiting = {listener, POLLIN, 0};
  poll(&waiting, 1, -1);
  const Fd near(accept(listener, nullptr, nullptr));
  const Fd far(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(connect(far.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  behind = far.get();
  char buffer[4096];
  while (true) {
    pollfd sides[] = {{near.get(), POLLIN, 0}, {far.get(), POLLIN, 0}};
    poll(sides, 2, -1);
    for (int side = 0; side < 2; ++side) {
      if (sides[side].revents == 0) continue;
      const ssize_t n = read(sides[side].fd, buffer, sizeof(buffer));
      if (n <= 0) return;
      if (send(sides[1 - side].fd, buffer, n, MSG_NOSIGNAL) != n) return;
    }
  }
}

TEST_F(VerbsTest, TunesOverTheWire) {
  Stream stream(*stub_);
  stream.Open(OpenFor(16));
  const tuner::v1::TuneEvent lead = stream.Next();
  ASSERT_TRUE(lead.has_lead());
  stream.SendArgs(lead.lead());
  ASSERT_TRUE(stream.Next().has_args_owned());
  stream.SendExpected(lead.lead());
  const tuner::v1::TuneEvent done = stream.Next();
  ASSERT_TRUE(done.has_done());
  EXPECT_EQ(done.done().result().generation(), 1);
  EXPECT_EQ(done.done().plan().variant(), 1);
  EXPECT_FALSE(done.done().cached());
  EXPECT_TRUE(stream.Finish().ok());
  // The caller is who the socket says it is.
  EXPECT_EQ(done.done().result().asked_by(),
            "uid " + std::to_string(getuid()) + " pid " + std::to_string(getpid()));

  Stream again(*stub_);
  again.Open(OpenFor(16));
  EXPECT_TRUE(again.Next().has_hit());
  EXPECT_TRUE(again.Finish().ok());
  while (served_->door().calls() > 0) absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(VerbsTest, LookupTheShortAndTheLongWay) {
  tuner::v1::LookupResponse response;
  ASSERT_TRUE(Lookup(LookupFor(16), response).ok());
  EXPECT_TRUE(response.has_miss());
  ASSERT_TRUE(Lookup(LookupFor(16), response).ok());
  EXPECT_TRUE(response.has_miss());
  engine::TuningCaller caller(*this, 1);
  ASSERT_TRUE(caller.Run(OpenFor(16)).ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Lookup(LookupFor(16), response).ok());
    EXPECT_EQ(response.hit().generation(), 1);
  }
}

TEST_F(VerbsTest, MalformedRequestsAreRefusedByField) {
  const std::pair<std::function<void(tuner::v1::LookupRequest&)>, const char*> spoilers[] = {
      {[](auto& r) { r.mutable_kernel()->set_text_digest("abc"); }, "text_digest"},
      {[](auto& r) { r.mutable_kernel()->set_text_digest(std::string(64, 'G')); }, "text_digest"},
      {[](auto& r) { r.mutable_kernel()->clear_kernel(); }, "name"},
      {[](auto& r) { r.mutable_kernel()->set_kernel(std::string(2000, 'k')); }, "name"},
  };
  for (const auto& [spoil, field] : spoilers) {
    tuner::v1::LookupRequest request = LookupFor(16);
    spoil(request);
    tuner::v1::LookupResponse response;
    const grpc::Status status = Lookup(request, response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(field));
  }
}

// When a caller has its answer nothing of the call is left: the server may go, and the door with
// it.
TEST_F(VerbsTest, AnAnsweredCallIsOver) {
  for (int n = 1; n <= 300; ++n) {
    tuner::v1::LookupResponse response;
    ASSERT_TRUE(Lookup(LookupFor(n), response).ok());
    ASSERT_EQ(served_->door().calls(), 0) << "after " << n;
  }
}

TEST_F(VerbsTest, LargeSourcesAreRefused) {
  tuner::v1::LookupRequest request = LookupFor(16);
  request.mutable_kernel()->set_source_text(std::string((1 << 20) + 1, 'x'));
  tuner::v1::LookupResponse response;
  EXPECT_EQ(Lookup(request, response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(VerbsTest, ABrokenStreamLeavesItsJob) {
  auto first = std::make_unique<Stream>(*stub_);
  first->Open(OpenFor(16));
  ASSERT_TRUE(first->Next().has_lead());
  Stream second(*stub_);
  second.Open(OpenFor(16));
  ASSERT_TRUE(second.Next().has_follow());
  first->Break();
  EXPECT_EQ(first->Finish().error_code(), grpc::StatusCode::CANCELLED);
  const tuner::v1::TuneEvent lead = second.Next();
  ASSERT_TRUE(lead.has_lead());
  second.SendArgs(lead.lead());
  ASSERT_TRUE(second.Next().has_args_owned());
  second.SendExpected(lead.lead());
  EXPECT_TRUE(second.Next().has_done());
  EXPECT_TRUE(second.Finish().ok());
}

TEST_F(VerbsTest, AConnectionThatDiesLeavesItsJob) {
  auto channel_stub = tuner::v1::TunerService::NewStub(served_->Connect());
  auto first = std::make_unique<Stream>(*channel_stub);
  first->Open(OpenFor(16));
  ASSERT_TRUE(first->Next().has_lead());
  Stream second(*stub_);
  second.Open(OpenFor(16));
  ASSERT_TRUE(second.Next().has_follow());
  first->Break();
  first.reset();
  channel_stub.reset();
  EXPECT_TRUE(second.Next().has_lead());
  second.Break();
  EXPECT_FALSE(second.Finish().ok());
}

// Lets a tune go on until it is stopped, or until the test says so.
class LongTune {
 public:
  absl::StatusOr<tuner::v1::Result> Run(tuner::StopToken stop) {
    while (!stop && !may_end) absl::SleepFor(absl::Milliseconds(1));
    if (stop) return absl::CancelledError("stopped");
    return ResultWith(0);
  }
  std::atomic<bool> may_end{false};
};

// Taking back a call withdraws its waiter: the last one ends the job.
TEST_F(VerbsTest, ACancelledCallIsWithdrawn) {
  LongTune long_tune;
  tune = [&](auto&, auto&, auto&, auto&, tuner::StopToken stop, auto*) {
    return long_tune.Run(stop);
  };
  Stream stream(*stub_);
  stream.Open(OpenFor(16));
  const tuner::v1::TuneEvent lead = stream.Next();
  stream.SendArgs(lead.lead());
  ASSERT_TRUE(stream.Next().has_args_owned());
  stream.SendExpected(lead.lead());
  while (tunes == 0) absl::SleepFor(absl::Milliseconds(1));
  stream.Break();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
  while (engine->tunes().Tick()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(engine->tunes().finished(), 0);
}

// A client whose connection breaks is lost: the tune that needs it no more is finished and stored.
TEST_F(VerbsTest, ATuneOutlivesItsLostClient) {
  LongTune long_tune;
  tune = [&](auto&, auto&, auto&, auto&, tuner::StopToken stop, auto*) {
    return long_tune.Run(stop);
  };
  // Through a relay, so that the connection can break without a word from gRPC.
  const std::string front = served_->socket() + ".front";
  absl::StatusOr<Fd> listener = process::Listen(front, /*is_private=*/true);
  ASSERT_TRUE(listener.ok());
  std::atomic<int> behind{-1};
  std::thread relay([&] { Relay(listener->get(), served_->socket(), behind); });
  {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    const auto stub = tuner::v1::TunerService::NewStub(
        grpc::CreateCustomChannel("unix:" + front, grpc::InsecureChannelCredentials(), arguments));
    Stream stream(*stub);
    stream.Open(OpenFor(16));
    const tuner::v1::TuneEvent lead = stream.Next();
    ASSERT_TRUE(lead.has_lead());
    stream.SendArgs(lead.lead());
    ASSERT_TRUE(stream.Next().has_args_owned());
    stream.SendExpected(lead.lead());
    while (tunes == 0) absl::SleepFor(absl::Milliseconds(1));
    shutdown(behind, SHUT_RDWR);  // the connection breaks, with no word on the stream
    EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  relay.join();
  unlink(front.c_str());
  while (served_->door().calls() > 0) absl::SleepFor(absl::Milliseconds(1));
  long_tune.may_end = true;
  while (engine->tunes().finished() == 0) absl::SleepFor(absl::Milliseconds(1));
  tuner::v1::LookupResponse response;
  ASSERT_TRUE(Lookup(LookupFor(16), response).ok());
  EXPECT_TRUE(response.has_hit());
}

TEST_F(VerbsTest, NonsenseOnATuneStreamEndsIt) {
  Stream empty(*stub_);
  empty.Open(tuner::v1::Open());
  EXPECT_EQ(empty.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  Stream early(*stub_);
  early.SendArgs({});
  EXPECT_EQ(early.Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  Stream nothing(*stub_);
  nothing.Break();
  EXPECT_EQ(nothing.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(VerbsTest, AnErrorOfATuneCarriesItsVariants) {
  tune = [](auto&, auto&, auto&, auto&, auto&, std::vector<tuner::v1::VariantResult>* failed) {
    for (int i = 0; i < 500; ++i) failed->emplace_back().set_reason(std::string(300, 'r'));
    return absl::StatusOr<tuner::v1::Result>(absl::FailedPreconditionError("no variant passed"));
  };
  Stream stream(*stub_);
  stream.Open(OpenFor(16));
  const tuner::v1::TuneEvent lead = stream.Next();
  stream.SendArgs(lead.lead());
  ASSERT_TRUE(stream.Next().has_args_owned());
  stream.SendExpected(lead.lead());
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << status.error_message();
  EXPECT_GT(status.error_details().size(), 1000);  // cut to what a header may have, not dropped
}

TEST_F(VerbsTest, CancelIsTheCallersOwn) {
  Stream stream(*stub_);
  stream.Open(OpenFor(16));
  const tuner::v1::TuneEvent lead = stream.Next();
  ASSERT_TRUE(lead.has_lead());
  grpc::ClientContext context;
  tuner::v1::CancelRequest request;
  request.set_job_id(lead.lead().job_id());
  tuner::v1::CancelResponse response;
  EXPECT_TRUE(stub_->Cancel(&context, request, &response).ok());
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
  grpc::ClientContext again;
  EXPECT_EQ(stub_->Cancel(&again, request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(VerbsTest, CompileAndItsArtifactsBytes) {
  grpc::ClientContext context;
  tuner::v1::CompileRequest request;
  *request.mutable_kernel() = OpenFor(16).kernel();
  request.set_variant(1);
  tuner::v1::CompileResponse response;
  ASSERT_TRUE(stub_->Compile(&context, request, &response).ok());
  EXPECT_EQ(response.compiled().plan().variant(), 1);

  // An artifact of more than one chunk, put into the store by its digest.
  const std::string bytes(200'000, 'b');
  const std::string path = folder->path() + "/artifact";
  std::ofstream(path) << bytes;
  auto store = cache::ArtifactStore::Open(folder->path() + "/x86-64-v3/kernels");
  ASSERT_TRUE(store->Adopt(path, Sha256Hex(bytes), "so").ok());
  tuner::v1::GetArtifactRequest wanted;
  wanted.set_chip("x86-64-v3");
  wanted.set_digest(Sha256Hex(bytes));
  wanted.set_file("1.so");
  grpc::ClientContext get_context;
  const auto reader = stub_->GetArtifact(&get_context, wanted);
  std::string received;
  tuner::v1::ArtifactChunk chunk;
  int chunks = 0;
  while (reader->Read(&chunk)) {
    received += chunk.bytes();
    ++chunks;
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(received, bytes);
  EXPECT_EQ(chunks, 4);
}

TEST_F(VerbsTest, ArtifactNamesAreNamesOnly) {
  const std::function<void(tuner::v1::GetArtifactRequest&)> spoilers[] = {
      [](auto& r) { r.set_chip("../x86-64-v3"); },
      [](auto& r) { r.set_digest("../../etc/passwd"); },
      [](auto& r) { r.set_file("a/../../b.so"); },
      [](auto& r) { r.set_chip(""); },
  };
  for (const auto& spoil : spoilers) {
    tuner::v1::GetArtifactRequest request;
    request.set_chip("x86-64-v3");
    request.set_digest(std::string(64, 'a'));
    request.set_file("1.so");
    spoil(request);
    grpc::ClientContext context;
    const auto reader = stub_->GetArtifact(&context, request);
    tuner::v1::ArtifactChunk chunk;
    EXPECT_FALSE(reader->Read(&chunk));
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(VerbsTest, ResultsAreListedAndShown) {
  engine::TuningCaller caller(*this, 1);
  ASSERT_TRUE(caller.Run(OpenFor(16)).ok());
  const auto cache = tuner::v1::CacheService::NewStub(served_->Connect());
  grpc::ClientContext list_context;
  tuner::v1::ListResultsResponse list;
  ASSERT_TRUE(cache->ListResults(&list_context, {}, &list).ok());
  ASSERT_EQ(list.results_size(), 1);
  EXPECT_EQ(list.results(0).winner(), "BLOCK=512");
  grpc::ClientContext get_context;
  tuner::v1::GetResultRequest request;
  request.set_key_digest(list.results(0).key_digest());
  tuner::v1::GetResultResponse response;
  ASSERT_TRUE(cache->GetResult(&get_context, request, &response).ok());
  EXPECT_EQ(response.result().key_text(), caller.result().key_text());
}

}  // namespace
}  // namespace phobos::rpc
