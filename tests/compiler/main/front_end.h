// SPDX-License-Identifier: Apache-2.0
//
// The front end in one call, and the checks that hold for each error it gives. For tests and
// fuzzers only.
#ifndef PHOBOS_TESTS_COMPILER_MAIN_FRONT_END_H_
#define PHOBOS_TESTS_COMPILER_MAIN_FRONT_END_H_

#include <string>

#include "absl/status/status.h"

namespace phobos::compiler {

// Parses and analyzes a file called k.py, and lowers variant 0 of each kernel: the first error, or
// OK.
absl::Status RunFrontEnd(const std::string& text);

// What is wrong with the form of an error of the front end; empty when nothing is. It must name
// file, line and column that exist, show that line and put a caret under it, be valid UTF-8 without
// control characters, and end with a help line (Unimplemented may lack it).
std::string FlawOf(const absl::Status& error, const std::string& text);

}  // namespace phobos::compiler

#endif  // PHOBOS_TESTS_COMPILER_MAIN_FRONT_END_H_
