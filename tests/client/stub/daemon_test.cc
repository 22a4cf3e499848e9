// SPDX-License-Identifier: Apache-2.0
#include "client/stub/daemon.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/client/stub/fake_daemon.h"
#include "tests/sanitizer.h"

namespace phobos::stub {
namespace {

namespace proto = tuner::v1;
using phobos::testing::FakeDaemon;
using phobos::testing::FakeSide;
using phobos::testing::TuneStream;
using std::chrono::milliseconds;

Patience Ample() { return {Clock::now() + milliseconds(20000), nullptr}; }

Daemon::Options OptionsFor(const std::string& socket) {
  Daemon::Options options;
  options.places.given_socket = socket;
  options.places.why_none_starts = "the test starts none";
  options.client_name = "test 1";
  options.warn = [](const std::string&) {};
  return options;
}

// Greets, and answers each Lookup with a Miss whose key is the kernel's name.
void Greet(FakeDaemon& daemon, std::atomic<int>& hellos) {
  daemon.hello = [&hellos](auto*, const proto::HelloRequest& request,
                           proto::HelloResponse* answer) {
    EXPECT_EQ(request.wire_version(), 1);
    EXPECT_EQ(request.client(), "test 1");
    answer->set_wire_version(1);
    answer->set_daemon_version("9.8.7");
    ++hellos;
    return grpc::Status::OK;
  };
  daemon.lookup = [](auto*, const proto::LookupRequest& request, proto::LookupResponse* response) {
    response->mutable_miss()->set_key(request.kernel().kernel());
    return grpc::Status::OK;
  };
}

std::string KeyOf(Daemon& daemon, const std::string& kernel) {
  LookupRequest request;
  request.kernel.kernel = kernel;
  const auto response = daemon.Lookup(request, Ample());
  if (!response.ok()) return "error: " + response.status().message();
  return response->miss.has_value() ? response->miss->key : "no miss";
}

TEST(Daemon, GreetsOnce) {
  std::atomic<int> hellos = 0;
  FakeDaemon fake;
  Greet(fake, hellos);
  Daemon daemon(OptionsFor(fake.socket()));
  EXPECT_EQ(hellos, 0);
  EXPECT_EQ(KeyOf(daemon, "a"), "a");
  EXPECT_EQ(KeyOf(daemon, "b"), "b");
  EXPECT_EQ(hellos, 1);
  const auto link = daemon.Connect(Ample());
  ASSERT_TRUE(link.ok());
  EXPECT_EQ((*link)->hello.daemon_version, "9.8.7");
  EXPECT_EQ((*link)->socket, fake.socket());
}

TEST(Daemon, ConnectsAgainWhenTheDaemonCameBack) {
  std::atomic<int> hellos = 0;
  FakeDaemon fake;
  Greet(fake, hellos);
  Daemon daemon(OptionsFor(fake.socket()));
  EXPECT_EQ(KeyOf(daemon, "a"), "a");
  fake.Stop();
  LookupRequest request;
  EXPECT_EQ(daemon.Lookup(request, Ample()).status().code(), Code::kUnavailable);
  fake.Start();
  EXPECT_EQ(KeyOf(daemon, "b"), "b");
  EXPECT_EQ(hellos, 2);
}

TEST(Daemon, RepeatsACallThatTheConnectionLost) {
  std::atomic<int> hellos = 0;
  FakeDaemon first, second;
  Greet(first, hellos);
  Greet(second, hellos);
  std::atomic<bool> in_call = false;
  first.lookup = [&](grpc::ServerContext* context, const auto&, auto*) {
    in_call = true;
    while (!context->IsCancelled()) std::this_thread::sleep_for(milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  // A name for the one and then for the other, as of a daemon that is started anew.
  const std::string name = first.socket() + ".name";
  std::filesystem::create_symlink(first.socket(), name);
  Daemon daemon(OptionsFor(name));
  ASSERT_TRUE(daemon.Connect(Ample()).ok());
  std::thread restarter([&] {
    while (!in_call) std::this_thread::sleep_for(milliseconds(1));
    std::filesystem::remove(name);
    std::filesystem::create_symlink(second.socket(), name);
    first.Stop();
  });
  EXPECT_EQ(KeyOf(daemon, "x"), "x");
  EXPECT_EQ(hellos, 2);
  restarter.join();
  std::filesystem::remove(name);
}

TEST(Daemon, GreetsTheSuccessorOfOneThatEndedUnheard) {
  std::atomic<int> hellos = 0;
  FakeDaemon second;
  Greet(second, hellos);
  // One that lets clients connect, but ends before it reads a byte.
  const std::string path = second.socket() + ".stopped";
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  memcpy(address.sun_path, path.data(), path.size());
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  const std::string name = second.socket() + ".unheard";
  std::filesystem::create_symlink(path, name);
  std::thread successor([&] {
    // In its queue stands whoever connected; closing it resets them.
    pollfd queue = {listener, POLLIN, 0};
    EXPECT_EQ(poll(&queue, 1, 20000), 1);
    std::filesystem::remove(name);
    std::filesystem::create_symlink(second.socket(), name);
    close(listener);
  });
  Daemon daemon(OptionsFor(name));
  EXPECT_EQ(KeyOf(daemon, "x"), "x");
  EXPECT_EQ(hellos, 1);
  successor.join();
  std::filesystem::remove(name);
  std::filesystem::remove(path);
}

TEST(Daemon, ErrorsOfTheDaemonAreNotRepeated) {
  std::atomic<int> hellos = 0;
  FakeDaemon fake;
  Greet(fake, hellos);
  std::atomic<int> lookups = 0;
  fake.lookup = [&](auto*, const auto&, auto*) {
    ++lookups;
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining");
  };
  Daemon daemon(OptionsFor(fake.socket()));
  EXPECT_EQ(KeyOf(daemon, "x"), "error: draining");
  EXPECT_EQ(lookups, 1);
}

TEST(Daemon, FollowsARedirection) {
  std::atomic<int> hellos = 0;
  FakeDaemon owner;
  Greet(owner, hellos);
  FakeDaemon other;
  other.hello = [&](auto*, const auto&, proto::HelloResponse* answer) {
    answer->set_redirect_socket(owner.socket());
    return grpc::Status::OK;
  };
  Daemon daemon(OptionsFor(other.socket()));
  EXPECT_EQ(KeyOf(daemon, "x"), "x");
  EXPECT_EQ((*daemon.Connect(Ample()))->socket, owner.socket());
}

TEST(Daemon, CollectsAnArtifact) {
  std::atomic<int> hellos = 0;
  FakeDaemon fake;
  Greet(fake, hellos);
  fake.get_artifact = [](auto*, const proto::GetArtifactRequest& request,
                         grpc::ServerWriter<proto::ArtifactChunk>* writer) {
    EXPECT_EQ(request.digest(), "d1");
    for (int i = 0; i < 100; ++i) {
      proto::ArtifactChunk chunk;
      chunk.set_bytes(std::string(60000, static_cast<char>('a' + i % 26)));
      writer->Write(chunk);
    }
    return grpc::Status::OK;
  };
  Daemon daemon(OptionsFor(fake.socket()));
  GetArtifactRequest request;
  request.digest = "d1";
  const auto artifact = daemon.GetArtifact(request, Ample());
  ASSERT_TRUE(artifact.ok());
  ASSERT_EQ(artifact->size(), 6000000u);
  EXPECT_EQ((*artifact)[60000], 'b');
  EXPECT_EQ(artifact->back(), 'a' + 99 % 26);
}

// In a forked child that uses the daemon of its parent. One that hangs fails.
bool ChildConnects(Daemon& daemon) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    bool good = true;
    for (int k = 0; k < 3; ++k) good = good && KeyOf(daemon, "child") == "child";
    _exit(good ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

TEST(Daemon, AForkedChildConnectsByItself) {
  if (RunsUnder("asan")) {
    GTEST_SKIP() << "AddressSanitizer of LLVM 14 lets a child inherit the locks of its allocator, "
                    "which another thread may hold: the child's first malloc then waits for ever";
  }
  std::atomic<int> hellos = 0;
  FakeDaemon fake;
  Greet(fake, hellos);
  Daemon daemon(OptionsFor(fake.socket()));
  ASSERT_EQ(KeyOf(daemon, "before"), "before");
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  // The parent is in a call at most forks.
  std::thread busy([&] {
    while (!stop) {
      if (KeyOf(daemon, "parent") != "parent") ++wrong;
    }
  });
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(ChildConnects(daemon));
  stop = true;
  busy.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(KeyOf(daemon, "after"), "after");
}

// The same at one moment, under every sanitizer: the parent waits for an answer.
TEST(Daemon, AForkedChildConnectsWhileItsParentIsInACall) {
  std::atomic<int> hellos = 0;
  FakeDaemon fake;
  Greet(fake, hellos);
  std::atomic<bool> is_held = false, may_go = false;
  const auto answer = fake.lookup;
  fake.lookup = [&](auto* context, const proto::LookupRequest& request, auto* response) {
    if (request.kernel().kernel() == "parent") {
      is_held = true;
      while (!may_go) std::this_thread::sleep_for(milliseconds(1));
    }
    return answer(context, request, response);
  };
  Daemon daemon(OptionsFor(fake.socket()));
  for (int i = 0; i < 3; ++i) {
    is_held = may_go = false;
    std::string key;
    std::thread parent([&] { key = KeyOf(daemon, "parent"); });
    while (!is_held) std::this_thread::sleep_for(milliseconds(1));
    // Until the fake's threads have come to rest: they are of this process, and the child would
    // inherit a lock of a sanitizer's allocator that one of them holds.
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_TRUE(ChildConnects(daemon));
    may_go = true;
    parent.join();
    EXPECT_EQ(key, "parent");
  }
  EXPECT_EQ(hellos, 4);
}

TEST(Segments, AreFetchedOnceAndUsedAgain) {
  FakeSide side;
  const std::string ticket = side.Make(1 << 20);
  Segments segments(side.socket());
  SegmentGrant grant;
  grant.segment = 7;
  grant.bytes = 1 << 20;
  grant.ticket = ticket;
  const auto bytes = segments.Use(grant);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  std::memcpy(*bytes, "hello", 6);
  EXPECT_STREQ(reinterpret_cast<const char*>(side.Memory(ticket)), "hello");
  EXPECT_TRUE(segments.Unused().empty());
  segments.DropUnused(milliseconds(0));  // in use: stays
  segments.Done(7);
  EXPECT_EQ(segments.Unused(), std::vector<uint64_t>{7});

  grant.ticket.clear();
  const auto again = segments.Use(grant);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *bytes);
  EXPECT_EQ(side.fetched(), 1);
  segments.Done(7);

  segments.DropUnused(std::chrono::hours(1));
  EXPECT_EQ(segments.Unused().size(), 1u);
  segments.DropUnused(milliseconds(0));
  EXPECT_TRUE(segments.Unused().empty());
  for (int i = 0; i < 1000 && side.open() > 0; ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(side.open(), 0);
  EXPECT_EQ(segments.Use(grant).status().code(), Code::kInternal);
}

TEST(Segments, RefusalsAreErrors) {
  FakeSide side;
  Segments segments(side.socket());
  SegmentGrant grant;
  grant.segment = 1;
  grant.bytes = 4096;
  grant.ticket = "not a ticket at ";
  EXPECT_EQ(segments.Use(grant).status().code(), Code::kUnavailable);
  grant.ticket = side.Make(4096);
  grant.bytes = 8192;
  EXPECT_EQ(segments.Use(grant).status().code(), Code::kInternal);
  // A size that is none, or more than the file has.
  for (const int64_t told : {int64_t{0}, int64_t{-1}, int64_t{8192}}) {
    grant.segment = 2;
    grant.bytes = 4096;
    grant.ticket = side.MakeTold(4096, told);
    EXPECT_EQ(segments.Use(grant).status().code(), Code::kInternal) << told;
  }
}

TEST(Daemon, TuneStreamsCarryEvents) {
  std::atomic<int> hellos = 0;
  FakeDaemon fake;
  Greet(fake, hellos);
  fake.tune = [](auto*, TuneStream* stream) {
    proto::TuneRequest request;
    stream->Read(&request);
    proto::TuneEvent event;
    event.mutable_follow()->set_job_id(request.open().kernel().kernel());
    stream->Write(event);
    return grpc::Status::OK;
  };
  Daemon daemon(OptionsFor(fake.socket()));
  auto call = daemon.Tune(/*warm=*/false, Ample());
  ASSERT_TRUE(call.ok());
  TuneRequest request;
  request.open.emplace().kernel.kernel = "add";
  (*call)->Send(request);
  const auto event = (*call)->Receive(Ample());
  ASSERT_TRUE(event.ok() && event->has_value());
  EXPECT_EQ((*event)->follow->job_id, "add");
  EXPECT_FALSE((*(*call)->Receive(Ample())).has_value());
  EXPECT_FALSE((*call)->is_lost());
}

}  // namespace
}  // namespace phobos::stub
