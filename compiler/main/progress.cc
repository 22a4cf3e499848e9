// SPDX-License-Identifier: Apache-2.0
#include "compiler/main/progress.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "base/concat.h"

namespace phobos::compiler {
namespace {

// To the line's begin, and nothing behind it.
constexpr char kErase[] = "\r\x1b[K";

}  // namespace

std::string ProgressText(const std::string& kernel, size_t done, size_t total,
                         std::chrono::seconds elapsed) {
  if (elapsed < std::chrono::seconds(1)) return "";
  const std::string count = total == 1 ? "" : Concat(": ", done, " of ", total, " variants");
  return Concat("compiling ", kernel, count, ", ", static_cast<int64_t>(elapsed.count()), " s");
}

ProgressLine::ProgressLine(std::string kernel, size_t total)
    : kernel_(std::move(kernel)),
      total_(total),
      is_terminal_(isatty(STDERR_FILENO) != 0),
      begin_(std::chrono::steady_clock::now()) {}

ProgressLine::~ProgressLine() {
  if (!shown_.empty()) std::cerr << kErase << std::flush;
}

void ProgressLine::Show(size_t done) {
  if (!is_terminal_) return;
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin_);
  std::string text = ProgressText(kernel_, done, total_, elapsed);
  if (text == shown_) return;
  std::cerr << kErase << text << std::flush;
  shown_ = std::move(text);
}

}  // namespace phobos::compiler
