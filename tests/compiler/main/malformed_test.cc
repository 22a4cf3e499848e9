// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/status/status.h"
#include "tests/compiler/main/front_end.h"
#include "tests/compiler/main/malformed_cases.h"

namespace phobos::compiler {
namespace {

constexpr char kFolder[] = "tests/golden/malformed";

TEST(Malformed, EachCaseFailsWhereAndAsItShould) {
  const std::vector<MalformedCase> cases = ReadMalformedCases(kFolder);
  std::set<std::string> names;
  for (const MalformedCase& one : cases) {
    SCOPED_TRACE(one.topic + ": " + one.name);
    EXPECT_TRUE(names.insert(one.topic + one.name).second) << "there are two of this name";
    const absl::Status status = RunFrontEnd(one.source);
    const std::string message(status.message());
    if (status.ok()) {
      ADD_FAILURE() << "is accepted";
      continue;
    }
    EXPECT_EQ(FlawOf(status, one.source), "") << message;
    EXPECT_EQ(message.substr(0, message.find(": error")), "k.py:" + one.place) << message;
    ASSERT_FALSE(one.expected.empty());
    for (const std::string& piece : one.expected) {
      EXPECT_NE(message.find(piece), std::string::npos) << "lacks \"" << piece << "\":\n"
                                                        << message;
    }
  }
  EXPECT_GE(cases.size(), 590);
}

}  // namespace
}  // namespace phobos::compiler
