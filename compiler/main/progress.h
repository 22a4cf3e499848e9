// SPDX-License-Identifier: Apache-2.0
//
// One line on a terminal about a compilation that takes more than a second; no line anywhere else.
// One thread.
#ifndef PHOBOS_COMPILER_MAIN_PROGRESS_H_
#define PHOBOS_COMPILER_MAIN_PROGRESS_H_

#include <chrono>
#include <cstddef>
#include <string>

namespace phobos::compiler {

// "compiling add: 3 of 256 variants, 2 s"; of one variant "compiling add, 2 s". Empty before the
// first second is over.
std::string ProgressText(const std::string& kernel, size_t done, size_t total,
                         std::chrono::seconds elapsed);

// Writes to standard error where that is a terminal. The line is gone with the object.
class ProgressLine {
 public:
  ProgressLine(std::string kernel, size_t total);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(size_t done);

 private:
  const std::string kernel_;
  const size_t total_;
  const bool is_terminal_;
  const std::chrono::steady_clock::time_point begin_;
  std::string shown_;
};

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_MAIN_PROGRESS_H_
