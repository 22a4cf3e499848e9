// SPDX-License-Identifier: Apache-2.0
//
// Text to tokens by Python's rules (3.9 to 3.13): indentation, line joining, comments, every form
// of literal. It judges the whole file's shape only: what Python itself could not read (an unclosed
// bracket or string, a dedent to nowhere) is an error. A word that it does not know becomes a kBad
// token, for the host program's part of a file may hold syntax of a later Python; the parser
// complains when a kernel holds one. Pure, any thread, linear time.
#ifndef PHOBOS_COMPILER_SYNTAX_LEXER_LEXER_H_
#define PHOBOS_COMPILER_SYNTAX_LEXER_LEXER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler {

enum class TokenKind : uint8_t {
  kEnd,
  kNewline,  // ends a logical line
  kIndent,
  kDedent,
  kName,  // also keywords
  kInt,
  kFloat,
  kComplex,
  kString,
  kBytes,
  kFormatString,  // f"..." and t"..."
  kOperator,      // text(span) says which
  kBad,
};

// Why a token is kBad.
enum class BadToken : uint8_t { kNone, kCharacter, kNumber, kBackslash };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  BadToken bad = BadToken::kNone;
  Span span;
};

// Ends with a kEnd token. kIndent and kDedent balance. Errors: Source::Error.
absl::StatusOr<std::vector<Token>> Lex(const Source& source);

// The tokens of source.text(span) alone, its line ends read as blanks: an expression that stands in
// a string. Their spans are places in the whole source. No kNewline, kIndent or kDedent; ends with
// kEnd. Errors: Source::Error.
absl::StatusOr<std::vector<Token>> LexExpression(const Source& source, Span span);

// The error for a kBad token.
absl::Status DescribeBadToken(const Source& source, const Token& token);

// The text that a kString token stands for, escapes resolved. Errors: Source::Error at a malformed
// escape.
absl::StatusOr<std::string> DecodeString(const Source& source, const Token& token);

// The value of a kInt token. Errors: Source::Error above 2^64 - 1.
absl::StatusOr<uint64_t> DecodeInt(const Source& source, const Token& token);

// The value of a kFloat token; infinity when it is too large, as in Python.
double DecodeFloat(const Source& source, const Token& token);

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_SYNTAX_LEXER_LEXER_H_
