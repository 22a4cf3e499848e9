// SPDX-License-Identifier: Apache-2.0
//
// Finds the end of a Python string literal of any kind, also of format strings that hold
// expressions which hold strings. It does not decode (lexer.h's DecodeString does). Pure, any
// thread, linear time.
#ifndef PHOBOS_COMPILER_SYNTAX_LEXER_STRING_SCANNER_H_
#define PHOBOS_COMPILER_SYNTAX_LEXER_STRING_SCANNER_H_

#include <cstddef>
#include <optional>
#include <string_view>

namespace phobos::compiler {

// What stands before the first quote.
struct StringPrefix {
  size_t length = 0;
  bool is_raw = false;
  bool is_bytes = false;
  bool is_format = false;
};

// The prefix when a string literal begins at text[offset], else nothing.
std::optional<StringPrefix> PrefixAt(std::string_view text, size_t offset);

struct StringEnd {
  size_t offset = 0;              // one past the closing quotes
  const char* problem = nullptr;  // a sentence when the literal has no end
};

// REQUIRES: prefix is PrefixAt(text, offset).
StringEnd SkipString(std::string_view text, size_t offset, const StringPrefix& prefix);

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_SYNTAX_LEXER_STRING_SCANNER_H_
