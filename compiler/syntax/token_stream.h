// SPDX-License-Identifier: Apache-2.0
//
// A cursor over the tokens of one file, with what all parts of the parser ask of the next token and
// the errors they give. It knows no grammar. Private to syntax/. One thread.
#ifndef PHOBOS_COMPILER_SYNTAX_TOKEN_STREAM_H_
#define PHOBOS_COMPILER_SYNTAX_TOKEN_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/syntax/lexer/lexer.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler {

class TokenStream {
 public:
  // `aliases`: the dotted names of the language, as ast::Module::aliases. Both must outlive the
  // stream. REQUIRES: tokens ends with kEnd.
  // `end`: what messages call the end of the tokens.
  TokenStream(const Source& source, const std::vector<Token>& tokens,
              const std::vector<std::string>& aliases, std::string_view end = "the end of the file")
      : source_(source), tokens_(tokens), aliases_(aliases), end_(end) {}

  const Source& source() const { return source_; }
  const std::vector<std::string>& aliases() const { return aliases_; }
  size_t position() const { return position_; }
  void set_position(size_t position) { position_ = position; }

  // Beyond the end: the kEnd token.
  const Token& Peek(size_t ahead = 0) const {
    return tokens_[position_ + ahead < tokens_.size() ? position_ + ahead : tokens_.size() - 1];
  }
  TokenKind kind(size_t ahead = 0) const { return Peek(ahead).kind; }
  std::string_view Text(size_t ahead = 0) const { return source_.text(Peek(ahead).span); }
  bool Is(std::string_view op, size_t ahead = 0) const {
    return kind(ahead) == TokenKind::kOperator && Text(ahead) == op;
  }
  bool IsWord(std::string_view word, size_t ahead = 0) const {
    return kind(ahead) == TokenKind::kName && Text(ahead) == word;
  }
  bool AtLineEnd() const { return kind() == TokenKind::kNewline || kind() == TokenKind::kEnd; }
  bool AtStatementEnd() const { return AtLineEnd() || Is(";"); }

  Token Take() {
    const Token token = Peek();
    if (position_ + 1 < tokens_.size()) ++position_;
    return token;
  }
  bool TakeIf(std::string_view op) {
    if (!Is(op)) return false;
    Take();
    return true;
  }

  // From `begin` to the end of the token taken last.
  Span SpanFrom(int32_t begin) const;

  // How many tokens at the cursor spell a name of the language's module ("ph", "phobos.lang"): 0
  // when none. A name that follows a dot is never one.
  size_t LanguageTokens() const;

  // Whether `name` alone is the language's alias, which no other thing may be called.
  bool IsAlias(std::string_view name) const;

  // Takes `op` or says what stands there instead: "expected ':' after the condition".
  absl::Status Expect(std::string_view op, std::string_view where);

  // "expected <wanted>, found <the token>".
  absl::Status Unexpected(std::string_view wanted, std::string_view remedy) const;

 private:
  const Source& source_;
  const std::vector<Token>& tokens_;
  const std::vector<std::string>& aliases_;
  const std::string_view end_;
  size_t position_ = 0;
};

// Whether Python reserves the word, so that it is no name.
bool IsKeyword(std::string_view word);

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_SYNTAX_TOKEN_STREAM_H_
