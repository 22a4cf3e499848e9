// SPDX-License-Identifier: Apache-2.0
#include "base/read_to_end.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/fd.h"

namespace phobos {
namespace {

TEST(ReadToEnd, AppendsWhatIsThere) {
  const std::string path = ::testing::TempDir() + "/text";
  const std::string long_text(200'001, 'x');
  for (const std::string& text : {std::string(), std::string("a\0b", 3), long_text}) {
    std::ofstream(path, std::ios::binary) << text;
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string bytes = "before ";
    EXPECT_EQ(ReadToEnd(file.get(), bytes), 0);
    EXPECT_EQ(bytes, "before " + text);
  }
}

// A folder can be opened, and not read; a stream of the library throws then.
TEST(ReadToEnd, GivesTheErrnoOfARead) {
  const Fd folder(open(::testing::TempDir().c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(folder.ok());
  std::string bytes = "before";
  EXPECT_EQ(ReadToEnd(folder.get(), bytes), EISDIR);
  EXPECT_EQ(bytes, "before");
}

}  // namespace
}  // namespace phobos
