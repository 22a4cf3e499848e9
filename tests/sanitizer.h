// SPDX-License-Identifier: Apache-2.0
//
// RunsUnder: for the few tests that a sanitizer's own memory or threads would fail. Such a test
// skips itself and says why. Not for code that is tested. Any thread.
#ifndef PHOBOS_TESTS_SANITIZER_H_
#define PHOBOS_TESTS_SANITIZER_H_

#include <cstdlib>
#include <string_view>

namespace phobos {

// `sanitizer`: "asan", "ubsan" or "tsan", as --config=NAME, which sets SANITIZER for tests.
inline bool RunsUnder(std::string_view sanitizer) {
  const char* name = getenv("SANITIZER");
  return name != nullptr && sanitizer == name;
}

}  // namespace phobos

#endif  // PHOBOS_TESTS_SANITIZER_H_
