// SPDX-License-Identifier: Apache-2.0
//
// What the checker refuses: each body with the place, the problem and the remedy that its error
// must give.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "tests/compiler/sema/lower/lowered.h"
#include "tests/status_matchers.h"

namespace phobos::compiler::sema {
namespace {

struct Case {
  const char* body;
  const char* under_caret;  // the source text that the caret marks, from its start
  const char* problem;
  const char* remedy;
  const char* prelude = "";
};

const char kParameters[] =
    "x: ph.tensor[ph.f32][N], m: ph.tensor[ph.f32][N, 8], u: ph.tensor[ph.u8][N], "
    "out: ph.tensor[ph.f32][N], a: ph.f32, n: ph.i32, b: ph.bool, c: ph.tensor[ph.bool][N]";

// The text under the caret line, from the first caret on.
std::string UnderCaret(const std::string& message) {
  const size_t caret = message.find_first_of('^', message.find('\n'));
  if (caret == std::string::npos) return "";
  const size_t caret_line = message.rfind('\n', caret) + 1;
  const size_t source_line = message.rfind('\n', caret_line - 2) + 1;
  return message.substr(source_line + (caret - caret_line),
                        caret_line - 1 - source_line - (caret - caret_line));
}

void ExpectErrors(const Case* begin, const Case* end) {
  for (const Case* c = begin; c != end; ++c) {
    const KernelText text{.parameters = kParameters, .body = c->body, .prelude = c->prelude};
    const absl::StatusOr<ir::Function> function = LowerKernel(text);
    ASSERT_THAT(function, testing::StatusIs(absl::StatusCode::kInvalidArgument)) << c->body;
    const std::string message(function.status().message());
    EXPECT_TRUE(absl::StrContains(message, std::string(": error: ") + c->problem)) << message;
    EXPECT_TRUE(absl::StrContains(message.substr(message.find("help: ") + 1), c->remedy))
        << message << "\nwanted: " << c->remedy;
    EXPECT_TRUE(absl::StartsWith(UnderCaret(message), c->under_caret))
        << message << "\nwanted the caret at: " << c->under_caret;
  }
}

template <size_t kCount>
void ExpectErrors(const Case (&cases)[kCount]) {
  ExpectErrors(cases, cases + kCount);
}

TEST(Errors, Names) {
  const Case cases[] = {
      {"out[0] = outt[0]", "outt", "'outt' is not defined", "did you mean 'out'?"},
      {"total: ph.let = 1\nout[0] = totla", "totla", "'totla' is not defined",
       "did you mean 'total'"},
      {"out[0] = zzzzzzzz", "zzzzzzzz", "'zzzzzzzz' is not defined", "bind it before"},
      {"out[0] = zzzzzzzz(a)", "zzzzzzzz", "'zzzzzzzz' is not defined",
       "in the same cell, under @ph.fn"},
      {"out[0] = f(a)", "zzzzzzzz", "'zzzzzzzz' is not defined", "under @ph.fn",
       "@ph.fn\ndef f(v):\n    return zzzzzzzz(v)"},
      {"out[0] = sqare(a)", "sqare", "'sqare' is not defined", "did you mean 'square'?",
       "@ph.fn\ndef square(v):\n    return v * v"},
      {"out[0] = exp(a)", "exp", "'exp' is not defined", "write ph.exp"},
      {"out[0] = float(n)", "float", "'float' is not part of the language", "ph.cast(x, ph.f32)"},
      {"out[0] = ph.expp(a)", "ph.expp", "'ph.expp' is not in the language", "ph.exp"},
      {"out[0] = ph.ctx.block.w", "ph.ctx.block.w", "'ph.ctx.block.w' is not in the language",
       "ph.ctx.block.x"},
      {"out[0] = ph.exp", "ph.exp", "ph.exp is a function, and no value", "call it: ph.exp(...)"},
      {"out[0] = ph.tile", "ph.tile", "ph.tile is no value", "annotation"},
      {"out[0] = f", "f", "'f' is a function, and no value", "call it: f(...)",
       "@ph.fn\ndef f(v):\n    return v"},
      {"if n > 0:\n    t: ph.let = 1\nout[0] = t", "t", "'t' is not defined", ""},
      {"for i in range(3):\n    pass\nout[0] = i", "i", "'i' is not defined", ""},
      {"a: ph.let = 1", "a", "'a' would hide the parameter a", "another name"},
      {"N: ph.let = 1", "N", "'N' would hide the extent N", "another name"},
      {"BLOCK: ph.let = 1", "BLOCK", "'BLOCK' would hide the autotuned constant BLOCK",
       "another name"},
      {"C: ph.let = 1", "C", "'C' would hide the module constant C", "another name", "C = 3"},
      {"f: ph.let = 1", "f", "'f' would hide the function f", "another name",
       "@ph.fn\ndef f(v):\n    return v"},
      {"t: ph.let = 1\nt: ph.let = 2", "t: ph.let = 2", "'t' is already bound, on line 5",
       "declare `t: ph.var`"},
      {"t: ph.var = 1\nif n > 0:\n    t: ph.let = 2", "t: ph.let",
       "'t' would hide the 't' of line 5", "another name"},
      {"for i in range(3):\n    for i in range(3):\n        pass", "i in", "'i' would hide",
       "another name"},
      {"_phx: ph.let = 1", "_phx", "names that begin with _ph are reserved", "another name"},
      {"out[0] = g(a)", "n",
       "'n' belongs to the kernel, and a ph.fn does not see it (in g, called from line",
       "as an argument", "@ph.fn\ndef g(v):\n    return v * n"},
      {"out[0] = g(a)", "BLOCK", "'BLOCK' belongs to the kernel", "as an argument",
       "@ph.fn\ndef g(v):\n    return v * BLOCK"},
  };
  ExpectErrors(cases);
}

TEST(Errors, Operators) {
  const Case cases[] = {
      {"out[0] = n / 2", "n / 2", "/ divides floats", "write // for integer division"},
      {"out[0] = 1 / 2", "1 / 2", "/ divides floats", "write //"},
      {"out[0] = a & 1", "a & 1", "& works on integers and bools", "ph.cast"},
      {"out[0] = ~a", "~a", "~ works on integers and bools", "ph.cast"},
      {"out[0] = b + b", "b + b", "+ works on numbers, and both sides are bools",
       "ph.cast(x, ph.i32)"},
      {"out[0] = -b", "-b", "a bool has no negative", "~x"},
      {"out[0] = a ** 0.5", "0.5", "** takes a constant exponent", "ph.pow"},
      {"out[0] = a ** -1", "-1", "** takes a constant exponent", "1.0 / x"},
      {"out[0] = a ** n", "n", "** takes a constant exponent", "ph.pow"},
      {"out[0] = n << -1", "-1", "a shift by a negative number", "the other way"},
      {"u[0] = u[0] + 256", "256", "256 does not fit u8, which holds 0 to 255", "ph.cast"},
      {"u[0] = u[0] - -1", "-1", "-1 does not fit u8", "ph.cast"},
      {"u[0] = 300", "300", "300 does not fit u8", "in that range"},
      {"i: ph.let = n + 2147483648", "2147483648", "2147483648 does not fit i32", "ph.cast"},
      {"t: ph.let = 2 ** 63", "2 ** 63", "9223372036854775808 does not fit i64", "ph.u64"},
      {"t: ph.let = 2 ** 200", "2 ** 200", "this constant is too large", "2^120"},
      {"t: ph.let = ph.cast(a, ph.f16) + 70000", "70000",
       "70000 does not fit f16, whose largest number is 65504.0", "in that range"},
      {"out[0:+4] = 1 < x[0:+4] < 2", "1 < x[0:+4] < 2", "a chained comparison of tiles",
       "(a < b) & (b < c)"},
      {"out[0:+4] = x[0:+4] > 1 and b", "x[0:+4] > 1", "and is for scalars", "a & b"},
      {"out[0:+4] = not (x[0:+4] > 1)", "not", "not is for scalars", "~x"},
      {"out[0] = n or 1", "n", "or joins conditions", "x != 0"},
      {"out[0:+4] = x[0:+4] if b else 0", "x[0:+4]", "`a if c else b` chooses between scalars",
       "ph.where"},
      {"if x[0:+4] > 0:\n    pass", "x[0:+4] > 0", "a condition is a scalar", "ph.any"},
      {"while x[0:+4] > 0:\n    pass", "x[0:+4] > 0", "a condition is a scalar", "ph.any"},
      {"out[0] = x + 1", "x", "a number is needed here, and this is tensor x", "x[i:+LENGTH]"},
      {"out[0] = \"a\" + 1", "\"a\"", "a number is needed here", "strings serve only"},
      {"out[0] = None", "None", "a number is needed here, and this is nothing (None)", ""},
      {"out[0] = ph.f32", "ph.f32", "a number is needed here, and this is the type ph.f32", ""},
      {"out[0] = (a, a)", "(a, a)", "a number is needed here, and this is a tuple of 2", "a, b ="},
      {"out[0] = [a]", "[a]", "a list is no value", "ph.full"},
      {"out[0:+4] = x[0:+4] + x[0:+2]", "x[0:+4] + x[0:+2]",
       "shapes [4] and [2] do not fit each other", "two sides must be equal"},
      {"out[0:+4] = ph.where(b, x[0:+4], x[0:+3])", "ph.where", "shapes [4] and [3] do not fit",
       "two sides must be equal"},
  };
  ExpectErrors(cases);
}

TEST(Errors, Tensors) {
  const Case cases[] = {
      {"out[0:+4] = x[0:+8]", "x[0:+8]",
       "a value of shape [8] does not fit the part of out of shape [4]", "the same"},
      {"out[0] = x[0:+8]", "x[0:+8]",
       "a value of shape [8] does not fit the part of out of shape [] (a scalar)", "one element"},
      {"out[0] = x[0, 1]", "x[0, 1]", "x has 1 dimension, and here are 2 subscripts",
       "x[i:+LENGTH]"},
      {"out[0] = m[0]", "m[0]", "m has 2 dimensions, and here is 1 subscript", "m[i0, i:+LENGTH]"},
      {"out[0] = x[-1]", "-1", "position -1 lies before the tensor", "never count from the end"},
      {"out[0:+4] = x[-4:+4]", "-4", "position -4 lies before the tensor", "never count"},
      {"out[0:+4] = x[2 - 4:+4]", "2 - 4", "position -2 lies before", "never count"},
      {"out[0:+4] = x[-4:]", "-4:", "the end of this slice is the extent N", "x[i:+LENGTH]"},
      {"out[0:+4] = x[:]", ":", "the end of this slice is the extent N", "x[i:+LENGTH]"},
      {"out[0] = x[a]", "a", "a position is an integer scalar, and this is an f32 scalar",
       "ph.cast(x, ph.i64)"},
      {"out[0] = x[1.0]", "1.0", "a position is an integer scalar", "ph.cast"},
      {"out[0] = x[True]", "True", "a position is an integer scalar", ""},
      {"out[0:+4] = x[0:+n]", "n", "the length of a slice must be known at compile time",
       "autotuned constant"},
      {"out[0:+4] = x[0:+0]", "0", "the length of a slice is 0, outside 1 to 1048576",
       "in that range"},
      {"out[0:+4] = x[0:+2000000]", "2000000", "the length of a slice is 2000000", "in that range"},
      {"out[0:+4] = x[0:n]", "0:n", "the length of this slice is not known", "x[start:+LENGTH]"},
      {"out[0:+4] = x[n:n + 4]", "n:n + 4", "the length of this slice is not known",
       "x[start:+LENGTH]"},
      {"out[0:+4] = x[8:4]", "8:4", "this slice has -4 elements", "after its start"},
      {"out[0:+4] = x[(x[0:+4] > 0)]", "(x[0:+4] > 0)", "a tile of bools selects no elements",
       "mask="},
      {"out[0:+4] = x[None]", "None", "a tensor takes no new axis", "t[:, None]"},
      {"t: ph.let = x[0:+4]\nout[0] = t[1]", "t[1]",
       "this is an f32 tile of shape [4], and only tensors", "ph.where"},
      {"t: ph.let = x[0:+4]\nt[1] = 2.0", "t[1]",
       "this is an f32 tile of shape [4], whose elements cannot", "ph.where"},
      {"out[0:+4] = ph.load(x)", "x", "ph.load takes a part of a tensor first",
       "ph.load(A[i:+LENGTH]"},
      {"out[0:+4] = ph.load(x[0:+4], mask=1)", "1", "a mask is made of bools", "m != 0"},
      {"out[0:+4] = ph.load(x[0:+4], mask=ph.iota(8) < 3)", "ph.iota(8) < 3",
       "a value of shape [8] does not fit the masked part of shape [4]", "the same"},
      {"out[0:+4] = ph.load(x[0:+4], fill=x[0:+2])", "x[0:+2]",
       "a value of shape [2] does not fit the part of x of shape [4]", "the same"},
      {"ph.store(out[0:+4], x[0:+2])", "x[0:+2]",
       "a value of shape [2] does not fit the part of out", "the same"},
      {"out[0] = x.shape[0]", "x.shape", "values have no attributes such as .shape",
       "ph.extent(A, 0)"},
      {"out[0] = x.sum()", "x.sum", "values have no methods such as .sum()", "ph.sum(x)"},
  };
  ExpectErrors(cases);
}

TEST(Errors, Statements) {
  const Case cases[] = {
      {"t: ph.let", "t", "'t' is declared without a value", "t: ph.f32 = 0.0"},
      {"t = 1", "t", "'t' is not declared", "t: ph.var = ..."},
      {"total: ph.var = 1\ntotl = 2", "totl", "'totl' is not declared", "did you mean 'total'"},
      {"t: ph.let = 1\nt = 2", "t = 2", "'t' is bound once, by ph.let on line 5", "t: ph.var"},
      {"t: ph.let = 1\nt += 2", "t += 2", "'t' is bound once", "ph.var"},
      {"for i in range(3):\n    i = 1", "i = 1", "'i' is the index of a loop", "while"},
      {"a = 1.0", "a", "'a' is a parameter, and parameters do not change", "copy it"},
      {"x = 1.0", "x", "'x' is a tensor: assign to a part of it", "x[i:+LENGTH] = ..."},
      {"N = 1", "N", "'N' is an extent, which does not change", "another name"},
      {"BLOCK = 1", "BLOCK", "'BLOCK' is an autotuned constant", "another name"},
      {"C = 1", "C", "'C' is a module constant", "another name", "C = 3"},
      {"t: ph.f32 = x[0:+4]", "x[0:+4]",
       "a value of shape [4] does not fit t of shape [] (a scalar)", "declare a tile"},
      {"t: ph.tile[ph.f32][BLOCK] = x[0:+3]", "x[0:+3]",
       "a value of shape [3] does not fit t of shape [4]", "the same"},
      {"t: ph.var = x[0:+4]\nt = x[0:+8]", "x[0:+8]",
       "a value of shape [8] does not fit t of shape [4]", "the same"},
      {"t: ph.u8 = 256", "256", "256 does not fit u8", "in that range"},
      {"t: ph.tile[ph.f32][N] = 0", "N", "the side of a tile must be known at compile time",
       "constant"},
      {"t: ph.tile[ph.f32][0] = 0", "0", "the side of a tile is 0", "range"},
      {"t: ph.f33 = 0", "ph.f33", "'ph.f33' is not in the language", "ph.f32"},
      {"t: n = 0", "n", "this is no type", "ph.let"},
      {"if b:\n    t: ph.var = 1\nt = 2", "t", "'t' is not declared here", "ph.var if it changes"},
      {"t: ph.let = x", "x", "a number is needed here, and this is tensor x", "x[i:+LENGTH]"},
      {"t, s = a", "a", "2 names, and this is an f32 scalar", "as many names"},
      {"t, s = f(a)", "f(a)", "2 names, and this is a tuple of 3", "as many names",
       "@ph.fn\ndef f(v):\n    return v, v, v"},
      {"a + 1", "a + 1", "this statement does nothing with its value", "name: ph.let"},
      {"ph.exp(a)", "ph.exp(a)", "this statement does nothing", "name: ph.let"},
      {"for i in x:\n    pass", "x", "a for loops over a range", "ph.range(n)"},
      {"for i in ph.range(a):\n    pass", "a", "the end of a range is an integer scalar",
       "ph.cast"},
      {"for i in ph.range(0, 4, 0):\n    pass", "0", "a range with step 0 never ends", "1 or more"},
      {"for i in ph.range():\n    pass", "ph.range()", "a range takes one to three numbers",
       "ph.range(n)"},
      {"for i in ph.range(4, unroll=n):\n    pass", "n", "unroll must be known at compile time",
       "constant"},
      {"for i in ph.range(4, unroll=0):\n    pass", "0", "unroll is 0, outside 1 to 1024", "range"},
      {"for i in range(4, unroll=2):\n    pass", "unroll", "a range takes no argument unroll",
       "plain range"},
      {"break", "break", "break stands outside a loop", "return"},
      {"continue", "continue", "continue stands outside a loop", "inside a for"},
      {"return a", "a", "a kernel returns nothing", "out[i:+LENGTH]"},
      {"for i in range(3):\n    out[i] = f(a)", "break",
       "break stands outside a loop (in f, called from line", "",
       "@ph.fn\ndef f(v):\n    if v > 0:\n        break\n    return v"},
      {"ph.assert_(BLOCK > 8, \"too small\")", "ph.assert_", "too small", "@ph.constraint"},
      {"ph.assert_(n > 8, \"text\")", "n > 8", "ph.assert_ decides over constants", "ph.assume"},
      // Both arms of an if over constants are checked.
      {"if BLOCK == 4:\n    out[0] = a\nelse:\n    out[0] = zzzz", "zzzz", "'zzzz' is not defined",
       ""},
      {"return\nout[0] = zzzz", "zzzz", "'zzzz' is not defined", ""},
  };
  ExpectErrors(cases);
}

TEST(Errors, Calls) {
  const char kF[] = "@ph.fn\ndef f(v, w):\n    return v + w";
  const Case cases[] = {
      {"out[0] = f(a)", "f(a)", "f needs an argument w", "defined on line 3 with 2 parameters", kF},
      {"out[0] = f(a, a, a)", "f(a, a, a)", "too many arguments for f", "2 parameters", kF},
      {"out[0] = f(a, z=a)", "z=a", "f has no parameter z", "2 parameters", kF},
      {"out[0] = f(a, v=a)", "v=a", "v is given twice", "2 parameters", kF},
      {"out[0] = a(1)", "a", "a is an f32 scalar, and no function", "ph.fn"},
      {"out[0] = f(None, a)", "None", "an argument cannot be nothing (None)", "tensors", kF},
      {"out[0] = k(a)", "k(a)", "'k' is a kernel", "ph.fn"},
      {"out[0] = r(a)", "r(v)", "'r' calls itself", "write a loop",
       "@ph.fn\ndef r(v):\n    return r(v)"},
      {"out[0] = p(a)", "p(v)", "'p' calls itself", "write a loop",
       "@ph.fn\ndef p(v):\n    return q(v)\n@ph.fn\ndef q(v):\n    return p(v)"},
      {"out[0] = e(a)", "return v", "a ph.fn returns once, as its last statement", "ph.where",
       "@ph.fn\ndef e(v):\n    if v > 0:\n        return v\n    return 0"},
      {"out[0] = e(a)", "e(a)", "a number is needed here, and this is nothing (None)", "",
       "@ph.fn\ndef e(v):\n    pass"},
      {"out[0] = e(a)", "v = 1", "'v' is a parameter, and parameters do not change", "copy it",
       "@ph.fn\ndef e(v):\n    v = 1\n    return v"},
      {"out[0:+4] = e(x[0:+4])", "x[0:+4]", "a value of shape [4] does not fit the parameter v", "",
       "@ph.fn\ndef e(v: ph.f32):\n    return v"},
      {"out[0] = e(u)", "u", "u is a tensor of u8 of rank 1, and the parameter t of f32 of rank 1",
       "annotation", "@ph.fn\ndef e(t: ph.tensor[ph.f32][N]):\n    return t[0]"},
      {"out[0] = e(a)", "a", "the parameter t is a tensor, and this is an f32 scalar",
       "without subscripts", "@ph.fn\ndef e(t: ph.tensor[ph.f32][N]):\n    return t[0]"},
      {"out[0] = ph.exp()", "ph.exp()", "ph.exp needs an argument x", "write ph.exp(x)"},
      {"out[0] = ph.exp(a, a)", "a)", "too many arguments for ph.exp", "write ph.exp(x)"},
      {"out[0] = ph.exp(z=a)", "z=a", "ph.exp takes no argument z", "write ph.exp(x)"},
      {"out[0] = ph.clip(a, lo=0)", "ph.clip", "ph.clip needs an argument hi",
       "write ph.clip(x, lo, hi)"},
      {"out[0] = ph.f32(n)", "ph.f32", "this is the type ph.f32, and no function",
       "ph.cast(x, ph.f32)"},
      {"out[0] = ph.cast(n, 3)", "3", "a type is needed here", "ph.f32"},
      {"out[0] = ph.bitcast(n, ph.f64)", "ph.bitcast", "ph.bitcast keeps the bits, and i32 and f64",
       "ph.cast"},
      {"out[0] = ph.mulhi(a, a)", "ph.mulhi", "ph.mulhi multiplies integers", "*"},
      {"out[0] = ph.cdiv(a, 2)", "a", "ph.cdiv divides integers", "ph.ceil"},
      {"out[0:+4] = ph.iota(n)", "n", "the length of ph.iota must be known", "constant"},
      {"out[0:+4] = ph.zeros(ph.f32, 2 ** 21)", "2 ** 21", "the side of a tile is 2097152",
       "range"},
      {"out[0] = ph.extent(x, 1)", "1", "the dimension is 1, outside -1 to 0", "range"},
      {"out[0] = ph.extent(a, 0)", "a", "ph.extent asks for a tensor", "ph.extent(A, 0)"},
      {"out[0] = ph.finfo(ph.i32).max", "ph.i32", "finfo takes a float type",
       "ph.finfo(ph.f32).max"},
      {"out[0] = ph.finfo(ph.f32).tiny", "ph.finfo", "finfo has no tiny", "max, min and eps"},
      {"i: ph.let = range(3)", "range(3)", "range stands only in a for", "for i in"},
  };
  ExpectErrors(cases);
}

// Shapes of tiles, what arranges their elements, gathers.
TEST(Errors, Shapes) {
  const Case cases[] = {
      {"t: ph.let = ph.zeros(ph.f32, 2, 2, 2, 2, 2)", "ph.zeros(ph.f32, 2, 2, 2, 2, 2)",
       "a tile of rank 5, and a tile has at most 4 sides", "ph.reshape"},
      {"t: ph.let = ph.zeros(ph.f32, 2048, 1024)", "ph.zeros(ph.f32, 2048, 1024)",
       "a tile of 2097152 elements is too large", "1048576"},
      {"t: ph.let = ph.zeros(ph.f32, 2048, 1) + ph.zeros(ph.f32, 1024)",
       "ph.zeros(ph.f32, 2048, 1) + ph.zeros(ph.f32, 1024)",
       "a tile of 2097152 elements is too large", "loop over"},
      {"t: ph.let = m[0:+4, 0:+8] + x[0:+4]", "m[0:+4, 0:+8] + x[0:+4]",
       "shapes [4, 8] and [4] do not fit each other", "t[:, None]"},
      {"t: ph.let = x[0:+4][:, :]", ":", "this tile has 1 side, and here is one more `:`", "None"},
      {"t: ph.let = x[0:+4][0, None]", "x[0:+4][0, None]",
       "this is an f32 tile of shape [4], and only tensors have elements to take", "ph.where"},
      {"t: ph.let = m[0:+2, 0:+2][None, None, None]", "m[0:+2, 0:+2][None, None, None]",
       "a tile of rank 5", "ph.reshape"},
      {"t: ph.let = ph.reshape(x[0:+4], 3)", "ph.reshape(x[0:+4], 3)",
       "a tile of shape [4] has 4 elements, and shape [3] has 3", "equally many"},
      {"t: ph.let = ph.reshape(x[0:+6], -1, 4)", "ph.reshape(x[0:+6], -1, 4)",
       "a tile of shape [6] has 6 elements, and shape [1, 4] has 4", "equally many"},
      {"t: ph.let = ph.reshape(x[0:+4], -1, -1)", "-1", "two sides are -1", "one side"},
      {"t: ph.let = ph.reshape(x[0:+4])", "ph.reshape(x[0:+4])",
       "ph.reshape gives a tile, and here is no side", "ph.sum"},
      {"t: ph.let = ph.reshape(a, 1)", "a", "ph.reshape takes a tile, and this is", "ph.full"},
      {"t: ph.let = ph.transpose(m[0:+4, 0:+8], (0, 0))", "(0, 0)",
       "(0, 0) is no order of the 2 axes of a tile of shape [4, 8]", "(1, 0)"},
      {"t: ph.let = ph.transpose(m[0:+4, 0:+8], (0, 2))", "(0, 2)",
       "an axis of this tile is 2, outside -2 to 1", "range"},
      {"t: ph.let = m[ph.iota(4), ph.iota(5)]", "m[ph.iota(4), ph.iota(5)]",
       "index tiles of shapes [4] and [5] do not fit each other", "rows[:, None]"},
      {"t: ph.let = x[x[0:+4]]", "x[0:+4]", "a position is an integer scalar", "ph.cast"},
  };
  ExpectErrors(cases);
}

TEST(Errors, Reductions) {
  const Case cases[] = {
      {"out[0] = ph.sum(x[0:+4], axis=1)", "1",
       "the axis of a tile of shape [4] is 1, outside -1 to 0", "range"},
      {"t: ph.let = ph.max(m[0:+4, 0:+8], axis=n)", "n",
       "the axis of a tile of shape [4, 8] must be known at compile time", "literal"},
      {"t: ph.let = ph.max(m[0:+4, 0:+8], axis=(0, -2))", "(0, -2)", "an axis is named twice",
       "once"},
      {"t: ph.let = ph.argmax(m[0:+4, 0:+8][None, :, :], axis=(0, 1))", "(0, 1)",
       "ph.argmax goes along one axis, or all of them", "axis=0"},
      {"t: ph.let = ph.cumsum(m[0:+4, 0:+8], axis=())", "()",
       "ph.cumsum goes along one axis, or all of them", "axis=0"},
      {"out[0] = ph.sum(x[0:+4], keepdims=1)", "1", "keepdims is True or False", "keepdims=True"},
      {"t: ph.let = ph.cumsum(x[0:+4], axis=-2)", "-2",
       "the axis of a tile of shape [4] is -2, outside -1 to 0", "range"},
      {"out[0] = ph.sum(a)", "a", "ph.sum takes a tile, and this is an f32 scalar", "ph.full"},
      {"out[0] = ph.sum(x)", "x", "a number is needed here, and this is tensor x", "load a part"},
      {"t: ph.let = ph.rowsum(x[0:+4])", "x[0:+4]",
       "ph.rowsum reduces rows, and this is an f32 tile of shape [4]", "ph.sum(t)"},
      {"out[0:+8] = ph.sum(m[0:+4, 0:+8], axis=1)", "ph.sum(m[0:+4, 0:+8], axis=1)",
       "a value of shape [4] does not fit the part of out of shape [8]", "same"},
      {"out[0] = ph.sum(x[0:+4], axes=0)", "axes", "ph.sum takes no argument axes", "axis=..."},
  };
  ExpectErrors(cases);
}

TEST(Errors, Dot) {
  const Case cases[] = {
      {"t: ph.let = ph.dot(m[0:+4, 0:+8], 2.0)", "2.0",
       "ph.dot multiplies tiles of two or more sides, and this is the constant 2.0", "x * y"},
      {"t: ph.let = ph.dot_t(x[0:+8], m[0:+4, 0:+8])", "x[0:+8]",
       "ph.dot_t multiplies tiles of two or more sides, and this is an f32 tile of shape [8]",
       "v[None, :] is a row"},
      {"t: ph.let = ph.dot(m, m[0:+4, 0:+8])", "m", "a number is needed here, and this is tensor m",
       "load a part of it"},
      {"t: ph.let = ph.dot(m[0:+4, 0:+8], m[0:+4, 0:+8])", "ph.dot(m[0:+4, 0:+8], m[0:+4, 0:+8])",
       "ph.dot sums over the last side of a, 8, and the last but one of b, 4: a of shape [4, 8] "
       "and "
       "b of shape [4, 8] do not fit",
       "ph.dot_t(a, b) takes b as [N, K]"},
      {"t: ph.let = ph.dot_t(m[0:+4, 0:+8], m[0:+8, 0:+4])",
       "ph.dot_t(m[0:+4, 0:+8], m[0:+8, 0:+4])",
       "ph.dot_t sums over the last side of a, 8, and the last of b, 4",
       "ph.dot(a, b) takes b as [K, N]"},
      {"t: ph.let = ph.dot(m[0:+4, 0:+8], m[0:+6, 0:+3])", "ph.dot",
       "ph.dot sums over the last side of a, 8, and the last but one of b, 6",
       "a is [M, K] and b is [K, N]"},
      {"t: ph.let = ph.dot(m[0:+4, 0:+8][None], m[0:+8, 0:+4])", "ph.dot",
       "ph.dot does not fit a of shape [1, 4, 8] and b of shape [8, 4]", "the same in both"},
      {"t: ph.let = ph.dot(m[0:+4, 0:+8], ph.cast(m[0:+8, 0:+4], ph.f16))", "ph.dot",
       "ph.dot multiplies tiles of one type, and these are f32 and f16", "ph.cast(t, ph.f32)"},
      {"t: ph.let = ph.dot(ph.cast(m[0:+4, 0:+8], ph.i32), m[0:+8, 0:+4])", "ph.cast",
       "ph.dot multiplies f16, bf16, f32, f64, i8 and u8, and this is an i32 tile of shape [4, 8]",
       "ph.cast(t, ph.f32)"},
      {"t: ph.let = ph.dot(m[0:+4, 0:+8], m[0:+8, 0:+4], precision=\"fast\")", "\"fast\"",
       "there is no precision \"fast\"", "\"tf32\" or \"f16\""},
      {"t: ph.let = ph.dot(m[0:+4, 0:+8], m[0:+8, 0:+4], precision=ph.f16)", "ph.f16",
       "precision is a string", "\"tf32\""},
      {"h: ph.let = ph.cast(m[0:+8, 0:+8], ph.f16)\nt: ph.let = ph.dot(h, h, precision=\"f16\")",
       "\"f16\"", "precision is about f32 operands, and these are f16", "leave it out"},
      {"t: ph.let = ph.dot(ph.full(ph.f32, a, 2048, 1), ph.full(ph.f32, a, 1, 1024))", "ph.dot",
       "a tile of 2097152 elements is too large", "loop over smaller ones"},
      {"t: ph.let = ph.dot(m[0:+8, 0:+8])", "ph.dot", "ph.dot needs an argument b",
       "precision=..."},
  };
  ExpectErrors(cases);
}

TEST(Errors, Atomics) {
  const Case cases[] = {
      {"ph.atomic_add(out, 1.0)", "out", "ph.atomic_add takes a part of a tensor first",
       "write ph.atomic_add(A[i:+LENGTH], ...)"},
      {"ph.atomic_add(out[0])", "ph.atomic_add", "ph.atomic_add needs an argument v",
       "write ph.atomic_add(A, v)"},
      {"ph.atomic_cas(out[0], 1.0)", "ph.atomic_cas", "ph.atomic_cas needs an argument new",
       "write ph.atomic_cas(A, expected, new)"},
      {"ph.atomic_and(out[0], 1.0)", "out[0]",
       "ph.atomic_and works on integers and bools, and out is a tensor of f32", "ph.atomic_cas"},
      {"ph.atomic_max(c[0], True)", "c[0]",
       "ph.atomic_max works on numbers, and c is a tensor of bool", "write ph.atomic_or"},
      {"ph.atomic_add(u[0:+4], x[0:+5])", "x[0:+5]", "", ""},
      {"ph.atomic_add(u[0], 300)", "300", "", ""},
      {"ph.atomic_add(x[0], 1.0) + 1.0", "ph.atomic_add", "this statement does nothing", "bind it"},
  };
  ExpectErrors(cases);
}

TEST(Errors, PairsAndRandomNumbers) {
  const Case cases[] = {
      {"t: ph.let = ph.join(x[0:+4], 1.0)", "1.0", "ph.join takes a tile", "ph.full"},
      {"t: ph.let = ph.join(m[0:+4, :], m[0:+3, :])", "ph.join",
       "ph.join puts tiles together along the last axis, and shapes [4, 8] and [3, 8] do not fit",
       "all sides but the last one are equal"},
      {"t: ph.let = ph.interleave(x[0:+4], x[0:+3])", "ph.interleave",
       "ph.interleave puts tiles together along the last axis, and shapes [4] and [3] do not fit",
       "both have one shape"},
      {"t: ph.let = ph.random_u32(a, n)", "a",
       "ph.random_u32 counts with integers, and this is an f32 scalar", "ph.iota"},
      {"t: ph.let = ph.random_u32(1, x[0:+4])", "x[0:+4]", "ph.random_u32 counts with integers",
       "ph.iota"},
  };
  ExpectErrors(cases);
}

TEST(Errors, WhatNumPyAndTritonWrite) {
  const Case cases[] = {
      {"t: ph.let = ph.arange(0, 4)", "ph.arange", "'ph.arange' is not in the language",
       "write ph.iota(LENGTH)"},
      {"out[0] = ph.program_id(0)", "ph.program_id", "", "write ph.ctx.block.x"},
      {"out[0] = ph.num_programs(0)", "ph.num_programs", "", "write ph.ctx.grid.x"},
      {"out[0] = ph.cast(n, ph.float32)", "ph.float32", "", "write ph.f32"},
      {"t: ph.let = x[0:+4].to(ph.f16)", "x[0:+4].to", "values have no methods such as .to()",
       "ph.cast(x, ph.f32)"},
      {"t: ph.let = ph.max(x[0:+4], 0.0)", "0.0",
       "an axis is an integer, and this is the constant 0.0",
       "of two values it is ph.maximum(a, b)"},
      {"t: ph.let = ph.min(x[0:+4], x[4:+4])", "x[4:+4]",
       "an axis is an integer, and this is an f32 tile", "ph.minimum(a, b)"},
      {"t: ph.let = ph.sum(x[0:+4], axis='1')", "'1'",
       "an axis is an integer, and this is the constant \"1\"", "write axis=0"},
      {"t: ph.let = x[0:+4.0]", "4.0",
       "the length of a slice is an integer, and this is the constant 4.0", "write an integer"},
      {"for i in ph.range(4, unroll='2'):\n    pass", "'2'",
       "unroll is an integer, and this is the constant", "write an integer"},
      {"v: ph.let = x[0:+4]\nt: ph.let = v > 0.0 & v < 1.0", "0.0 & v",
       "& works on integers and bools, not on floats",
       "parentheses around comparisons, (a > 0) & "},
      {"t: ph.let = ph.zeros((4,), ph.f32)", "(4,)", "the type comes first, and this is a tuple",
       "write ph.zeros(ph.f32, LENGTH)"},
      {"t: ph.let = ph.full((4, 8), 1.0, ph.f32)", "(4, 8)", "the type comes first",
       "write ph.full(ph.f32, 1.0, LENGTH)"},
      {"ph.atomic_add(out[0], x[0:+4])", "x[0:+4]",
       "the part of out is one element, and this is an f32 tile", "ph.sum(t)"},
      {"ph.atomic_xor(u[0], u[0:+4])", "u[0:+4]", "the part of u is one element",
       "name as many elements as the tile has"},
      {"t: ph.let = x[n:+4, None]", "None", "a tensor takes no new axis", "x[n:+4][:, None]"},
      {"t: ph.let = m[None, 0, n:+4]", "None", "a tensor takes no new axis", "m[0, n:+4][None, :]"},
  };
  ExpectErrors(cases);
}

// Inlining cannot make a kernel without bound.
TEST(Errors, SizeIsLimited) {
  std::string prelude = "@ph.fn\ndef f0(v):\n    return v + 1.0";
  for (int i = 1; i <= 30; ++i) {
    const std::string inner = "f" + std::to_string(i - 1);
    prelude += "\n@ph.fn\ndef f" + std::to_string(i) + "(v):\n    return " + inner + "(v) + " +
               inner + "(v)";
  }
  const absl::StatusOr<ir::Function> doubling =
      LowerKernel({.body = "out[0] = f30(x[0])", .prelude = prelude});
  EXPECT_THAT(doubling, testing::StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(
      absl::StrContains(doubling.status().message(), "too large once its functions are inlined"))
      << doubling.status();

  std::string sum;
  for (int i = 0; i < 30; ++i) sum += " + 1.0";
  std::string chain = "@ph.fn\ndef g0(v):\n    return v";
  for (int i = 1; i <= 40; ++i) {
    chain += "\n@ph.fn\ndef g" + std::to_string(i) + "(v):\n    return g" + std::to_string(i - 1) +
             "(v)" + sum;
  }
  const absl::StatusOr<ir::Function> deep =
      LowerKernel({.body = "out[0] = g40(x[0])", .prelude = chain});
  EXPECT_THAT(deep, testing::StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(absl::StrContains(deep.status().message(), "nested too deeply")) << deep.status();
}

// Messages are written in the file's own alias.
TEST(Errors, Alias) {
  const absl::StatusOr<ir::Function> function = LowerFile(
      "from phobos import lang as L\n"
      "@L.kernel\n"
      "def k(x: L.tensor[L.f32][N]):\n"
      "    x[0] = exp(x[0])\n");
  EXPECT_TRUE(absl::StrContains(function.status().message(), "write L.exp")) << function.status();
}

}  // namespace
}  // namespace phobos::compiler::sema
