// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/lexer/string_scanner.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace phobos::compiler {
namespace {

constexpr char kUnterminated[] = "this string has no end";
constexpr char kUnterminatedLine[] = "this string has no end on its line";
constexpr char kUnterminatedField[] = "a '{' in this format string is never closed";
constexpr char kTooDeep[] = "format strings are nested too deeply";
constexpr int kMaxNesting = 50;

class StringScanner {
 public:
  explicit StringScanner(std::string_view text) : text_(text) {}

  StringEnd Run(size_t offset, const StringPrefix& prefix) {
    position_ = offset;
    Skip(prefix, 0);
    return {std::min(position_, text_.size()), problem_};
  }

 private:
  // The quotes of one literal.
  struct Quotes {
    char quote;
    bool is_triple;
  };

  char At(size_t offset) const { return offset < text_.size() ? text_[offset] : '\0'; }
  bool IsLineEnd(char c) const { return c == '\n' || c == '\r'; }
  bool Fail(const char* problem) {
    problem_ = problem;
    return false;
  }

  bool Skip(const StringPrefix& prefix, int nesting);
  bool SkipText(const Quotes& quotes, const StringPrefix& prefix, int nesting);
  bool SkipField(const Quotes& quotes, const StringPrefix& prefix, int nesting);
  bool SkipFieldFormat(const Quotes& quotes, const StringPrefix& prefix, int nesting);
  bool SkipClosing(const Quotes& quotes);
  void SkipEscape(const StringPrefix& prefix);

  std::string_view text_;
  size_t position_ = 0;
  const char* problem_ = nullptr;
};

bool StringScanner::Skip(const StringPrefix& prefix, int nesting) {
  if (nesting > kMaxNesting) return Fail(kTooDeep);
  position_ += prefix.length;
  const char quote = At(position_);
  const Quotes quotes = {quote, At(position_ + 1) == quote && At(position_ + 2) == quote};
  position_ += quotes.is_triple ? 3 : 1;
  return SkipText(quotes, prefix, nesting);
}

bool StringScanner::SkipText(const Quotes& quotes, const StringPrefix& prefix, int nesting) {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == quotes.quote && SkipClosing(quotes)) return true;
    if (IsLineEnd(c) && !quotes.is_triple) return Fail(kUnterminatedLine);
    if (c == '\\') {
      SkipEscape(prefix);
    } else if (prefix.is_format && c == '{') {
      ++position_;
      if (At(position_) == '{') {
        ++position_;
      } else if (!SkipField(quotes, prefix, nesting)) {
        return false;
      }
    } else {
      ++position_;
    }
  }
  return Fail(quotes.is_triple ? kUnterminated : kUnterminatedLine);
}

bool StringScanner::SkipClosing(const Quotes& quotes) {
  if (!quotes.is_triple) {
    ++position_;
    return true;
  }
  if (At(position_ + 1) != quotes.quote || At(position_ + 2) != quotes.quote) return false;
  position_ += 3;
  return true;
}

void StringScanner::SkipEscape(const StringPrefix& prefix) {
  ++position_;
  const char escaped = At(position_);
  if (prefix.is_format && escaped == '{') return;  // the brace opens a field all the same
  if (prefix.is_format && !prefix.is_raw && escaped == 'N' && At(position_ + 1) == '{') {
    const size_t line_end = text_.find_first_of("}\n\r\"'", position_);
    position_ = line_end == std::string_view::npos ? text_.size()
                                                   : line_end + (text_[line_end] == '}' ? 1 : 0);
    return;
  }
  position_ += escaped == '\r' && At(position_ + 1) == '\n' ? 2 : 1;
}

// An expression in braces. What it may hold is what ends it in every version from 3.9: quotes open
// strings of their own.
bool StringScanner::SkipField(const Quotes& quotes, const StringPrefix& prefix, int nesting) {
  int brackets = 0;
  while (position_ < text_.size()) {
    if (const std::optional<StringPrefix> inner = PrefixAt(text_, position_)) {
      if (!Skip(*inner, nesting + 1)) return false;
      continue;
    }
    const char c = text_[position_++];
    if (c == '(' || c == '[' || c == '{') {
      ++brackets;
    } else if (c == '}' && brackets == 0) {
      return true;
    } else if (c == ')' || c == ']' || c == '}') {
      --brackets;
    } else if (c == ':' && brackets == 0) {
      return SkipFieldFormat(quotes, prefix, nesting);
    } else if (c == '#') {
      while (position_ < text_.size() && !IsLineEnd(text_[position_])) ++position_;
    } else if (absl::ascii_isalnum(c) || c == '_') {
      // A name is one word: its last letters are no prefix of a string.
      while (absl::ascii_isalnum(At(position_)) || At(position_) == '_') ++position_;
    }
  }
  return Fail(kUnterminatedField);
}

// What follows the ':' in a field: text that may hold fields.
bool StringScanner::SkipFieldFormat(const Quotes& quotes, const StringPrefix& prefix, int nesting) {
  if (nesting > kMaxNesting) return Fail(kTooDeep);
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '}') {
      ++position_;
      return true;
    }
    const bool closes = c == quotes.quote &&
                        (!quotes.is_triple || (At(position_ + 1) == c && At(position_ + 2) == c));
    if (closes || (IsLineEnd(c) && !quotes.is_triple)) return Fail(kUnterminatedField);
    if (c == '\\') {
      SkipEscape(prefix);
      continue;
    }
    ++position_;
    if (c == '{' && !SkipField(quotes, prefix, nesting + 1)) return false;
  }
  return Fail(kUnterminatedField);
}

}  // namespace

std::optional<StringPrefix> PrefixAt(std::string_view text, size_t offset) {
  StringPrefix prefix;
  bool is_unicode = false;
  for (; prefix.length < 3 && offset + prefix.length < text.size(); ++prefix.length) {
    const char c = absl::ascii_tolower(text[offset + prefix.length]);
    if (c == '"' || c == '\'') {
      const bool is_known =
          !(prefix.is_bytes && prefix.is_format) && !(is_unicode && prefix.length > 1);
      return is_known ? std::optional(prefix) : std::nullopt;
    }
    if (c == 'r' && !prefix.is_raw) {
      prefix.is_raw = true;
    } else if (c == 'b' && !prefix.is_bytes) {
      prefix.is_bytes = true;
    } else if ((c == 'f' || c == 't') && !prefix.is_format) {
      prefix.is_format = true;
    } else if (c == 'u' && prefix.length == 0) {
      is_unicode = true;
    } else {
      break;
    }
  }
  return std::nullopt;
}

StringEnd SkipString(std::string_view text, size_t offset, const StringPrefix& prefix) {
  return StringScanner(text).Run(offset, prefix);
}

}  // namespace phobos::compiler
