// SPDX-License-Identifier: Apache-2.0
//
// Reads the corpus of tests/golden/malformed (its README.md has the form). For tests only.
#ifndef PHOBOS_TESTS_COMPILER_MAIN_MALFORMED_CASES_H_
#define PHOBOS_TESTS_COMPILER_MAIN_MALFORMED_CASES_H_

#include <string>
#include <vector>

namespace phobos::compiler {

struct MalformedCase {
  std::string topic;  // the file's name
  std::string name;
  std::string place;                  // "3:5"
  std::vector<std::string> expected;  // pieces that the message holds
  std::string source;
};

// All cases of all files under `folder`, in order.
std::vector<MalformedCase> ReadMalformedCases(const std::string& folder);

}  // namespace phobos::compiler

#endif  // PHOBOS_TESTS_COMPILER_MAIN_MALFORMED_CASES_H_
