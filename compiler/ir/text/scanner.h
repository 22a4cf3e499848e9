// SPDX-License-Identifier: Apache-2.0
//
// Reads a text piece by piece and knows where it is, for the parser of the tile IR. Blanks between
// pieces are skipped, ends of lines are not. Views of the text, which must outlive it. One thread
// at a time.
#ifndef PHOBOS_COMPILER_IR_TEXT_SCANNER_H_
#define PHOBOS_COMPILER_IR_TEXT_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace phobos::compiler::ir {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // Of the next piece, from 1; a column is a byte.
  int32_t line();
  int32_t column();

  bool IsAtEnd();
  bool IsAtLineEnd();
  bool StandsNext(std::string_view piece);
  // Takes `piece` if it stands next.
  bool Take(std::string_view piece);
  // Takes `word` if it stands next as a whole word.
  bool TakeWord(std::string_view word);
  // Takes ends of lines, and what stands behind a #.
  void TakeLineEnds();

  // The next letters, digits, underscores and bytes of other alphabets; empty when there are none.
  std::string_view Word();
  // What stands up to the next blank, end of line or one of `stops`.
  std::string_view Until(std::string_view stops);
  // A whole number in [least, most].
  absl::StatusOr<int64_t> Integer(int64_t least, int64_t most);
  // What stands behind a double quote, with the escapes of C, up to another.
  absl::StatusOr<std::string> RestOfQuoted();

  absl::Status Expect(std::string_view piece);

  // InvalidArgument that names the place of the next piece.
  absl::Status Error(std::string_view what);
  // The same of what Word or Until took last.
  absl::Status Refuse(std::string_view what);

 private:
  void SkipBlanks();
  std::string_view rest() const { return text_.substr(at_); }

  const std::string_view text_;
  size_t at_ = 0;
  size_t last_ = 0;  // where what Word or Until took begins
  size_t line_begin_ = 0;
  int32_t line_ = 1;
};

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_TEXT_SCANNER_H_
