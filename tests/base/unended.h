// SPDX-License-Identifier: Apache-2.0
//
// For tests: a child process that cannot be collected when it has ended, as one that hangs in a
// driver's call, until Release. Needs unended.py as `data`. One thread.
#ifndef PHOBOS_TESTS_BASE_UNENDED_H_
#define PHOBOS_TESTS_BASE_UNENDED_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace phobos::testing {

class Unended {
 public:
  Unended()
      : file_(::testing::TempDir() + "/unended-" + std::to_string(getpid()) + "-" +
              std::to_string(std::chrono::steady_clock::now().time_since_epoch().count())) {}
  ~Unended() { Release(); }

  // What is run, with whatever more arguments.
  std::vector<std::string> command() const {
    return {"/usr/bin/python3",
            std::string(getenv("TEST_SRCDIR")) + "/" + getenv("TEST_WORKSPACE") +
                "/tests/base/unended.py",
            file_};
  }
  // Why this machine does not let it be made so; empty: it was. That the child did not come so far
  // is a failure.
  std::string problem() const {
    std::ifstream held(file_ + ".held");
    EXPECT_TRUE(held.is_open()) << "the child did not come so far";
    return std::string(std::istreambuf_iterator<char>(held), std::istreambuf_iterator<char>());
  }
  // From now on it can be collected.
  void Release() { std::ofstream(file_) << "now"; }

  // The process that a message calls "process N".
  static pid_t ProcessIn(const std::string& message) {
    const size_t at = message.find("process ");
    return at == std::string::npos ? 0 : atoi(message.c_str() + at + 8);
  }
  // Whether the process goes, collected, within seconds. `look` is called again and again.
  template <typename Look>
  static bool Goes(pid_t pid, Look look) {
    for (int i = 0; i < 1000; ++i) {
      look();
      if (kill(pid, 0) != 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

 private:
  const std::string file_;
};

}  // namespace phobos::testing

#endif  // PHOBOS_TESTS_BASE_UNENDED_H_
