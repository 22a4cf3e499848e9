// SPDX-License-Identifier: Apache-2.0
//
// A source file's text and places in it, and the one form in which the compiler complains:
// file:line:column, the line itself, a caret under the place, and a remedy. Not the tokens
// (lexer.h). Immutable after construction, any thread.
#ifndef PHOBOS_COMPILER_SYNTAX_SOURCE_H_
#define PHOBOS_COMPILER_SYNTAX_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace phobos::compiler {

// The longest text that the front end reads; Parse refuses a longer one.
inline constexpr size_t kMaxSourceBytes = size_t{16} << 20;

// A half-open range of bytes in a Source.
struct Span {
  int32_t begin = 0;
  int32_t end = 0;
};

// The text of one file, without its byte order mark. Columns count UTF-8 code points, from 1, as
// editors and Python do.
class Source {
 public:
  Source(std::string file_name, std::string text);

  const std::string& file_name() const { return file_name_; }
  std::string_view text() const { return text_; }
  std::string_view text(Span span) const;

  int Line(int32_t offset) const;    // from 1
  int Column(int32_t offset) const;  // from 1

  // The error that every stage of the front end gives: InvalidArgument whose message is
  //
  //   add.py:12:9: error: cannot store a tile of 256 elements to a slice of 128
  //       out[base:+128] = x[base:+256]
  //           ^~~~~~~~~
  //   help: write both slices with the same length
  //
  // `remedy` may be empty (then no help line), but seldom should.
  absl::Status Error(Span span, std::string_view problem, std::string_view remedy) const;

  // As Line and Column count them; of one character. REQUIRES: there is such a line.
  Span At(int line, int column) const;

 private:
  std::string Render(Span span, std::string_view problem, std::string_view remedy) const;

  std::string file_name_;
  std::string text_;
  std::vector<int32_t> line_starts_;
};

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_SYNTAX_SOURCE_H_
