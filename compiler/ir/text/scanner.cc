// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/text/scanner.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace phobos::compiler::ir {
namespace {

bool IsOfWord(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

void Scanner::SkipBlanks() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
}

int32_t Scanner::line() {
  SkipBlanks();
  return line_;
}

int32_t Scanner::column() {
  SkipBlanks();
  return static_cast<int32_t>(at_ - line_begin_) + 1;
}

bool Scanner::IsAtEnd() {
  SkipBlanks();
  return at_ == text_.size();
}

bool Scanner::IsAtLineEnd() { return IsAtEnd() || text_[at_] == '\n' || text_[at_] == '#'; }

bool Scanner::StandsNext(std::string_view piece) {
  SkipBlanks();
  return rest().substr(0, piece.size()) == piece;
}

bool Scanner::Take(std::string_view piece) {
  if (!StandsNext(piece)) return false;
  at_ += piece.size();
  return true;
}

bool Scanner::TakeWord(std::string_view word) {
  const size_t before = at_;
  if (Word() == word) return true;
  at_ = before;
  return false;
}

void Scanner::TakeLineEnds() {
  while (!IsAtEnd()) {
    if (text_[at_] == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
      continue;
    }
    if (text_[at_] != '\n') return;
    line_begin_ = ++at_;
    ++line_;
  }
}

std::string_view Scanner::Word() {
  SkipBlanks();
  last_ = at_;
  size_t size = 0;
  while (size < rest().size() && IsOfWord(rest()[size])) ++size;
  const std::string_view word = rest().substr(0, size);
  at_ += size;
  return word;
}

std::string_view Scanner::Until(std::string_view stops) {
  SkipBlanks();
  last_ = at_;
  const std::string all = absl::StrCat(" \t\n", std::string(stops));
  const std::string_view piece = rest().substr(0, rest().find_first_of(all));
  at_ += piece.size();
  return piece;
}

absl::StatusOr<int64_t> Scanner::Integer(int64_t least, int64_t most) {
  SkipBlanks();
  int64_t value = 0;
  const std::string_view digits = rest();
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::invalid_argument) return Error("a whole number is missing");
  if (error != std::errc() || value < least || value > most) {
    return Error(absl::StrCat("the number is not within ", least, " and ", most));
  }
  at_ += static_cast<size_t>(end - digits.data());
  return value;
}

absl::StatusOr<std::string> Scanner::RestOfQuoted() {
  size_t end = 0;
  while (end < rest().size() && rest()[end] != '"' && rest()[end] != '\n') {
    end += rest()[end] == '\\' ? 2 : 1;
  }
  std::string value;
  if (end >= rest().size() || rest()[end] != '"' ||
      !absl::CUnescape(absl::string_view(rest().data(), end), &value)) {
    return Error("this text does not end with a double quote, or has a wrong escape");
  }
  at_ += end + 1;
  return value;
}

absl::Status Scanner::Expect(std::string_view piece) {
  if (Take(piece)) return absl::OkStatus();
  return Error(absl::StrCat("`", std::string(piece), "` is missing"));
}

absl::Status Scanner::Error(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line(), ", column ", column(), ": ", std::string(what)));
}

absl::Status Scanner::Refuse(std::string_view what) {
  at_ = last_;
  return Error(what);
}

}  // namespace phobos::compiler::ir
