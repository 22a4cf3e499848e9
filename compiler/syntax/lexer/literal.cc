// SPDX-License-Identifier: Apache-2.0
//
// Values of literal tokens.
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/syntax/lexer/lexer.h"
#include "compiler/syntax/lexer/string_scanner.h"
#include "compiler/syntax/lexer/utf8.h"

namespace phobos::compiler {
namespace {

int HexDigit(char c) {
  if (!absl::ascii_isxdigit(c)) return -1;
  return absl::ascii_isdigit(c) ? c - '0' : absl::ascii_tolower(c) - 'a' + 10;
}

// Resolves the escapes of a string's text, from left to right.
class Unescaper {
 public:
  Unescaper(const Source& source, int32_t begin, std::string_view text)
      : source_(source), begin_(begin), text_(text) {}

  absl::StatusOr<std::string> Run() {
    while (position_ < text_.size()) {
      if (text_[position_] == '\\' && position_ + 1 < text_.size()) {
        RETURN_IF_ERROR(Escape());
      } else {
        AppendLineEndOr(text_[position_]);
      }
    }
    return std::move(value_);
  }

 private:
  // Python reads every line end as "\n".
  void AppendLineEndOr(char c) {
    ++position_;
    if (c == '\r' && position_ < text_.size() && text_[position_] == '\n') ++position_;
    value_.push_back(c == '\r' ? '\n' : c);
  }

  absl::Status Escape() {
    constexpr std::string_view kNames = "\\'\"abfnrtv";
    constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
    const size_t start = position_;
    const char c = text_[position_ + 1];
    if (const size_t simple = kNames.find(c); simple != std::string_view::npos) {
      value_.push_back(kValues[simple]);
      position_ += 2;
    } else if (c == '\n' || c == '\r') {
      position_ += c == '\r' && text_.substr(position_ + 2, 1) == "\n" ? 3 : 2;
    } else if (c >= '0' && c <= '7') {
      int code_point = 0;
      size_t end = ++position_;
      for (; end < position_ + 3 && end < text_.size() && text_[end] >= '0' && text_[end] <= '7';
           ++end) {
        code_point = code_point * 8 + (text_[end] - '0');
      }
      position_ = end;
      AppendUtf8(code_point, &value_);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      return HexEscape(start, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    } else if (c == 'N') {
      return Fail(start, start + 2, "\\N{...} is not read here",
                  "write the character itself, or \\u and its number");
    } else {
      value_.push_back('\\');  // Python keeps an escape that it does not know
      ++position_;
    }
    return absl::OkStatus();
  }

  absl::Status HexEscape(size_t start, int digits) {
    int64_t code_point = 0;
    for (int i = 0; i < digits; ++i) {
      const size_t at = start + 2 + i;
      const int digit = at < text_.size() ? HexDigit(text_[at]) : -1;
      if (digit < 0) {
        return Fail(start, at, Concat("this escape needs ", digits, " hexadecimal digits"),
                    "write all of them, or double the backslash");
      }
      code_point = code_point * 16 + digit;
    }
    position_ = start + 2 + digits;
    if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) {
      return Fail(start, position_, "this escape names no character",
                  "write a code point of Unicode");
    }
    AppendUtf8(static_cast<int32_t>(code_point), &value_);
    return absl::OkStatus();
  }

  absl::Status Fail(size_t begin, size_t end, std::string_view problem,
                    std::string_view remedy) const {
    return source_.Error({begin_ + static_cast<int32_t>(begin), begin_ + static_cast<int32_t>(end)},
                         problem, remedy);
  }

  const Source& source_;
  const int32_t begin_;
  const std::string_view text_;
  size_t position_ = 0;
  std::string value_;
};

}  // namespace

absl::StatusOr<std::string> DecodeString(const Source& source, const Token& token) {
  const std::string_view literal = source.text(token.span);
  const StringPrefix prefix = PrefixAt(literal, 0).value_or(StringPrefix{});
  const char quote = literal[prefix.length];
  const bool is_triple = literal.size() >= prefix.length + 6 &&
                         literal[prefix.length + 1] == quote && literal[prefix.length + 2] == quote;
  const size_t quotes = is_triple ? 3 : 1;
  const size_t begin = prefix.length + quotes;
  const std::string_view text = literal.substr(begin, literal.size() - begin - quotes);
  if (prefix.is_raw) return absl::StrReplaceAll(ForAbseil(text), {{"\r\n", "\n"}, {"\r", "\n"}});
  return Unescaper(source, token.span.begin + static_cast<int32_t>(begin), text).Run();
}

absl::StatusOr<uint64_t> DecodeInt(const Source& source, const Token& token) {
  const std::string_view text = source.text(token.span);
  const char kind = text.size() > 1 ? absl::ascii_tolower(text[1]) : '0';
  const uint64_t base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
  uint64_t value = 0;
  for (const char c : base == 10 ? text : text.substr(2)) {
    if (c == '_') continue;
    const uint64_t digit = HexDigit(c);
    if (value > (std::numeric_limits<uint64_t>::max() - digit) / base) {
      return source.Error(token.span, "this integer is above 2^64 - 1",
                          "no type of the language holds it");
    }
    value = value * base + digit;
  }
  return value;
}

double DecodeFloat(const Source& source, const Token& token) {
  const std::string text = absl::StrReplaceAll(ForAbseil(source.text(token.span)), {{"_", ""}});
  double value = 0;
  (void)absl::SimpleAtod(text, &value);  // the lexer has checked the form
  return value;
}

}  // namespace phobos::compiler
