// SPDX-License-Identifier: Apache-2.0
//
// The thin stub against a stock gRPC C++ server.
#include "client/stub/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

#include "client/stub/unix_socket.h"
#include "client/stub/wire/codec.h"
#include "client/stub/wire/types.h"
#include "client/stub/wire/verbs.h"
#include "tests/client/stub/fake_daemon.h"

namespace phobos::stub {
namespace {

namespace proto = tuner::v1;
using phobos::testing::FakeDaemon;
using phobos::testing::TuneStream;
using std::chrono::milliseconds;

constexpr char kLookup[] = "/phobos.tuner.v1.TunerService/Lookup";
constexpr char kTune[] = "/phobos.tuner.v1.TunerService/Tune";
constexpr char kGetArtifact[] = "/phobos.tuner.v1.TunerService/GetArtifact";

std::unique_ptr<Connection> OpenTo(const FakeDaemon& daemon) {
  StatusOr<Fd> socket = Connect(daemon.socket());
  EXPECT_TRUE(socket.ok()) << socket.status().message();
  return Connection::Open(*std::move(socket));
}

Patience Within(milliseconds time) { return {Clock::now() + time, nullptr}; }
Patience Ample() { return Within(milliseconds(20000)); }

StatusOr<std::string> Unary(Connection& connection, const char* method, const std::string& request,
                            const Patience& patience = Ample(),
                            milliseconds limit = milliseconds(0)) {
  const std::unique_ptr<Call> call = connection.Start(method, limit);
  call->Send(request, true);
  StatusOr<std::optional<std::string>> answer = call->Receive(patience);
  if (!answer.ok()) return answer.status();
  if (!answer->has_value()) return Status(Code::kInternal, "no answer");
  const StatusOr<std::optional<std::string>> end = call->Receive(patience);
  if (!end.ok()) return end.status();
  EXPECT_FALSE(end->has_value());
  return **answer;
}

std::string LookupOf(const std::string& kernel) {
  LookupRequest request;
  request.kernel.kernel = kernel;
  return Encode(request);
}

// Answers each Lookup with a Miss whose key is the kernel's name.
void EchoLookups(FakeDaemon& daemon) {
  daemon.lookup = [](auto*, const proto::LookupRequest& request, proto::LookupResponse* response) {
    response->mutable_miss()->set_key(request.kernel().kernel());
    return grpc::Status::OK;
  };
}

TEST(Connection, UnaryCalls) {
  FakeDaemon daemon;
  EchoLookups(daemon);
  const auto connection = OpenTo(daemon);
  for (int i = 0; i < 100; ++i) {
    const std::string name = "kernel" + std::to_string(i);
    const auto answer = Unary(*connection, kLookup, LookupOf(name));
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(Decode<LookupResponse>(*answer)->miss->key, name);
  }
  EXPECT_TRUE(connection->is_usable());
}

TEST(Connection, RequestsAndAnswersOfManyWindows) {
  FakeDaemon daemon;
  daemon.lookup = [](auto*, const proto::LookupRequest& request, proto::LookupResponse* response) {
    // Three times what came: 9 MB, over the connection's window.
    const std::string& text = request.kernel().source_text();
    response->mutable_miss()->set_key(text + text + text);
    return grpc::Status::OK;
  };
  const auto connection = OpenTo(daemon);
  LookupRequest request;
  request.kernel.source_text = std::string(3 << 20, 'x');
  request.kernel.source_text[12345] = 'y';
  const auto answer = Unary(*connection, kLookup, Encode(request));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  const std::string& text = request.kernel.source_text;
  EXPECT_EQ(Decode<LookupResponse>(*answer)->miss->key, text + text + text);
}

TEST(Connection, StatusWithDetail) {
  FakeDaemon daemon;
  daemon.lookup = [](auto*, const auto&, auto*) {
    proto::ErrorDetail detail;
    detail.set_reason(proto::ERROR_REASON_NO_WINNER);
    detail.set_key("N=7");
    detail.set_remedy("ask again");
    google::protobuf::Any any;
    any.PackFrom(detail);
    const std::string bytes = any.SerializeAsString();
    // google.rpc.Status {details: [any]}.
    const std::string status = std::string("\x1a") + static_cast<char>(bytes.size()) + bytes;
    EXPECT_LT(bytes.size(), 128u);
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                        "no variant passed: 100 % f\xc3\xbcr\nnothing", status);
  };
  const auto connection = OpenTo(daemon);
  const auto answer = Unary(*connection, kLookup, "");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(answer.status().message(), "no variant passed: 100 % f\xc3\xbcr\nnothing");
  ASSERT_NE(answer.status().detail(), nullptr);
  EXPECT_EQ(answer.status().detail()->reason, ErrorReason::kNoWinner);
  EXPECT_EQ(answer.status().detail()->key, "N=7");
  EXPECT_EQ(answer.status().detail()->remedy, "ask again");
  EXPECT_TRUE(connection->is_usable());
}

TEST(Connection, UnknownMethodIsUnimplemented) {
  FakeDaemon daemon;
  const auto connection = OpenTo(daemon);
  const auto answer = Unary(*connection, "/phobos.tuner.v1.TunerService/Nonsense", "");
  EXPECT_EQ(answer.status().code(), Code::kUnimplemented);
}

TEST(Connection, DeadlineEndsTheCallAndNotTheConnection) {
  FakeDaemon daemon;
  std::atomic<bool> cancelled = false;
  std::atomic<bool> slow = true;
  daemon.lookup = [&](grpc::ServerContext* context, const auto&, auto* response) {
    while (slow && !context->IsCancelled()) std::this_thread::sleep_for(milliseconds(5));
    if (slow) cancelled = true;
    response->mutable_miss();
    return grpc::Status::OK;
  };
  const auto connection = OpenTo(daemon);
  const auto start = Clock::now();
  const auto answer = Unary(*connection, kLookup, "", Within(milliseconds(50)));
  EXPECT_EQ(answer.status().code(), Code::kDeadlineExceeded);
  EXPECT_LT(Clock::now() - start, milliseconds(5000));
  for (int i = 0; i < 2000 && !cancelled; ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_TRUE(cancelled);
  slow = false;
  EXPECT_TRUE(Unary(*connection, kLookup, "").ok());
}

TEST(Connection, TellsTheServerTheLimit) {
  FakeDaemon daemon;
  std::atomic<int64_t> left_ms = 0;
  daemon.lookup = [&](grpc::ServerContext* context, const auto&, auto* response) {
    left_ms = std::chrono::duration_cast<milliseconds>(context->deadline() -
                                                       std::chrono::system_clock::now())
                  .count();
    response->mutable_miss();
    return grpc::Status::OK;
  };
  const auto connection = OpenTo(daemon);
  ASSERT_TRUE(Unary(*connection, kLookup, "", Ample(), milliseconds(60000)).ok());
  EXPECT_GT(left_ms, 30000);
  EXPECT_LE(left_ms, 60000);
  // More milliseconds than the header has digits.
  ASSERT_TRUE(Unary(*connection, kLookup, "", Ample(), milliseconds(250000001)).ok());
  EXPECT_GT(left_ms, 249000000);
  EXPECT_LE(left_ms, 250001000);
}

TEST(Connection, InterruptedCallIsCancelled) {
  FakeDaemon daemon;
  daemon.lookup = [](grpc::ServerContext* context, const auto&, auto*) {
    while (!context->IsCancelled()) std::this_thread::sleep_for(milliseconds(5));
    return grpc::Status::OK;
  };
  const auto connection = OpenTo(daemon);
  int asked = 0;
  const Patience patience = {Clock::now() + milliseconds(20000), [&] { return ++asked == 2; }};
  const auto answer = Unary(*connection, kLookup, "", patience);
  EXPECT_EQ(answer.status().code(), Code::kCancelled);
  EXPECT_EQ(asked, 2);
}

TEST(Connection, ASignalIsAskedAboutAtOnce) {
  FakeDaemon daemon;
  daemon.lookup = [](grpc::ServerContext* context, const auto&, auto*) {
    while (!context->IsCancelled()) std::this_thread::sleep_for(milliseconds(5));
    return grpc::Status::OK;
  };
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  const auto connection = OpenTo(daemon);
  const pthread_t waiter = pthread_self();
  std::atomic<bool> signalled = false;
  std::thread sender([&] {
    std::this_thread::sleep_for(milliseconds(20));
    signalled = true;
    pthread_kill(waiter, SIGUSR1);
  });
  const Patience patience = {Clock::now() + milliseconds(20000), [&] { return signalled.load(); }};
  EXPECT_EQ(Unary(*connection, kLookup, "", patience).status().code(), Code::kCancelled);
  sender.join();
}

TEST(Connection, BidirectionalStream) {
  FakeDaemon daemon;
  daemon.tune = [](auto*, TuneStream* stream) {
    proto::TuneRequest request;
    while (stream->Read(&request)) {
      proto::TuneEvent event;
      event.mutable_follow()->set_job_id(request.reference_failed().message());
      stream->Write(event);
    }
    return grpc::Status(grpc::StatusCode::ABORTED, "over");
  };
  const auto connection = OpenTo(daemon);
  const auto call = connection->Start(kTune, milliseconds(0));
  for (int i = 0; i < 10; ++i) {
    TuneRequest request;
    request.reference_failed.emplace().message = "message " + std::to_string(i);
    call->Send(Encode(request), i == 9);
    const auto answer = call->Receive(Ample());
    ASSERT_TRUE(answer.ok() && answer->has_value());
    EXPECT_EQ(Decode<TuneEvent>(**answer)->follow->job_id, request.reference_failed->message);
  }
  const auto end = call->Receive(Ample());
  EXPECT_EQ(end.status().code(), Code::kAborted);
  EXPECT_EQ(end.status().message(), "over");
}

TEST(Connection, TheServerMayEndAStreamFirst) {
  FakeDaemon daemon;
  daemon.tune = [](auto*, TuneStream* stream) {
    proto::TuneRequest request;
    stream->Read(&request);
    proto::TuneEvent event;
    event.mutable_done();
    stream->Write(event);
    return grpc::Status::OK;
  };
  const auto connection = OpenTo(daemon);
  for (int i = 0; i < 20; ++i) {
    const auto call = connection->Start(kTune, milliseconds(0));
    call->Send("", false);
    const auto answer = call->Receive(Ample());
    ASSERT_TRUE(answer.ok() && answer->has_value());
    const auto end = call->Receive(Ample());
    ASSERT_TRUE(end.ok()) << end.status().message();
    EXPECT_FALSE(end->has_value());
  }
}

TEST(Connection, ALargeServerStreamIsHeldBack) {
  FakeDaemon daemon;
  constexpr int kChunks = 400;
  std::atomic<int> written = 0;
  daemon.get_artifact = [&](auto*, const auto&, grpc::ServerWriter<proto::ArtifactChunk>* writer) {
    proto::ArtifactChunk chunk;
    for (int i = 0; i < kChunks; ++i) {
      chunk.set_bytes(std::string(64 << 10, static_cast<char>(i)));
      if (!writer->Write(chunk)) break;
      ++written;
    }
    return grpc::Status::OK;
  };
  const auto connection = OpenTo(daemon);
  const auto call = connection->Start(kGetArtifact, milliseconds(0));
  call->Send("", true);
  for (int i = 0; i < kChunks; ++i) {
    const auto answer = call->Receive(Ample());
    ASSERT_TRUE(answer.ok() && answer->has_value()) << i;
    EXPECT_EQ(Decode<ArtifactChunk>(**answer)->bytes, std::string(64 << 10, static_cast<char>(i)));
    if (i == 0) {
      // 25 MiB are under way; unread, no more than the windows and the socket's buffers may come.
      std::this_thread::sleep_for(milliseconds(100));
      EXPECT_LT(written, kChunks / 2);
    }
  }
  EXPECT_FALSE((*call->Receive(Ample())).has_value());
}

TEST(Connection, ManyThreadsShareOneConnection) {
  FakeDaemon daemon;
  EchoLookups(daemon);
  daemon.tune = [](auto*, TuneStream* stream) {
    proto::TuneRequest request;
    stream->Read(&request);
    for (int i = 0; i < 50; ++i) {
      proto::TuneEvent event;
      event.mutable_progress()->set_done(i);
      stream->Write(event);
      std::this_thread::sleep_for(milliseconds(1));
    }
    return grpc::Status::OK;
  };
  const auto connection = OpenTo(daemon);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::string name = std::to_string(t) + "." + std::to_string(i);
        const auto answer = Unary(*connection, kLookup, LookupOf(name));
        if (!answer.ok() || Decode<LookupResponse>(*answer)->miss->key != name) ++wrong;
      }
    });
  }
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      const auto call = connection->Start(kTune, milliseconds(0));
      call->Send("", false);
      for (int i = 0; i < 50; ++i) {
        const auto answer = call->Receive(Ample());
        if (!answer.ok() || !answer->has_value() ||
            Decode<TuneEvent>(**answer)->progress->done != i) {
          ++wrong;
          return;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Connection, GoAwayLetsCallsFinishAndNewOnesGoElsewhere) {
  FakeDaemon daemon;
  std::atomic<bool> in_call = false;
  daemon.lookup = [&](auto*, const auto&, proto::LookupResponse* response) {
    in_call = true;
    std::this_thread::sleep_for(milliseconds(200));
    response->mutable_miss()->set_key("finished");
    return grpc::Status::OK;
  };
  const auto connection = OpenTo(daemon);
  std::thread stopper([&] {
    while (!in_call) std::this_thread::sleep_for(milliseconds(1));
    daemon.Stop(milliseconds(5000));
  });
  const auto answer = Unary(*connection, kLookup, "");
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(Decode<LookupResponse>(*answer)->miss->key, "finished");
  stopper.join();
  EXPECT_FALSE(connection->is_usable());
  const auto call = connection->Start(kLookup, milliseconds(0));
  call->Send("", true);
  EXPECT_EQ(call->Receive(Ample()).status().code(), Code::kUnavailable);
  EXPECT_TRUE(call->is_lost());
}

TEST(Connection, AHangUpEndsWaitingCalls) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const auto connection = Connection::Open(Fd(ends[0]));
  std::thread closer([&] {
    std::this_thread::sleep_for(milliseconds(20));
    close(ends[1]);
  });
  const auto call = connection->Start(kLookup, milliseconds(0));
  call->Send("", true);
  const auto answer = call->Receive(Ample());
  EXPECT_EQ(answer.status().code(), Code::kUnavailable);
  EXPECT_NE(answer.status().message().find("the daemon went away"), std::string::npos);
  EXPECT_TRUE(call->is_lost());
  EXPECT_FALSE(connection->is_usable());
  closer.join();
}

TEST(Connection, APeerThatSpeaksSomethingElseIsAnError) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd peer(ends[1]);
  const std::string greeting = "220 mail.example.org ESMTP ready, how are you today?\r\n";
  ASSERT_EQ(write(peer.get(), greeting.data(), greeting.size()),
            static_cast<ssize_t>(greeting.size()));
  const auto connection = Connection::Open(Fd(ends[0]));
  const auto answer = Unary(*connection, kLookup, "");
  EXPECT_EQ(answer.status().code(), Code::kUnavailable);
  EXPECT_NE(answer.status().message().find("does not speak HTTP/2"), std::string::npos)
      << answer.status().message();
}

TEST(Connection, ACompressedAnswerIsRefusedAndTheConnectionStays) {
  FakeDaemon daemon;
  daemon.lookup = [](grpc::ServerContext* context, const auto&, proto::LookupResponse* response) {
    context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    response->mutable_miss()->set_key(std::string(10000, 'x'));
    return grpc::Status::OK;
  };
  const auto connection = OpenTo(daemon);
  const auto answer = Unary(*connection, kLookup, "");
  EXPECT_EQ(answer.status().code(), Code::kUnimplemented) << answer.status().message();
  EchoLookups(daemon);
  EXPECT_TRUE(Unary(*connection, kLookup, LookupOf("plain")).ok());
}

TEST(Connection, DroppedCallsAreCancelled) {
  FakeDaemon daemon;
  std::atomic<int> cancelled = 0;
  daemon.tune = [&](grpc::ServerContext* context, TuneStream* stream) {
    proto::TuneRequest request;
    stream->Read(&request);
    while (!context->IsCancelled()) std::this_thread::sleep_for(milliseconds(2));
    ++cancelled;
    return grpc::Status::CANCELLED;
  };
  const auto connection = OpenTo(daemon);
  for (int i = 0; i < 5; ++i) {
    const auto call = connection->Start(kTune, milliseconds(0));
    call->Send("", false);
    EXPECT_EQ(call->Receive(Within(milliseconds(10))).status().code(), Code::kDeadlineExceeded);
  }
  for (int i = 0; i < 2000 && cancelled < 5; ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(cancelled, 5);
}

TEST(Connection, AForkedChildLeavesItAlone) {
  FakeDaemon daemon;
  EchoLookups(daemon);
  const auto connection = OpenTo(daemon);
  ASSERT_TRUE(Unary(*connection, kLookup, LookupOf("before")).ok());
  const pid_t child = fork();
  if (child == 0) {
    const bool refused =
        !connection->is_usable() &&
        Unary(*connection, kLookup, LookupOf("child")).status().code() == Code::kUnavailable;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const auto after = Unary(*connection, kLookup, LookupOf("after"));
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_EQ(Decode<LookupResponse>(*after)->miss->key, "after");
}

}  // namespace
}  // namespace phobos::stub
