// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/syntax/printer.h"
#include "compiler/syntax/source.h"
#include "tests/status_matchers.h"

namespace phobos::compiler {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr char kImport[] = "import phobos.lang as ph\n";

// Of the text as a whole, or of its first broken function.
absl::Status ErrorOf(const absl::StatusOr<ast::Module>& module) {
  if (!module.ok() || module->broken.empty()) return module.status();
  return module->broken[0].error;
}

// The body of a kernel with these lines in it, in normal form; or the first line of the error.
std::string Body(std::string lines) {
  const Source source("k.py", kImport + ("@ph.kernel\ndef k(x: ph.f32):\n" + std::move(lines)));
  const absl::StatusOr<ast::Module> module = Parse(source);
  const absl::Status status = ErrorOf(module);
  if (!status.ok()) {
    const std::string message(status.message());
    return message.substr(0, message.find('\n'));
  }
  return ast::Print(module->functions[0].body, 0);
}

// An expression in normal form.
std::string Expression(const std::string& text) {
  const std::string body = Body("  y = " + text + "\n");
  return body.rfind("y = ", 0) == 0 ? body.substr(4, body.size() - 5) : body;
}

TEST(Parser, Precedence) {
  EXPECT_EQ(Expression("a + b * c"), "(a + (b * c))");
  EXPECT_EQ(Expression("(a + b) * c"), "((a + b) * c)");
  EXPECT_EQ(Expression("a - b - c"), "((a - b) - c)");
  EXPECT_EQ(Expression("-a ** -b ** c"), "(-(a ** (-(b ** c))))");
  EXPECT_EQ(Expression("not a == b and c or d"), "(((not (a == b)) and c) or d)");
  EXPECT_EQ(Expression("a | b ^ c & d << e + f"), "(a | (b ^ (c & (d << (e + f)))))");
  EXPECT_EQ(Expression("a < b <= c"), "(a < b <= c)");
  EXPECT_EQ(Expression("a < b | c"), "(a < (b | c))");
  EXPECT_EQ(Expression("a if b else c if d else e"), "(a if b else (c if d else e))");
  EXPECT_EQ(Expression("~a // b % c"), "(((~a) // b) % c)");
  EXPECT_EQ(Expression("a, b"), "(a, b)");
  EXPECT_EQ(Expression("(a,)"), "(a,)");
  EXPECT_EQ(Expression("a if not b else c"), "(a if (not b) else c)");
}

// Both printed forms read back as the same tree.
TEST(Parser, PrintsWhatReadsBack) {
  for (const char* text : {"a + b * c",
                           "(a + b) * c",
                           "a - (b - c)",
                           "(-a) ** b",
                           "-a ** -b",
                           "(a ** b) ** c",
                           "not (a and b) or c",
                           "(a < b) < c",
                           "a < b < c",
                           "(a if b else c) if d else e",
                           "a if b else c if d else e",
                           "(a, b)[0]",
                           "(a + b)[i:(+n)]",
                           "A[i:+n + 1]",
                           "A[i:+(+n)]",
                           "f(a if b else c, d=-e)",
                           "(1).real",
                           "(not a) == b",
                           "a & (b | c) ^ d << 2",
                           "1e999",
                           "ph.f(ph.g(x).y)",
                           "[a, (b,), ()]",
                           "~(a + b)",
                           "+a - -b"}) {
    const Source source("k.py",
                        std::string(kImport) + "@ph.kernel\ndef k(x: ph.f32): y = " + text + "\n");
    ASSERT_OK_AND_ASSIGN(const ast::Module module, Parse(source));
    const ast::Expr& expr = *std::get<ast::Assign>(module.functions[0].body[0].node).value;
    EXPECT_EQ(Expression(ast::Print(expr)), ast::Print(expr));
    EXPECT_EQ(Expression(ast::PrintShort(expr)), ast::Print(expr));
    EXPECT_LE(ast::PrintShort(expr).size(), std::string(text).size() + 2) << text;
  }
}

TEST(Parser, Subscripts) {
  EXPECT_EQ(Expression("A[i:+L]"), "A[i:+L]");
  EXPECT_EQ(Expression("A[i: + L * 2, 3]"), "A[i:+(L * 2), 3]");
  EXPECT_EQ(Expression("A[:, None, a:b, a:, :b]"), "A[:, None, a:b, a:, :b]");
  EXPECT_EQ(Expression("A[i + j:(+L)]"), "A[(i + j):(+L)]");
}

TEST(Parser, Calls) {
  EXPECT_EQ(Expression("ph.exp(x)"), "ph.exp(x)");
  EXPECT_EQ(Expression("f(a, b, c = d,)"), "f(a, b, c=d)");
  EXPECT_EQ(Expression("ph.finfo(ph.f32).max"), "ph.finfo(ph.f32).max");
  EXPECT_EQ(Expression("ph.ctx.block.x"), "ph.ctx.block.x");
}

TEST(Parser, Literals) {
  EXPECT_EQ(Expression("0x_ff + 0b11 + 0o17 + 1_000"), "(((255 + 3) + 15) + 1000)");
  EXPECT_EQ(Expression("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(Expression("1. + .5 + 1e3 + 1_0.2_5e-1_0"), "(((1.0 + 0.5) + 1000.0) + 1.025e-09)");
  EXPECT_EQ(Expression("'a\\x41' \"b\" r'\\n' u'\\u00e9'"), "\"aAb\\\\n\xC3\xA9\"");
  EXPECT_EQ(Expression("1if x else 2"), "(1 if x else 2)");
}

TEST(Parser, Statements) {
  EXPECT_EQ(Body("  '''doc'''\n"
                 "  a: ph.let = x; b: ph.tile[ph.f32][M, 2] = 0.0\n"
                 "  a, b = f(x)\n"
                 "  A[i:+L] //= 2\n"
                 "  for i in ph.range(0, n, unroll=U):\n"
                 "      if i == 1: break\n"
                 "      elif i == 2:\n"
                 "          continue\n"
                 "      else:\n"
                 "          pass\n"
                 "  while a < b:\n"
                 "    a += 1\n"
                 "  return\n"),
            "a: ph.let = x\n"
            "b: ph.tile[ph.f32][M, 2] = 0.0\n"
            "(a, b) = f(x)\n"
            "A[i:+L] //= 2\n"
            "for i in ph.range(0, n, unroll=U):\n"
            "  if (i == 1):\n"
            "    break\n"
            "  else:\n"
            "    if (i == 2):\n"
            "      continue\n"
            "    else:\n"
            "      pass\n"
            "while (a < b):\n"
            "  a += 1\n"
            "return\n");
}

// What is wrong with one function is kept with it, and the others are read.
TEST(Parser, GoesOnBehindABrokenFunction) {
  const Source source("k.py", std::string(kImport) +
                                  "@ph.kernel\ndef a(x: ph.f32):\n    y = x @ x\n    z = 1\n"
                                  "@ph.fn\ndef b(x):\n    try:\n        pass\n"
                                  "C = 3\n"
                                  "@ph.kernel(\ndef c(x: ph.f32):\n    pass\n)\ndef d(x): pass\n"
                                  "@ph.fn\nclass e:\n    pass\n"
                                  "@ph.kernel\nasync def f(): pass\n"
                                  "@ph.kernel\ndef good(x: ph.f32):\n    pass\n"
                                  "@ph.kernel");
  ASSERT_OK_AND_ASSIGN(const ast::Module module, Parse(source));
  std::string broken;
  for (const ast::BrokenFunction& one : module.broken) {
    broken += one.name + (one.is_kernel ? " kernel " : " ") +
              std::to_string(source.Line(one.begin)) + "\n";
    EXPECT_EQ(one.error.code(), absl::StatusCode::kInvalidArgument) << one.error;
  }
  EXPECT_EQ(broken, "a kernel 2\nb 6\nd kernel 11\ne 16\nf kernel 19\n kernel 24\n");
  ASSERT_EQ(module.functions.size(), 1);
  EXPECT_EQ(module.functions[0].name, "good");
  ASSERT_EQ(module.constants.size(), 1);
  EXPECT_EQ(module.constants[0].name, "C");
}

TEST(Parser, ShowsPlaceAndRemedy) {
  const Source source("dir/add.py",
                      std::string(kImport) + "@ph.kernel\ndef k(x: ph.f32):\n    y = x @ x\n");
  EXPECT_THAT(ErrorOf(Parse(source)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "dir/add.py:4:11: error: '@' is no operator of the language\n"
                       "    y = x @ x\n"
                       "          ^\n"
                       "help: write ph.dot(a, b)"));
}

TEST(Parser, ReadsEveryImportOfTheLanguage) {
  // Behind its use too, but not in a function.
  const Source behind("k.py",
                      "def f():\n  import phobos.lang as q\n  if 1:\n    x\n"
                      "@q.kernel\ndef no(): pass\n@ph.kernel\ndef k(): pass\n"
                      "def g(): pass\nif 1:\n  import phobos.lang as ph");
  ASSERT_OK_AND_ASSIGN(const ast::Module found, Parse(behind));
  ASSERT_EQ(found.functions.size(), 1);
  EXPECT_EQ(found.functions[0].name, "k");
  for (const auto& [import, use] : std::vector<std::pair<std::string, std::string>>{
           {"import phobos.lang as pl", "pl"},
           {"from phobos import lang as q", "q"},
           {"from phobos import lang", "lang"},
           {"from phobos import (client, lang as z,)", "z"},
           {"import os, phobos.lang", "phobos.lang"},
           {"import phobos", "phobos.lang"},
           {"import phobos as p", "p.lang"},
           {"from helper import *; import phobos.lang as ph", "ph"},
           {"import os; from phobos import lang as q; x = 1", "q"},
           {"if True:\n  x = f(); import phobos.lang as ph", "ph"},
           {"try:\n  import phobos.lang as ph\nexcept ImportError:\n  pass", "ph"},
       }) {
    const Source source("k.py", import + "\n@" + use + ".kernel\ndef k(x: " + use +
                                    ".f32):\n  y = " + use + ".exp(x)\n");
    ASSERT_OK_AND_ASSIGN(const ast::Module module, Parse(source));
    ASSERT_EQ(module.functions.size(), 1) << import;
    EXPECT_EQ(ast::Print(module.functions[0].body, 0), "y = ph.exp(x)\n");
    EXPECT_THAT(module.aliases, ElementsAre(use));
  }
}

TEST(Parser, SkipsTheHostProgram) {
  const Source source("k.py", R"py(# -*- coding: utf-8 -*-
"""Module."""
from __future__ import annotations
import numpy as np, phobos.lang as ph
match sys.argv:
    case [_, *rest] if rest: print(f"{rest["a"]!r:>{10}} {{ }}")
    case _: pass
class A[T](Base, metaclass=M):
    x: int = 3
    @property
    async def f(self, *a, **k): return [await y async for y in z] if (w := 3) else {**k}
type X = list[int]
def reference(x): return {"out": x $ 3 ? 4}
@jit(cache=True)
def foreign(): yield
@ph.on_tune
def told(result): print(result)
try: import torch
except* ImportError: torch = None
if True:
  lambda: (yield)
C: "Final[int]" = 4; D = C * 2
E = np.float32(3)
@ph.fn
def g(v): return v
with open("x") as handle, \
  open("y") as other: pass
@ph.kernel(key=("N",), reference=lambda x, y, out: {"out": x + y}, rtol=max(1e-3, 2), flush_l2=not True)
@ph.autotune(BLOCK=[256, 4096])
def k(x: "ph.tensor[ph.f32][N]", out: ph.tensor[ph.f32][N]) -> None: pass
k[lambda meta: (-(-meta["N"] // meta["BLOCK"]),)](x, out)
)py");
  ASSERT_OK_AND_ASSIGN(const ast::Module module, Parse(source));
  ASSERT_EQ(module.functions.size(), 2);
  EXPECT_EQ(module.functions[0].name, "g");
  EXPECT_EQ(module.functions[1].name, "k");
  ASSERT_EQ(module.functions[1].decorators.size(), 2);
  const ast::Decorator& kernel = module.functions[1].decorators[0];
  ASSERT_EQ(kernel.keyword.size(), 4);
  EXPECT_EQ(kernel.keyword[1].name, "reference");
  EXPECT_EQ(kernel.keyword[1].value, nullptr);
  EXPECT_EQ(ast::Print(*module.functions[1].parameters[0].annotation), "ph.tensor[ph.f32][N]");
  EXPECT_THAT(module.constants, ElementsAre(Field(&ast::ModuleConstant::name, "C"),
                                            Field(&ast::ModuleConstant::name, "D")));
}

TEST(Parser, AConstantIsBoundOnce) {
  const Source source("k.py", R"py(
A = 1
B = 2
B = 3
C = 4
C += 1
D = E = 5
F, G = 6, 7
H = 8
def f():
  global H
  H = 9
if x:
  I = 1
for J in range(3): pass
K = 1
import K
L = 1
x.L = 2
L.y = 3
f(L=4)
M = 1
(M := 3)
N = 1 if A else 2
)py");
  ASSERT_OK_AND_ASSIGN(const ast::Module module, Parse(source));
  std::string constants;
  for (const ast::ModuleConstant& constant : module.constants) constants += constant.name;
  EXPECT_EQ(constants, "ALN");
  std::string others;
  for (const ast::HostName& name : module.host_names) others += name.name;
  for (const char* name : {"B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "M", "f"}) {
    EXPECT_THAT(others, HasSubstr(name));
  }
}

TEST(Parser, NotesANestedKernel) {
  const Source source("k.py",
                      "import phobos.lang as ph\nclass A:\n  @ph.kernel\n  def k(): pass\n");
  ASSERT_OK_AND_ASSIGN(const ast::Module module, Parse(source));
  EXPECT_TRUE(module.functions.empty());
  EXPECT_EQ(source.Line(module.nested_kernel.begin), 3);
}

TEST(Parser, QuotedExpressionsKeepTheirPlace) {
  const Source source("k.py", "x = \"A % B ==\"\n");
  EXPECT_THAT(ParseQuotedExpression(source, {4, 14}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("k.py:1:14:"), HasSubstr("expected"))));
}

TEST(Parser, BoundsDepthAndHeight) {
  EXPECT_THAT(Expression(std::string(150, '(') + "a" + std::string(150, ')')),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(Expression(std::string(5000, '-') + "a"), HasSubstr("nested too deeply"));
  std::string sum = "a";
  for (int i = 0; i < 5000; ++i) sum += "+a";
  EXPECT_THAT(Expression(sum), HasSubstr("too many operations"));
  std::string branches = "  if a: pass\n";
  for (int i = 0; i < 5000; ++i) branches += "  elif a: pass\n";
  EXPECT_THAT(Body(branches), HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace phobos::compiler
