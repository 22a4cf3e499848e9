// SPDX-License-Identifier: Apache-2.0
//
// The little of UTF-8 that reading source text needs: steps over characters, a check of a whole
// text, and which characters may stand in a name. Not normalization: two spellings of one name are
// two names. Pure, any thread.
#ifndef PHOBOS_COMPILER_SYNTAX_LEXER_UTF8_H_
#define PHOBOS_COMPILER_SYNTAX_LEXER_UTF8_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace phobos::compiler {

// Bytes of the character at text[offset]: 1 to 4, and 1 for a byte that begins none. REQUIRES:
// offset < text.size().
int Utf8Length(std::string_view text, size_t offset);

// The code point at text[offset], or -1 where the bytes are no UTF-8 (overlong, a surrogate, above
// U+10FFFF, cut off).
int32_t Utf8CodePoint(std::string_view text, size_t offset);

// The offset of the first byte that is not part of valid UTF-8, or npos.
size_t FirstInvalidUtf8(std::string_view text);

// Appends `code_point`. REQUIRES: it is no surrogate and at most U+10FFFF.
void AppendUtf8(int32_t code_point, std::string* out);

// Whether a character above U+007F may stand in a name: letters, digits and marks of all scripts,
// but not punctuation, symbols, spaces or formatting characters. Decided by ranges, a little wider
// than Python's table.
bool IsNameCodePoint(int32_t code_point);

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_SYNTAX_LEXER_UTF8_H_
