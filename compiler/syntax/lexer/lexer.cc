// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/lexer/lexer.h"

#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/syntax/lexer/string_scanner.h"
#include "compiler/syntax/lexer/utf8.h"

namespace phobos::compiler {
namespace {

// Python's own limits.
constexpr size_t kMaxIndentation = 100;
constexpr size_t kMaxBrackets = 200;

bool IsNameStart(char c) {
  return absl::ascii_isalpha(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

bool IsDigitOf(int base, char c) {
  if (base == 16) return absl::ascii_isxdigit(c);
  return c >= '0' && c < '0' + base;
}

// Columns of a line's indentation, with tabs to multiples of 8 and tabs as one: lines compare the
// same way by both, or their indentation is inconsistent.
struct Indentation {
  int wide = 0;
  int narrow = 0;
};

class Lexer {
 public:
  // `is_expression`: `span` is no file but an expression, in which line ends are blanks.
  Lexer(const Source& source, Span span, bool is_expression)
      : source_(source),
        text_(source.text().substr(0, span.end)),
        position_(span.begin),
        is_expression_(is_expression),
        at_line_start_(!is_expression) {
    tokens_.reserve((span.end - span.begin) / 4 + 8);
  }

  absl::StatusOr<std::vector<Token>> Run();

 private:
  char At(size_t offset) const { return offset < text_.size() ? text_[offset] : '\0'; }
  bool AtLineEnd(size_t offset) const { return At(offset) == '\n' || At(offset) == '\r'; }
  Span From(size_t begin) const {
    return {static_cast<int32_t>(begin), static_cast<int32_t>(position_)};
  }
  void Add(TokenKind kind, size_t begin, BadToken bad = BadToken::kNone) {
    tokens_.push_back({kind, bad, From(begin)});
  }

  absl::Status CheckText() const;
  absl::Status BeginLine();
  absl::Status SetIndentation(Indentation indentation, size_t begin);
  absl::Status NextToken();
  absl::Status ReadString(size_t begin, const StringPrefix& prefix);
  absl::Status ReadOperator();
  absl::Status CloseBracket(char closer);
  void ReadName();
  void ReadNumber();
  bool ReadDigits(int base);
  void FinishNumber(size_t begin, TokenKind kind, bool is_valid);
  bool SkipBlanks();
  void SkipComment();
  void SkipLineEnd();

  const Source& source_;
  const std::string_view text_;
  size_t position_;
  const bool is_expression_;
  std::vector<Token> tokens_;
  std::vector<Indentation> indentations_ = {{}};
  std::vector<size_t> brackets_;  // offsets of those that are open
  bool at_line_start_;
};

absl::Status Lexer::CheckText() const {
  if (const size_t nul = text_.find('\0'); nul != std::string_view::npos) {
    const int32_t at = static_cast<int32_t>(nul);
    return source_.Error({at, at + 1}, "the file holds a NUL byte", "save it as UTF-8 text");
  }
  if (const size_t invalid = FirstInvalidUtf8(text_); invalid != std::string_view::npos) {
    const int32_t at = static_cast<int32_t>(invalid);
    return source_.Error({at, at + 1}, "the file is not valid UTF-8 here", "save it as UTF-8 text");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Token>> Lexer::Run() {
  if (!is_expression_) RETURN_IF_ERROR(CheckText());
  while (true) {
    if (at_line_start_) RETURN_IF_ERROR(BeginLine());
    if (!SkipBlanks()) continue;
    if (position_ >= text_.size()) break;
    RETURN_IF_ERROR(NextToken());
  }
  if (!brackets_.empty()) {
    const int32_t at = static_cast<int32_t>(brackets_.back());
    return source_.Error({at, at + 1},
                         Concat("'", source_.text({at, at + 1}), "' was never closed"),
                         "close the bracket");
  }
  if (!is_expression_ && !tokens_.empty() && tokens_.back().kind != TokenKind::kNewline) {
    Add(TokenKind::kNewline, position_);
  }
  for (size_t i = 1; i < indentations_.size(); ++i) Add(TokenKind::kDedent, position_);
  Add(TokenKind::kEnd, position_);
  return std::move(tokens_);
}

// Measures the indentation of a line that holds more than blanks and a comment.
absl::Status Lexer::BeginLine() {
  while (position_ < text_.size()) {
    const size_t begin = position_;
    Indentation indentation;
    for (;; ++position_) {
      const char c = At(position_);
      if (c == ' ') {
        ++indentation.wide;
        ++indentation.narrow;
      } else if (c == '\t') {
        indentation.wide = (indentation.wide / 8 + 1) * 8;
        ++indentation.narrow;
      } else if (c == '\f') {
        indentation = {};
      } else {
        break;
      }
    }
    if (At(position_) == '#') SkipComment();
    if (AtLineEnd(position_)) {
      SkipLineEnd();
      continue;
    }
    if (position_ >= text_.size()) break;
    at_line_start_ = false;
    return SetIndentation(indentation, begin);
  }
  at_line_start_ = false;
  return absl::OkStatus();
}

absl::Status Lexer::SetIndentation(Indentation indentation, size_t begin) {
  const auto inconsistent = [&] {
    return source_.Error(
        From(begin),
        "tabs and spaces are mixed so that the indentation depends on the width of a tab",
        "indent the block with spaces alone");
  };
  const Indentation top = indentations_.back();
  if (indentation.wide > top.wide) {
    if (indentation.narrow <= top.narrow) return inconsistent();
    if (indentations_.size() >= kMaxIndentation) {
      return source_.Error(From(position_), "more than 100 levels of indentation", "nest less");
    }
    indentations_.push_back(indentation);
    Add(TokenKind::kIndent, begin);
    return absl::OkStatus();
  }
  while (indentation.wide < indentations_.back().wide) {
    indentations_.pop_back();
    tokens_.push_back({TokenKind::kDedent, BadToken::kNone, From(position_)});
  }
  if (indentation.wide != indentations_.back().wide) {
    return source_.Error(From(position_), "this line's indentation matches no block around it",
                         "indent it like the line it belongs to");
  }
  if (indentation.narrow != indentations_.back().narrow) return inconsistent();
  return absl::OkStatus();
}

// Skips blanks, comments, joined lines; false when a new logical line begins.
bool Lexer::SkipBlanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == ' ' || c == '\t' || c == '\f') {
      ++position_;
    } else if (c == '#') {
      SkipComment();
    } else if (c == '\\' && AtLineEnd(position_ + 1)) {
      ++position_;
      SkipLineEnd();
    } else if (AtLineEnd(position_)) {
      const size_t begin = position_;
      SkipLineEnd();
      if (!brackets_.empty() || is_expression_) continue;
      // A line may hold nothing but a joined blank line.
      const bool is_empty = tokens_.empty() || tokens_.back().kind == TokenKind::kNewline ||
                            tokens_.back().kind == TokenKind::kIndent ||
                            tokens_.back().kind == TokenKind::kDedent;
      if (!is_empty) tokens_.push_back({TokenKind::kNewline, BadToken::kNone, From(begin)});
      at_line_start_ = true;
      return false;
    } else {
      break;
    }
  }
  return true;
}

void Lexer::SkipComment() {
  while (position_ < text_.size() && !AtLineEnd(position_)) ++position_;
}

void Lexer::SkipLineEnd() {
  const bool is_pair = At(position_) == '\r' && At(position_ + 1) == '\n';
  position_ += is_pair ? 2 : 1;
}

absl::Status Lexer::NextToken() {
  const char c = text_[position_];
  if (const std::optional<StringPrefix> prefix = PrefixAt(text_, position_)) {
    return ReadString(position_, *prefix);
  }
  if (IsNameStart(c)) {
    ReadName();
  } else if (absl::ascii_isdigit(c) || (c == '.' && absl::ascii_isdigit(At(position_ + 1)))) {
    ReadNumber();
  } else {
    return ReadOperator();
  }
  return absl::OkStatus();
}

void Lexer::ReadName() {
  const size_t begin = position_;
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (static_cast<unsigned char>(c) < 0x80) {
      if (!absl::ascii_isalnum(c) && c != '_') break;
      ++position_;
    } else {
      if (!IsNameCodePoint(Utf8CodePoint(text_, position_))) break;
      position_ += Utf8Length(text_, position_);
    }
  }
  if (position_ > begin) return Add(TokenKind::kName, begin);
  position_ += Utf8Length(text_, position_);
  Add(TokenKind::kBad, begin, BadToken::kCharacter);
}

// Reads digits with single underscores between them; false when they are malformed (none, or a
// stray underscore).
bool Lexer::ReadDigits(int base) {
  bool is_valid = IsDigitOf(base, At(position_));
  while (IsDigitOf(base, At(position_)) || At(position_) == '_') {
    if (At(position_) == '_' && !IsDigitOf(base, At(position_ + 1))) is_valid = false;
    ++position_;
  }
  return is_valid;
}

void Lexer::ReadNumber() {
  const size_t begin = position_;
  const char second = absl::ascii_tolower(At(position_ + 1));
  if (At(position_) == '0' && (second == 'x' || second == 'o' || second == 'b')) {
    position_ += 2;
    if (At(position_) == '_') ++position_;
    return FinishNumber(begin, TokenKind::kInt,
                        ReadDigits(second == 'x'   ? 16
                                   : second == 'o' ? 8
                                                   : 2));
  }
  TokenKind kind = TokenKind::kInt;
  bool is_valid = true;
  if (At(position_) != '.') is_valid = ReadDigits(10);
  const std::string_view whole = text_.substr(begin, position_ - begin);
  const bool has_leading_zero = whole.size() > 1 && whole[0] == '0' &&
                                whole.find_first_not_of("0_") != std::string_view::npos;
  if (At(position_) == '.') {
    kind = TokenKind::kFloat;
    ++position_;
    if (absl::ascii_isdigit(At(position_)) || At(position_) == '_') is_valid &= ReadDigits(10);
  }
  const char sign = At(position_ + 1);
  const size_t digits = sign == '+' || sign == '-' ? 2 : 1;
  if (absl::ascii_tolower(At(position_)) == 'e' && absl::ascii_isdigit(At(position_ + digits))) {
    kind = TokenKind::kFloat;
    position_ += digits;
    is_valid &= ReadDigits(10);
  }
  if (absl::ascii_tolower(At(position_)) == 'j') {
    kind = TokenKind::kComplex;
    ++position_;
  }
  FinishNumber(begin, kind, is_valid && !(kind == TokenKind::kInt && has_leading_zero));
}

// A keyword may follow a number at once ("1if x else 2"); any other letter makes it malformed.
void Lexer::FinishNumber(size_t begin, TokenKind kind, bool is_valid) {
  const size_t end = position_;
  while (IsNameStart(At(position_)) || absl::ascii_isdigit(At(position_))) ++position_;
  const std::string_view rest = text_.substr(end, position_ - end);
  for (const std::string_view keyword : {"", "and", "else", "for", "if", "in", "is", "not", "or"}) {
    if (rest != keyword || !is_valid) continue;
    position_ = end;
    return Add(kind, begin);
  }
  Add(TokenKind::kBad, begin, BadToken::kNumber);
}

absl::Status Lexer::ReadString(size_t begin, const StringPrefix& prefix) {
  const StringEnd end = SkipString(text_, begin, prefix);
  position_ = end.offset;
  if (end.problem != nullptr) {
    const int32_t at = static_cast<int32_t>(begin);
    return source_.Error({at, at + static_cast<int32_t>(prefix.length) + 1}, end.problem,
                         "close it with the quotes that opened it");
  }
  Add(prefix.is_format  ? TokenKind::kFormatString
      : prefix.is_bytes ? TokenKind::kBytes
                        : TokenKind::kString,
      begin);
  return absl::OkStatus();
}

absl::Status Lexer::ReadOperator() {
  constexpr std::string_view kOperators[] = {
      "...", "**=", "//=", "<<=", ">>=", "->", "==", "!=", "<=", ">=", ":=", "+=",
      "-=",  "*=",  "/=",  "%=",  "@=",  "&=", "|=", "^=", "**", "//", "<<", ">>",
      "(",   ")",   "[",   "]",   "{",   "}",  ",",  ":",  ";",  ".",  "=",  "<",
      ">",   "+",   "-",   "*",   "/",   "%",  "@",  "&",  "|",  "^",  "~"};
  const size_t begin = position_;
  const std::string_view rest = text_.substr(position_);
  for (const std::string_view op : kOperators) {
    if (rest.substr(0, op.size()) != op) continue;
    position_ += op.size();
    if (op == "(" || op == "[" || op == "{") {
      if (brackets_.size() >= kMaxBrackets) {
        return source_.Error(From(begin), "more than 200 brackets are open here", "nest less");
      }
      brackets_.push_back(begin);
    } else if (op == ")" || op == "]" || op == "}") {
      RETURN_IF_ERROR(CloseBracket(op[0]));
    }
    Add(TokenKind::kOperator, begin);
    return absl::OkStatus();
  }
  ++position_;
  Add(TokenKind::kBad, begin, rest[0] == '\\' ? BadToken::kBackslash : BadToken::kCharacter);
  return absl::OkStatus();
}

absl::Status Lexer::CloseBracket(char closer) {
  const char opener = closer == ')' ? '(' : closer == ']' ? '[' : '{';
  if (brackets_.empty()) {
    return source_.Error(From(position_ - 1),
                         Concat("'", std::string(1, closer), "' closes nothing"),
                         "remove it, or open the bracket before it");
  }
  if (text_[brackets_.back()] != opener) {
    return source_.Error(From(position_ - 1),
                         Concat("'", std::string(1, closer), "' does not close the '",
                                text_.substr(brackets_.back(), 1), "' of line ",
                                source_.Line(static_cast<int32_t>(brackets_.back()))),
                         "close the inner bracket first");
  }
  brackets_.pop_back();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Token>> Lex(const Source& source) {
  if (source.text().size() > kMaxSourceBytes) {
    return source.Error(
        {0, 0},
        Concat("the file has ", source.text().size(), " bytes; the limit is ", kMaxSourceBytes),
        "move the kernels to a file of their own");
  }
  return Lexer(source, {0, static_cast<int32_t>(source.text().size())}, false).Run();
}

absl::StatusOr<std::vector<Token>> LexExpression(const Source& source, Span span) {
  return Lexer(source, span, true).Run();
}

absl::Status DescribeBadToken(const Source& source, const Token& token) {
  const std::string_view text = source.text(token.span);
  if (token.bad == BadToken::kNumber) {
    return source.Error(token.span, Concat("'", text, "' is no number"),
                        "write a decimal number without leading zeros, or 0x, 0o, 0b; underscores "
                        "stand between digits");
  }
  if (token.bad == BadToken::kBackslash) {
    return source.Error(token.span, "a backslash joins lines only at the end of a line",
                        "remove it, or what follows it on this line");
  }
  const int32_t code_point = Utf8CodePoint(text, 0);
  if (code_point < 0x80 && absl::ascii_isprint(text[0])) {
    return source.Error(token.span, Concat("'", text, "' has no meaning here"), "remove it");
  }
  return source.Error(token.span,
                      absl::StrFormat("the character U+%04X cannot stand here", code_point),
                      "type the line again; it may have been copied from a formatted page");
}

}  // namespace phobos::compiler
