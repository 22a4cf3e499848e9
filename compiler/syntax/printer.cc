// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/printer.h"

#include <charconv>
#include <cmath>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/concat.h"

namespace phobos::compiler::ast {
namespace {

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

std::string_view Sign(UnaryOp op) {
  switch (op) {
    case UnaryOp::kNegate:
      return "-";
    case UnaryOp::kPlus:
      return "+";
    case UnaryOp::kNot:
      return "not ";
    case UnaryOp::kInvert:
      return "~";
  }
  return "?";
}

class ExprPrinter {
 public:
  explicit ExprPrinter(bool all_parentheses) : all_parentheses_(all_parentheses) {}

  // The text of `expr` where something of this precedence may stand.
  std::string At(const Expr& expr, int minimum) const {
    return std::visit([&](const auto& node) { return Of(node, minimum); }, expr.node);
  }

 private:
  std::string Of(const IntLiteral& e, int minimum) const {
    return Number(Concat(e.value), minimum);
  }
  std::string Of(const FloatLiteral& e, int minimum) const {
    return Number(std::isinf(e.value) ? "1e999" : PrintFloat(e.value), minimum);
  }
  std::string Of(const BoolLiteral& e, int) const { return e.value ? "True" : "False"; }
  std::string Of(const StringLiteral& e, int) const { return Quote(e.value); }
  std::string Of(const NoneLiteral&, int) const { return "None"; }
  std::string Of(const Name& e, int) const { return e.id; }
  std::string Of(const LanguageName& e, int) const {
    std::string out = "ph";
    for (const std::string& part : e.path) Append(&out, ".", part);
    return out;
  }
  std::string Of(const Attribute& e, int) const {
    return Concat(At(*e.base, Precedence::kTightest), ".", e.name);
  }
  std::string Of(const Unary& e, int minimum) const {
    const int own = e.op == UnaryOp::kNot ? Precedence::kNot : Precedence::kSign;
    return Enclosed(Concat(Sign(e.op), At(*e.operand, own)), own, minimum);
  }
  std::string Of(const Binary& e, int minimum) const {
    const int own = FormOf(e.op).precedence;
    const bool is_power = e.op == BinaryOp::kPow;
    return Enclosed(Concat(At(*e.left, is_power ? Precedence::kPrimary : own), " ", Sign(e.op), " ",
                           At(*e.right, is_power ? Precedence::kSign : own + 1)),
                    own, minimum);
  }
  std::string Of(const Compare& e, int minimum) const {
    std::string out = At(*e.operands[0], Precedence::kComparison + 1);
    for (size_t i = 0; i < e.ops.size(); ++i) {
      Append(&out, " ", Sign(e.ops[i]), " ", At(*e.operands[i + 1], Precedence::kComparison + 1));
    }
    return Enclosed(out, Precedence::kComparison, minimum);
  }
  std::string Of(const Conditional& e, int minimum) const {
    return Enclosed(Concat(At(*e.then, 1), " if ", At(*e.condition, 1), " else ",
                           At(*e.otherwise, Precedence::kLoosest)),
                    Precedence::kLoosest, minimum);
  }
  std::string Of(const Call& e, int) const {
    std::string arguments = Joined(e.positional);
    for (const KeywordArgument& argument : e.keyword) {
      Append(&arguments, arguments.empty() ? "" : ", ", argument.name, "=",
             argument.value == nullptr ? "" : At(*argument.value, Precedence::kLoosest));
    }
    return Concat(At(*e.callee, Precedence::kPrimary), "(", arguments, ")");
  }
  std::string Of(const Index& e, int) const {
    std::string subscripts;
    for (const Subscript& subscript : e.subscripts)
      Append(&subscripts, subscripts.empty() ? "" : ", ", One(subscript));
    return Concat(At(*e.base, Precedence::kPrimary), "[", subscripts, "]");
  }
  std::string Of(const Tuple& e, int) const {
    return Concat("(", Joined(e.elements), e.elements.size() == 1 ? ",)" : ")");
  }
  std::string Of(const List& e, int) const { return Concat("[", Joined(e.elements), "]"); }

  std::string One(const Subscript& subscript) const {
    const std::string first =
        subscript.first == nullptr ? "" : At(*subscript.first, Precedence::kLoosest);
    std::string second =
        subscript.second == nullptr ? "" : At(*subscript.second, Precedence::kLoosest);
    if (subscript.kind == Subscript::Kind::kIndex) return first;
    if (subscript.kind == Subscript::Kind::kNewAxis) return "None";
    if (subscript.kind == Subscript::Kind::kLengthSlice) return Concat(first, ":+", second);
    // A bare '+' after the colon would make it a length.
    if (!second.empty() && second[0] == '+') second = Concat("(", second, ")");
    return Concat(first, ":", second);
  }
  std::string Joined(const std::vector<ExprPtr>& list) const {
    std::string out;
    for (const ExprPtr& element : list)
      Append(&out, out.empty() ? "" : ", ", At(*element, Precedence::kLoosest));
    return out;
  }
  std::string Enclosed(const std::string& text, int own, int minimum) const {
    return all_parentheses_ || own < minimum ? Concat("(", text, ")") : text;
  }
  // 1.real would be read as a float.
  std::string Number(const std::string& text, int minimum) const {
    return minimum == Precedence::kTightest ? Concat("(", text, ")") : text;
  }

  const bool all_parentheses_;
};

std::string PrintStatement(const Stmt& statement, int depth) {
  const std::string indent(2 * depth, ' ');
  const auto line = [&](const auto&... pieces) { return Concat(indent, pieces..., "\n"); };
  return std::visit(
      Overloaded{
          [&](const Declare& s) {
            const std::string value = s.value == nullptr ? "" : Concat(" = ", Print(*s.value));
            return line(s.name, ": ", Print(*s.annotation), value);
          },
          [&](const Assign& s) {
            return line(Print(*s.target), " ", s.is_augmented ? Sign(s.op) : "", "= ",
                        Print(*s.value));
          },
          [&](const ExprStmt& s) { return line(Print(*s.value)); },
          [&](const For& s) {
            return line("for ", s.name, " in ", Print(*s.iterable), ":") + Print(s.body, depth + 1);
          },
          [&](const While& s) {
            return line("while ", Print(*s.condition), ":") + Print(s.body, depth + 1);
          },
          [&](const If& s) {
            std::string out = line("if ", Print(*s.condition), ":") + Print(s.then, depth + 1);
            if (!s.otherwise.empty()) out += line("else:") + Print(s.otherwise, depth + 1);
            return out;
          },
          [&](const Break&) { return line("break"); },
          [&](const Continue&) { return line("continue"); },
          [&](const Pass&) { return line("pass"); },
          [&](const Return& s) {
            return s.value == nullptr ? line("return") : line("return ", Print(*s.value));
          },
      },
      statement.node);
}

}  // namespace

std::string Quote(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += absl::StrFormat("\\x%02x", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

std::string PrintFloat(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string Print(const Expr& expr) { return ExprPrinter(true).At(expr, Precedence::kLoosest); }

std::string PrintShort(const Expr& expr) {
  return ExprPrinter(false).At(expr, Precedence::kLoosest);
}

std::string Print(const Block& block, int depth) {
  std::string out;
  for (const Stmt& statement : block) out += PrintStatement(statement, depth);
  return out;
}

}  // namespace phobos::compiler::ast
