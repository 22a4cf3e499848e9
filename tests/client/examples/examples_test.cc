// SPDX-License-Identifier: Apache-2.0
//
// The C++ and the C example as processes, against a fake tuner: the first tunes, the second
// launches what it stored.
#include <gtest/gtest.h>
#include <stdio.h>

#include <cstdlib>
#include <string>

#include "tests/client/cpp/fake_tuner.h"

namespace phobos {
namespace {

std::string Runfile(const std::string& path) {
  return std::string(getenv("TEST_SRCDIR")) + "/" + getenv("TEST_WORKSPACE") + "/" + path;
}

// What the program wrote; `status` is how it ended.
std::string Output(const std::string& command, int& status) {
  std::string output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  size_t size = 0;
  while ((size = fread(buffer, 1, sizeof(buffer), pipe)) > 0) output.append(buffer, size);
  status = pclose(pipe);
  return output;
}

TEST(Examples, OneTunesTheOtherTakesTheWinner) {
  phobos::testing::FakeTuner tuner;
  setenv("PHOBOS_SOCKET", tuner.socket().c_str(), 1);
  setenv("PHOBOS_AUTOSTART", "0", 1);
  unsetenv("PHOBOS_TUNE");
  const std::string kernel = Runfile("examples/vector_add.py") + " 10000";
  int status = 0;
  const std::string first = Output(Runfile("examples/vector_add") + " " + kernel, status);
  EXPECT_EQ(status, 0) << first;
  EXPECT_NE(first.find("winner BLOCK=512, 1.0 us"), std::string::npos) << first;
  EXPECT_EQ(tuner.tunes, 1);
  const std::string second = Output(Runfile("examples/vector_add_c") + " " + kernel, status);
  EXPECT_EQ(status, 0) << second;
  EXPECT_NE(second.find("\"settings\":{\"BLOCK\":512},\"origin\":\"winner\""), std::string::npos)
      << second;
  EXPECT_EQ(tuner.tunes, 1);
}

TEST(Examples, SayWhatIsWrong) {
  setenv("PHOBOS_SOCKET", "/nonexistent/s", 1);
  setenv("PHOBOS_AUTOSTART", "0", 1);
  for (const char* program : {"examples/vector_add", "examples/vector_add_c"}) {
    int status = 0;
    const std::string output =
        Output(Runfile(program) + " " + Runfile("examples/vector_add.py"), status);
    EXPECT_NE(status, 0);
    EXPECT_NE(output.find("no daemon listens at /nonexistent/s"), std::string::npos) << output;
  }
}

}  // namespace
}  // namespace phobos
