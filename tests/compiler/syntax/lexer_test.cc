// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/lexer/lexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/syntax/lexer/string_scanner.h"
#include "compiler/syntax/source.h"
#include "tests/status_matchers.h"

namespace phobos::compiler {
namespace {

using ::phobos::testing::IsOkAndHolds;
using ::testing::HasSubstr;

// Tokens as text: names and operators as they are, "\n" > < for line ends, indents and dedents.
std::string Tokens(const std::string& text) {
  const Source source("t.py", text);
  const absl::StatusOr<std::vector<Token>> tokens = Lex(source);
  if (!tokens.ok()) return std::string(tokens.status().message());
  std::string out;
  for (const Token& token : *tokens) {
    if (token.kind == TokenKind::kEnd) break;
    if (!out.empty()) out += " ";
    const std::string word(source.text(token.span));
    switch (token.kind) {
      case TokenKind::kNewline:
        out += "|";
        break;
      case TokenKind::kIndent:
        out += ">";
        break;
      case TokenKind::kDedent:
        out += "<";
        break;
      case TokenKind::kString:
        out += "s" + word;
        break;
      case TokenKind::kBytes:
        out += "b" + word;
        break;
      case TokenKind::kFormatString:
        out += "f" + word;
        break;
      case TokenKind::kBad:
        out += "!" + word;
        break;
      default:
        out += word;
    }
  }
  return out;
}

TEST(Lexer, Indentation) {
  EXPECT_EQ(Tokens("a\n  b\n  c\n    d\ne"), "a | > b | c | > d | < < e |");
  EXPECT_EQ(Tokens("a\n\tb\n\tc\n"), "a | > b | c | <");
  EXPECT_EQ(Tokens("a\n \n   # note\n\n  b\n # note\n  c\n"), "a | > b | c | <");
  EXPECT_EQ(Tokens("a\n        b\n\tc\n"), Tokens("a\n        b\n\tc\n"));
  EXPECT_EQ(Tokens("  a\n"), "> a | <");
  EXPECT_EQ(Tokens("\f a\n"), "> a | <");
  EXPECT_EQ(Tokens("  \fa\n"), "a |");
}

TEST(Lexer, TabsThatDependOnTheirWidthAreRefused) {
  EXPECT_THAT(Tokens("a\n        b\n\tc\n"), HasSubstr("tabs and spaces"));
  EXPECT_EQ(Tokens("a\n  b\n  \tc\n"), "a | > b | > c | < <");
  EXPECT_EQ(Tokens("a\n\tb\n\t  c\n"), "a | > b | > c | < <");
}

TEST(Lexer, LinesAreJoined) {
  EXPECT_EQ(Tokens("a + (b,\n\n  # note\n c)\nd"), "a + ( b , c ) | d |");
  EXPECT_EQ(Tokens("a \\\n  + b\nc"), "a + b | c |");
  EXPECT_EQ(Tokens("a \\\r\n  + b\r\nc\r\n"), "a + b | c |");
  EXPECT_EQ(Tokens("a\rb\r"), "a | b |");
  EXPECT_EQ(Tokens("[\n]"), "[ ] |");
}

TEST(Lexer, Numbers) {
  EXPECT_EQ(Tokens("0 00 1_0 0xF_f 0O7 0B1 1. .5 1e5 1E-5 1_0.0_1e+1_0 1j 1.5J 0_0"),
            "0 00 1_0 0xF_f 0O7 0B1 1. .5 1e5 1E-5 1_0.0_1e+1_0 1j 1.5J 0_0 |");
  EXPECT_EQ(Tokens("1if x else 2or y"), "1 if x else 2 or y |");
  EXPECT_EQ(Tokens("1..real"), "1. . real |");
  EXPECT_EQ(Tokens("a[1:+2]"), "a [ 1 : + 2 ] |");
  EXPECT_EQ(Tokens("01 1__0 1_ 0x 0b2 0o8 1e 1.5f 0x_"),
            "!01 !1__0 !1_ !0x !0b2 !0o8 !1e !1.5f !0x_ |");
}

TEST(Lexer, Strings) {
  EXPECT_EQ(Tokens("'' '''a'b''' \"\"\"\n\"\"\" 'a\\\nb'"),
            "s'' s'''a'b''' s\"\"\"\n\"\"\" s'a\\\nb' |");
  EXPECT_EQ(Tokens("bar'x'"), "bar s'x' |");
  EXPECT_EQ(Tokens("b'x' Rb'x' bR'x' u'x'"), "bb'x' bRb'x' bbR'x' su'x' |");
}

// What ends a format string in Python 3.9 to 3.11 and what does in 3.12 and later.
TEST(Lexer, FormatStrings) {
  for (const char* text : {
           "f'{x}'",           "f\"{x['a']}\"",
           "f\"{x[\"a\"]}\"",  "f'{f'{f'{1}'}'}'",
           "f'{{}}'",          "f'{x!r:>{width}.{digits}}'",
           "f'''{x\n}'''",     "f'{x:%H:%M}'",
           "f'{ {1: 2}[1] }'", "f'{lambda: 3}'",
           "f'{x = }'",        "f'\\N{DEGREE SIGN}{x}'",
           "rf'\\{x}'",        "f'{x:{{}}}'",
           "f'{\"}\"}'",       "f'{x # note }\n}'",
           "t'{x}'",           "fr'{x}'",
           "f'{\n x}'",        "f'{(x:=3)}'",
           "f'{x:\\'}'",
       }) {
    EXPECT_EQ(Tokens(std::string(text) + " y"), "f" + std::string(text) + " y |");
  }
}

TEST(Lexer, Names) {
  EXPECT_EQ(Tokens("gr\xC3\xB6\xC3\x9F"
                   "e _x1 \xCE\xB1\xCE\xB2"),
            "gr\xC3\xB6\xC3\x9F"
            "e _x1 \xCE\xB1\xCE\xB2 |");
  EXPECT_EQ(Tokens("a\xC2\xA0"
                   "b $ ?"),
            "a !\xC2\xA0 b !$ !? |");
  EXPECT_EQ(Tokens("\xEF\xBB\xBF"
                   "a"),
            "a |");
}

TEST(Lexer, Operators) {
  EXPECT_EQ(Tokens("a**=b//=c>>=d<<=e!=f->g:=h...i"),
            "a **= b //= c >>= d <<= e != f -> g := h ... i |");
}

TEST(Lexer, Decoding) {
  const auto decode = [](const std::string& text) {
    const Source source("t.py", text);
    return DecodeString(
        source, {TokenKind::kString, BadToken::kNone, {0, static_cast<int32_t>(text.size())}});
  };
  EXPECT_THAT(decode("'a\\n\\t\\\\\\'\\x41\\u00e9\\U0001F600\\101\\0'"),
              IsOkAndHolds(std::string("a\n\t\\'A\xC3\xA9\xF0\x9F\x98\x80"
                                       "A\0",
                                       14)));
  EXPECT_THAT(decode("r'\\n'"), IsOkAndHolds("\\n"));
  EXPECT_THAT(decode("'\\q'"), IsOkAndHolds("\\q"));
  EXPECT_THAT(decode("'a\\\nb'"), IsOkAndHolds("ab"));
  EXPECT_THAT(decode("'''a\r\nb\rc'''"), IsOkAndHolds("a\nb\nc"));
  EXPECT_THAT(decode("''"), IsOkAndHolds(""));
  EXPECT_THAT(decode("''''a'''"), IsOkAndHolds("'a"));
}

TEST(Source, PlacesCountCharacters) {
  const Source source("t.py",
                      "\xEF\xBB\xBF"
                      "\xC3\xA9x\r\ny\rz\n");
  EXPECT_EQ(source.text().size(), 9);
  EXPECT_EQ(source.Line(0), 1);
  EXPECT_EQ(source.Column(2), 2);
  EXPECT_EQ(source.Line(5), 2);
  EXPECT_EQ(source.Line(7), 3);
  EXPECT_EQ(source.Line(100), 4);
}

TEST(Source, LongLinesAreShownInPart) {
  const std::string line = std::string(500, 'a') + "$" + std::string(500, 'b');
  const Source source("t.py", line);
  const std::string message(source.Error({500, 501}, "here", "there").message());
  EXPECT_EQ(message, "t.py:1:501: error: here\n    ... " + std::string(60, 'a') + "$" +
                         std::string(99, 'b') + " ...\n        " + std::string(60, ' ') +
                         "^\nhelp: there");
}

TEST(Source, MessagesHoldNoControlCharacters) {
  const Source source("t\x1b.py", "a\x1b[2J\tb\xFF\xC2\x9B\xE2\x80\xAE");
  const std::string message(source.Error({6, 7}, "it is '\x1b'", "\x07").message());
  EXPECT_EQ(message, "t?.py:1:7: error: it is '?'\n    a?[2J\tb???\n         \t^\nhelp: ?");
}

}  // namespace
}  // namespace phobos::compiler
