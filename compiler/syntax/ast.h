// SPDX-License-Identifier: Apache-2.0
//
// The syntax tree of the kernels, functions and constants of one file, as written: no types, no
// settings, nothing folded. What the parser makes of the text and what sema reads. Not of the host
// program's part of the file: that is skipped. Plain values that own their children; immutable once
// parsed, any thread.
#ifndef PHOBOS_COMPILER_SYNTAX_AST_H_
#define PHOBOS_COMPILER_SYNTAX_AST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler::ast {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<const Expr>;
using Block = std::vector<Stmt>;

// ---- Expressions
// -------------------------------------------------------------------------------------------------

// Integer literals are exact up to 2^64 - 1; larger ones are a parse error.
struct IntLiteral {
  uint64_t value = 0;
};
struct FloatLiteral {
  double value = 0;
};
struct BoolLiteral {
  bool value = false;
};
struct StringLiteral {
  std::string value;
};
struct NoneLiteral {};  // only as a new axis in a subscript, or as an argument

// A bare name: a local, parameter, extent, constant or ph.fn.
struct Name {
  std::string id;
};

// A name of the language: `ph.exp` is path {"exp"}, `ph.ctx.block.x` is {"ctx", "block", "x"}. The
// alias is resolved by the parser, so sema never sees "ph".
struct LanguageName {
  std::vector<std::string> path;
};

// base.name where base is not the language's alias: `ph.finfo(ph.f32).max`.
struct Attribute {
  ExprPtr base;
  std::string name;
};

enum class UnaryOp { kNegate, kPlus, kNot, kInvert };

struct Unary {
  UnaryOp op;
  ExprPtr operand;
};

enum class BinaryOp {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kShiftLeft,
  kShiftRight,
  kBitAnd,
  kBitOr,
  kBitXor,
  kAnd,
  kOr,
};

// Python's precedence: a larger number binds tighter.
struct Precedence {
  static constexpr int kLoosest = 0;
  static constexpr int kOr = 1;
  static constexpr int kAnd = 2;
  static constexpr int kNot = 3;
  static constexpr int kComparison = 4;
  static constexpr int kBitOr = 5;
  static constexpr int kSign = 11;
  static constexpr int kPower = 12;
  static constexpr int kPrimary = 13;  // what may stand before '(' and '['
  static constexpr int kTightest = 14;
};

struct BinaryForm {
  BinaryOp op;
  std::string_view sign;
  int precedence;
};

// In the order of BinaryOp.
inline constexpr BinaryForm kBinaryForms[] = {
    {BinaryOp::kAdd, "+", 9},
    {BinaryOp::kSub, "-", 9},
    {BinaryOp::kMul, "*", 10},
    {BinaryOp::kDiv, "/", 10},
    {BinaryOp::kFloorDiv, "//", 10},
    {BinaryOp::kMod, "%", 10},
    {BinaryOp::kPow, "**", Precedence::kPower},
    {BinaryOp::kShiftLeft, "<<", 8},
    {BinaryOp::kShiftRight, ">>", 8},
    {BinaryOp::kBitAnd, "&", 7},
    {BinaryOp::kBitOr, "|", Precedence::kBitOr},
    {BinaryOp::kBitXor, "^", 6},
    {BinaryOp::kAnd, "and", Precedence::kAnd},
    {BinaryOp::kOr, "or", Precedence::kOr},
};
constexpr const BinaryForm& FormOf(BinaryOp op) { return kBinaryForms[static_cast<int>(op)]; }
static_assert(FormOf(BinaryOp::kOr).op == BinaryOp::kOr);
constexpr std::string_view Sign(BinaryOp op) { return FormOf(op).sign; }

struct Binary {
  BinaryOp op;
  ExprPtr left;
  ExprPtr right;
};

enum class CompareOp { kEq, kNe, kLt, kLe, kGt, kGe };

// In the order of CompareOp.
inline constexpr std::string_view kCompareSigns[] = {"==", "!=", "<", "<=", ">", ">="};
constexpr std::string_view Sign(CompareOp op) { return kCompareSigns[static_cast<int>(op)]; }

// a < b <= c has two ops and three operands.
struct Compare {
  std::vector<ExprPtr> operands;
  std::vector<CompareOp> ops;
};

// then if condition else otherwise
struct Conditional {
  ExprPtr condition;
  ExprPtr then;
  ExprPtr otherwise;
};

struct KeywordArgument {
  std::string name;
  Span name_span;
  ExprPtr value;  // null only for what Python alone evaluates: reference, rtol, atol, flush_l2 of
                  // @ph.kernel
};

struct Call {
  ExprPtr callee;  // a Name (ph.fn, range) or LanguageName or Attribute
  std::vector<ExprPtr> positional;
  std::vector<KeywordArgument> keyword;
};

// One subscript of A[...].
struct Subscript {
  enum class Kind {
    kIndex,        // [e]            first
    kSlice,        // [a:b], [:]     first and second, each may be null
    kLengthSlice,  // [a:+L]         first, second
    kNewAxis,      // [None]
  };
  Kind kind = Kind::kIndex;
  ExprPtr first;
  ExprPtr second;
  Span span;
};

struct Index {
  ExprPtr base;
  std::vector<Subscript> subscripts;
};

// (a, b, c), also without parentheses; `()` is empty.
struct Tuple {
  std::vector<ExprPtr> elements;
};

// [a, b, c]
struct List {
  std::vector<ExprPtr> elements;
};

struct Expr {
  std::variant<IntLiteral, FloatLiteral, BoolLiteral, StringLiteral, NoneLiteral, Name,
               LanguageName, Attribute, Unary, Binary, Compare, Conditional, Call, Index, Tuple,
               List>
      node;
  Span span;
};

// ---- Statements
// --------------------------------------------------------------------------------------------------

// x: ph.let = e, x: ph.var = e, x: ph.f32 = e, x: ph.tile[ph.f32][M, N] = e
struct Declare {
  std::string name;
  Span name_span;
  ExprPtr annotation;
  ExprPtr value;  // null for a declaration without one (sema refuses it)
};

// target = e (op absent), target op= e. target is a Name, an Index, or a Tuple of Names.
struct Assign {
  ExprPtr target;
  bool is_augmented = false;
  BinaryOp op = BinaryOp::kAdd;  // when is_augmented
  ExprPtr value;
};

struct ExprStmt {
  ExprPtr value;
};

// for name in iterable: iterable is a Call of ph.range or range.
struct For {
  std::string name;
  Span name_span;
  ExprPtr iterable;
  Block body;
};

struct While {
  ExprPtr condition;
  Block body;
};

// elif is an If alone in `otherwise`.
struct If {
  ExprPtr condition;
  Block then;
  Block otherwise;
};

struct Break {};
struct Continue {};
struct Pass {};
struct Return {
  ExprPtr value;  // may be null
};

struct Stmt {
  std::variant<Declare, Assign, ExprStmt, For, While, If, Break, Continue, Pass, Return> node;
  Span span;
};

// ---- The module
// --------------------------------------------------------------------------------------------------

// @ph.NAME(arguments), or @ph.NAME alone (is_call false).
struct Decorator {
  std::string name;
  Span span;
  bool is_call = false;
  std::vector<ExprPtr> positional;
  std::vector<KeywordArgument> keyword;
};

struct Parameter {
  std::string name;
  Span name_span;
  ExprPtr annotation;  // null when missing (allowed in ph.fn)
};

// A function under @ph.kernel or @ph.fn. Docstring and comments are gone. Every other function is
// skipped.
struct Function {
  std::string name;
  Span name_span;
  std::vector<Decorator> decorators;  // from the top
  std::vector<Parameter> parameters;
  Block body;
  bool is_kernel = false;
  Span span;
};

// A kernel or ph.fn that could not be read. It is in no other list.
struct BrokenFunction {
  std::string name;  // empty: not even that
  int32_t begin = 0;
  bool is_kernel = false;
  absl::Status error;  // Source::Error's
};

// NAME = literal (or an expression of literals and earlier constants) at module level, once. A name
// bound in any other way at module level is not here; sema then says why it is no constant.
struct ModuleConstant {
  std::string name;
  Span name_span;
  ExprPtr value;
};

// A name that module level binds, but not to a constant.
struct HostName {
  std::string name;
  Span span;
  std::string reason;  // "it is imported"
};

struct Module {
  // How the file spells the language: "ph", "phobos.lang". Messages use the first. Empty: it is not
  // imported.
  std::vector<std::string> aliases;
  std::vector<ModuleConstant> constants;  // in order
  std::vector<HostName> host_names;       // in order, each once
  std::vector<Function> functions;        // kernels and ph.fn, in order
  std::vector<BrokenFunction> broken;     // in order
  // Where @ph.kernel stands in a block, and so is not read; absent: begin and end are equal.
  Span nested_kernel;
  // The first `from phobos.lang import ...`, which gives the language no name; absent likewise.
  Span bare_import;
};

}  // namespace phobos::compiler::ast

#endif  // PHOBOS_COMPILER_SYNTAX_AST_H_
