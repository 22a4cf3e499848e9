// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/printer.h"

#include <charconv>
#include <cmath>
#include <variant>

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

std::string PrintList(const std::vector<ExprPtr>& list) {
  std::string out;
  for (const ExprPtr& element : list) Append(&out, out.empty() ? "" : ", ", Print(*element));
  return out;
}

std::string PrintSubscript(const Subscript& subscript) {
  const std::string first = subscript.first == nullptr ? "" : Print(*subscript.first);
  const std::string second = subscript.second == nullptr ? "" : Print(*subscript.second);
  switch (subscript.kind) {
    case Subscript::Kind::kIndex:
      return first;
    case Subscript::Kind::kSlice:
      return Concat(first, ":", second);
    case Subscript::Kind::kLengthSlice:
      return Concat(first, ":+", second);
    case Subscript::Kind::kNewAxis:
      return "None";
  }
  return "";
}

std::string PrintNode(const Compare& compare) {
  std::string out = Concat("(", Print(*compare.operands[0]));
  for (size_t i = 0; i < compare.ops.size(); ++i) {
    Append(&out, " ", Sign(compare.ops[i]), " ", Print(*compare.operands[i + 1]));
  }
  return out + ")";
}

std::string PrintNode(const Call& call) {
  std::string arguments = PrintList(call.positional);
  for (const KeywordArgument& argument : call.keyword) {
    Append(&arguments, arguments.empty() ? "" : ", ", argument.name, "=",
           argument.value == nullptr ? "" : Print(*argument.value));
  }
  return Concat(Print(*call.callee), "(", arguments, ")");
}

std::string PrintNode(const Index& index) {
  std::string subscripts;
  for (const Subscript& subscript : index.subscripts) {
    Append(&subscripts, subscripts.empty() ? "" : ", ", PrintSubscript(subscript));
  }
  return Concat(Print(*index.base), "[", subscripts, "]");
}

std::string PrintNode(const LanguageName& name) {
  std::string out = "ph";
  for (const std::string& part : name.path) Append(&out, ".", part);
  return out;
}

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

std::string_view Sign(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSub:
      return "-";
    case BinaryOp::kMul:
      return "*";
    case BinaryOp::kDiv:
      return "/";
    case BinaryOp::kFloorDiv:
      return "//";
    case BinaryOp::kMod:
      return "%";
    case BinaryOp::kPow:
      return "**";
    case BinaryOp::kShiftLeft:
      return "<<";
    case BinaryOp::kShiftRight:
      return ">>";
    case BinaryOp::kBitAnd:
      return "&";
    case BinaryOp::kBitOr:
      return "|";
    case BinaryOp::kBitXor:
      return "^";
    case BinaryOp::kAnd:
      return "and";
    case BinaryOp::kOr:
      return "or";
  }
  return "?";
}

std::string_view Sign(CompareOp op) {
  switch (op) {
    case CompareOp::kEq:
      return "==";
    case CompareOp::kNe:
      return "!=";
    case CompareOp::kLt:
      return "<";
    case CompareOp::kLe:
      return "<=";
    case CompareOp::kGt:
      return ">";
    case CompareOp::kGe:
      return ">=";
  }
  return "?";
}

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

std::string Print(const Expr& expr) {
  return std::visit(
      Overloaded{
          [](const IntLiteral& e) { return Concat(e.value); },
          [](const FloatLiteral& e) { return PrintFloat(e.value); },
          [](const BoolLiteral& e) { return std::string(e.value ? "True" : "False"); },
          [](const StringLiteral& e) { return Quote(e.value); },
          [](const NoneLiteral&) { return std::string("None"); },
          [](const Name& e) { return e.id; },
          [](const Attribute& e) { return Concat(Print(*e.base), ".", e.name); },
          [](const Unary& e) { return Concat("(", Sign(e.op), Print(*e.operand), ")"); },
          [](const Binary& e) {
            return Concat("(", Print(*e.left), " ", Sign(e.op), " ", Print(*e.right), ")");
          },
          [](const Conditional& e) {
            return Concat("(", Print(*e.then), " if ", Print(*e.condition), " else ",
                          Print(*e.otherwise), ")");
          },
          [](const Tuple& e) {
            return Concat("(", PrintList(e.elements), e.elements.size() == 1 ? ",)" : ")");
          },
          [](const List& e) { return Concat("[", PrintList(e.elements), "]"); },
          [](const auto& e) { return PrintNode(e); },
      },
      expr.node);
}

std::string Print(const Block& block, int depth) {
  std::string out;
  for (const Stmt& statement : block) out += PrintStatement(statement, depth);
  return out;
}

}  // namespace phobos::compiler::ast
