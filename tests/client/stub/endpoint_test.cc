// SPDX-License-Identifier: Apache-2.0
#include "client/stub/endpoint.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace phobos::stub {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// A listening socket that accepts nobody: enough to be connected to.
Fd Listen(const std::string& path) {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(listen(fd.get(), 16), 0);
  return fd;
}

// Leaves the file of a socket on which nobody listens any more.
void LeaveStale(const std::string& path) { Listen(path); }

// Makes file permissions count, also for root.
class WithoutOverride {
 public:
  WithoutOverride() {
    EXPECT_EQ(syscall(SYS_capget, &header_, before_), 0);
    __user_cap_data_struct after[2] = {before_[0], before_[1]};
    after[0].effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
    EXPECT_EQ(syscall(SYS_capset, &header_, after), 0);
  }
  ~WithoutOverride() { EXPECT_EQ(syscall(SYS_capset, &header_, before_), 0); }

 private:
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2] = {};
};

class EndpointTest : public ::testing::Test {
 protected:
  EndpointTest() {
    std::string name = "/tmp/phobos-test-XXXXXX";  // short: a socket's path has 107 bytes at most
    folder_ = mkdtemp(name.data());
    fs::create_directory(folder_ + "/run");
    fs::create_directory(folder_ + "/tmp");
    fs::create_directory(folder_ + "/sys");
    places_.system_socket = folder_ + "/sys/tuner.sock";
    places_.runtime_folder = folder_ + "/run";
    places_.temporary_folder = folder_ + "/tmp";
    places_.uid = geteuid();
    places_.why_none_starts = "PHOBOS_AUTOSTART";
  }
  ~EndpointTest() override { fs::remove_all(folder_); }

  std::string UserFolder() const {
    return places_.temporary_folder + "/phobos-" + std::to_string(places_.uid);
  }

  // A stand-in for phobosd that runs these shell commands.
  void UseScript(const std::string& commands) {
    const std::string path = folder_ + "/phobosd";
    std::ofstream(path) << "#!/bin/sh\n" << commands << "\n";
    chmod(path.c_str(), 0755);
    places_.daemon = path;
    places_.why_none_starts.clear();
  }

  StatusOr<Reached> Reach() {
    return stub::Reach(places_, {Clock::now() + milliseconds(20000), nullptr});
  }

  void ExpectReached(const std::string& path) {
    const auto reached = Reach();
    ASSERT_TRUE(reached.ok()) << reached.status().message();
    EXPECT_EQ(reached->path, path);
    EXPECT_TRUE(reached->warnings.empty());
  }

  void ExpectError(Code code, std::initializer_list<std::string> words) {
    const auto reached = Reach();
    ASSERT_FALSE(reached.ok());
    EXPECT_EQ(reached.status().code(), code) << reached.status().message();
    for (const std::string& word : words) {
      EXPECT_NE(reached.status().message().find(word), std::string::npos)
          << reached.status().message() << "\nlacks " << word;
    }
  }

  std::string folder_;
  Places places_;
};

TEST_F(EndpointTest, OrderOfTheSockets) {
  fs::create_directory(places_.runtime_folder + "/phobos");
  fs::create_directory(UserFolder());
  chmod(UserFolder().c_str(), 0700);
  const std::string given = folder_ + "/given.sock";
  const std::string runtime = places_.runtime_folder + "/phobos/tuner.sock";
  const std::string temporary = UserFolder() + "/tuner.sock";
  const Fd a = Listen(given), b = Listen(places_.system_socket), c = Listen(runtime),
           d = Listen(temporary);

  places_.given_socket = given;
  ExpectReached(given);
  places_.given_socket = "";
  ExpectReached(places_.system_socket);
  fs::remove(places_.system_socket);
  ExpectReached(runtime);
  places_.runtime_folder = "";
  ExpectReached(temporary);
}

TEST_F(EndpointTest, ASystemDaemonThatDoesNotAnswerIsAWarning) {
  LeaveStale(places_.system_socket);
  fs::create_directory(places_.runtime_folder + "/phobos");
  const Fd own = Listen(places_.runtime_folder + "/phobos/tuner.sock");
  const auto reached = Reach();
  ASSERT_TRUE(reached.ok()) << reached.status().message();
  EXPECT_EQ(reached->path, places_.runtime_folder + "/phobos/tuner.sock");
  ASSERT_EQ(reached->warnings.size(), 1u);
  EXPECT_NE(reached->warnings[0].find(places_.system_socket), std::string::npos);
}

TEST_F(EndpointTest, NoPermissionNamesTheGroup) {
  const Fd system = Listen(places_.system_socket);
  ASSERT_EQ(chmod(places_.system_socket.c_str(), 0), 0);
  const WithoutOverride as_others;
  ExpectError(Code::kPermissionDenied, {places_.system_socket, "group ", "PHOBOS_SOCKET"});
  ASSERT_EQ(chmod((folder_ + "/sys").c_str(), 0), 0);
  ExpectError(Code::kPermissionDenied, {places_.system_socket, "group ", "PHOBOS_SOCKET"});
  ASSERT_EQ(chmod((folder_ + "/sys").c_str(), 0700), 0);
}

TEST_F(EndpointTest, TheFolderInTmpIsMadeBeforeItIsUsed) {
  places_.runtime_folder = "";
  ExpectError(Code::kUnavailable, {UserFolder()});  // nobody listens, and none is started
  struct stat made = {};
  ASSERT_EQ(lstat(UserFolder().c_str(), &made), 0);
  EXPECT_TRUE(S_ISDIR(made.st_mode));
  EXPECT_EQ(made.st_mode & 0777, 0700u);
  places_.temporary_folder += "/absent";
  ExpectError(Code::kUnavailable, {"mkdir " + UserFolder()});
}

TEST_F(EndpointTest, TheFolderInTmpMustBePrivate) {
  places_.runtime_folder = "";
  fs::create_directory(UserFolder());
  chmod(UserFolder().c_str(), 0755);
  ExpectError(Code::kFailedPrecondition, {UserFolder(), "0700"});
  fs::remove(UserFolder());
  fs::create_directory_symlink(folder_ + "/run", UserFolder());
  ExpectError(Code::kFailedPrecondition, {UserFolder()});
  fs::remove(UserFolder());
  fs::create_directory(UserFolder());
  chmod(UserFolder().c_str(), 0700);
  places_.uid = 12345;
  fs::rename(folder_ + "/tmp/phobos-" + std::to_string(geteuid()), UserFolder());
  ExpectError(Code::kFailedPrecondition, {UserFolder(), "12345"});
}

TEST_F(EndpointTest, SaysWhyNoDaemonIsStarted) {
  ExpectError(Code::kUnavailable, {places_.runtime_folder, "PHOBOS_AUTOSTART"});
  places_.why_none_starts.clear();
  places_.looked_in = "looked for /a, /b";
  ExpectError(Code::kUnavailable, {"phobosd was not found", "/a, /b", "PHOBOS_DAEMON"});
  UseScript("exit 0");
  places_.given_socket = places_.system_socket;
  ExpectError(Code::kUnavailable, {places_.system_socket});
}

TEST_F(EndpointTest, ReportsADaemonThatCannotStart) {
  UseScript("echo noise; echo 'error the cache is full: make room' >&2; exit 1");
  ExpectError(Code::kUnavailable, {"the cache is full: make room"});
  UseScript("echo 'out of luck' >&2; exit 3");
  ExpectError(Code::kUnavailable, {"out of luck"});
  UseScript("kill -9 $$");
  ExpectError(Code::kUnavailable, {"ended at once"});
  UseScript("echo ready " + folder_ + "/nobody.sock");
  ExpectError(Code::kNotFound, {"nobody.sock"});
  places_.daemon = folder_ + "/no such program";
  ExpectError(Code::kUnavailable, {"no such program"});
}

TEST_F(EndpointTest, StartIsToldTheSocketAndInheritsNothing) {
  const std::string given = folder_ + "/sub/given.sock";
  places_.given_socket = given;
  // Somebody listens at another socket: that of the daemon which owns the cache.
  const Fd owner = Listen(folder_ + "/owner.sock");
  const int leaked = open("/dev/null", O_RDONLY);  // not close-on-exec
  UseScript("echo \"$@\" > " + folder_ + "/arguments; ls /proc/self/fd > " + folder_ +
            "/descriptors; echo ready " + folder_ + "/owner.sock");
  ExpectReached(folder_ + "/owner.sock");
  close(leaked);
  std::string arguments;
  std::getline(std::ifstream(folder_ + "/arguments"), arguments);
  EXPECT_EQ(arguments, "--private --background --socket=" + given);
  std::ifstream file(folder_ + "/descriptors");
  std::set<std::string> descriptors;
  for (std::string line; std::getline(file, line);) descriptors.insert(line);
  EXPECT_FALSE(descriptors.contains(std::to_string(leaked)));
  EXPECT_LE(descriptors.size(), 4u);  // 0, 1, 2 and the folder that ls reads
  EXPECT_TRUE(fs::is_directory(folder_ + "/sub"));
  EXPECT_EQ(fs::status(folder_ + "/sub").permissions(), fs::perms::owner_all);
}

// /tmp or /etc, say: nothing is left there, and nobody is told to remove it or to change its
// rights.
TEST_F(EndpointTest, NothingStartsInAFolderThatOthersMayNeed) {
  UseScript("echo start >> " + folder_ + "/starts; exit 1");
  fs::create_directory(folder_ + "/open");
  chmod((folder_ + "/open").c_str(), 01777);
  places_.given_socket = folder_ + "/open/given.sock";
  ExpectError(Code::kFailedPrecondition, {folder_ + "/open is not", "mkdir -m 700 DIR"});
  const std::string message(Reach().status().message());
  EXPECT_EQ(message.find("remove"), std::string::npos) << message;
  EXPECT_EQ(message.find("chmod"), std::string::npos) << message;
  EXPECT_TRUE(fs::is_empty(folder_ + "/open"));
  EXPECT_FALSE(fs::exists(folder_ + "/starts"));
}

TEST_F(EndpointTest, ManyAtOnceStartOne) {
  const std::string given = folder_ + "/given.sock";
  places_.given_socket = given;
  // Each start is noted; the first makes the socket appear by moving one that is listened on.
  const Fd listener = Listen(folder_ + "/hidden.sock");
  UseScript("echo start >> " + folder_ + "/starts; sleep 0.2; mv " + folder_ + "/hidden.sock " +
            given + "; echo ready " + given);
  std::atomic<int> reached = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      if (Reach().ok()) ++reached;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reached, 8);
  std::ifstream starts(folder_ + "/starts");
  int count = 0;
  for (std::string line; std::getline(starts, line);) ++count;
  EXPECT_EQ(count, 1);
}

TEST_F(EndpointTest, WaitingForTheStartCanBeInterrupted) {
  UseScript("exec sleep 60");
  int asked = 0;
  const auto reached =
      stub::Reach(places_, {Clock::time_point::max(), [&] { return ++asked == 2; }});
  EXPECT_EQ(reached.status().code(), Code::kCancelled);
}

TEST_F(EndpointTest, TooLongAPathIsSaid) {
  places_.given_socket = folder_ + "/" + std::string(120, 'x');
  ExpectError(Code::kInvalidArgument, {"107"});
}

TEST(Places, ReadsTheEnvironment) {
  setenv("PHOBOS_SOCKET", "/somewhere/s", 1);
  setenv("PHOBOS_AUTOSTART", "0", 1);
  setenv("PHOBOS_DAEMON", "/bin/true", 1);
  setenv("XDG_RUNTIME_DIR", "/proc", 1);
  Places places = Places::FromEnvironment("", "");
  EXPECT_EQ(places.given_socket, "/somewhere/s");
  EXPECT_NE(places.why_none_starts.find("PHOBOS_AUTOSTART=0"), std::string::npos);
  EXPECT_EQ(places.daemon, "/bin/true");
  if (geteuid() != 0) {
    EXPECT_EQ(places.runtime_folder, "");  // /proc is root's
  }
  EXPECT_TRUE(places.environment.ok());
  for (const char* value : {"no", "false", "off", "bogus", "00", " 0"}) {
    setenv("PHOBOS_AUTOSTART", value, 1);
    const auto reached = stub::Reach(Places::FromEnvironment("", ""), {});
    ASSERT_FALSE(reached.ok());
    EXPECT_EQ(reached.status().code(), Code::kInvalidArgument);
    EXPECT_NE(reached.status().message().find("'" + std::string(value) + "' is no value of PHO"),
              std::string::npos)
        << reached.status().message();
  }
  for (const char* value : {"", "1"}) {
    setenv("PHOBOS_AUTOSTART", value, 1);
    places = Places::FromEnvironment("", "");
    EXPECT_TRUE(places.environment.ok());
    EXPECT_EQ(places.why_none_starts, "");
  }
  unsetenv("PHOBOS_AUTOSTART");
  places = Places::FromEnvironment("/given/s", "/bin/false");
  EXPECT_EQ(places.given_socket, "/given/s");
  EXPECT_EQ(places.daemon, "/bin/false");
  EXPECT_EQ(places.why_none_starts, "");
  unsetenv("PHOBOS_DAEMON");
  unsetenv("PHOBOS_SOCKET");
  places = Places::FromEnvironment("", "");
  EXPECT_EQ(places.given_socket, "");
  EXPECT_NE(places.looked_in.find("/phobosd"), std::string::npos);
}

}  // namespace
}  // namespace phobos::stub
