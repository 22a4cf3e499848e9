// SPDX-License-Identifier: Apache-2.0
#include "compiler/manifest/condition_program.h"

#include <string>
#include <utility>
#include <variant>

#include "base/concat.h"

namespace phobos::compiler {
namespace {

using Op = v1::ConditionOp;

Op::Code CodeOf(ast::BinaryOp op) {
  switch (op) {
    case ast::BinaryOp::kAdd:
      return Op::ADD;
    case ast::BinaryOp::kSub:
      return Op::SUB;
    case ast::BinaryOp::kMul:
      return Op::MUL;
    case ast::BinaryOp::kDiv:
      return Op::DIV;
    case ast::BinaryOp::kFloorDiv:
      return Op::FLOOR_DIV;
    case ast::BinaryOp::kMod:
      return Op::MOD;
    case ast::BinaryOp::kAnd:
      return Op::AND;
    case ast::BinaryOp::kOr:
      return Op::OR;
    default:
      return Op::CODE_UNSPECIFIED;
  }
}

Op::Code CodeOf(ast::CompareOp op) {
  switch (op) {
    case ast::CompareOp::kEq:
      return Op::EQ;
    case ast::CompareOp::kNe:
      return Op::NE;
    case ast::CompareOp::kLt:
      return Op::LT;
    case ast::CompareOp::kLe:
      return Op::LE;
    case ast::CompareOp::kGt:
      return Op::GT;
    case ast::CompareOp::kGe:
      return Op::GE;
  }
  return Op::CODE_UNSPECIFIED;
}

class ProgramWriter {
 public:
  explicit ProgramWriter(const sema::Kernel& kernel) : kernel_(kernel) {}

  void Write(const ast::Expr& expr) {
    std::visit([this](const auto& node) { Of(node); }, expr.node);
  }
  std::vector<Op> Take() { return std::move(program_); }

 private:
  void Add(Op::Code code) { program_.emplace_back().set_code(code); }
  void PushInt(int64_t value) {
    Add(Op::PUSH_INT);
    program_.back().set_int_value(value);
  }
  void PushFloat(double value) {
    Add(Op::PUSH_FLOAT);
    program_.back().set_float_value(value);
  }
  void PushName(std::string name) {
    Add(Op::PUSH_NAME);
    program_.back().set_name(std::move(name));
  }

  void Of(const ast::IntLiteral& e) { PushInt(static_cast<int64_t>(e.value)); }
  void Of(const ast::FloatLiteral& e) { PushFloat(e.value); }
  void Of(const ast::BoolLiteral& e) { PushInt(e.value ? 1 : 0); }
  void Of(const ast::Name& e) {
    for (const sema::NamedConstant& constant : kernel_.constants) {
      if (constant.name != e.id) continue;
      if (const auto* number = std::get_if<int64_t>(&constant.value)) return PushInt(*number);
      if (const auto* number = std::get_if<double>(&constant.value)) return PushFloat(*number);
      if (const auto* flag = std::get_if<bool>(&constant.value)) return PushInt(*flag ? 1 : 0);
    }
    PushName(e.id);
  }
  void Of(const ast::LanguageName& e) { PushName(Concat("grid_", e.path.back())); }
  void Of(const ast::Unary& e) {
    Write(*e.operand);
    if (e.op == ast::UnaryOp::kNegate) Add(Op::NEG);
    if (e.op == ast::UnaryOp::kNot) Add(Op::NOT);
  }
  void Of(const ast::Binary& e) {
    if (e.op == ast::BinaryOp::kPow) return Power(e);
    Write(*e.left);
    Write(*e.right);
    Add(CodeOf(e.op));
  }
  void Power(const ast::Binary& e) {
    const uint64_t exponent = std::get<ast::IntLiteral>(e.right->node).value;
    if (exponent == 0) return PushInt(1);
    for (uint64_t i = 0; i < exponent; ++i) {
      Write(*e.left);
      if (i > 0) Add(Op::MUL);
    }
  }
  void Of(const ast::Compare& e) {
    for (size_t i = 0; i < e.ops.size(); ++i) {
      Write(*e.operands[i]);
      Write(*e.operands[i + 1]);
      Add(CodeOf(e.ops[i]));
      if (i > 0) Add(Op::AND);
    }
  }
  void Of(const ast::Conditional& e) {
    Write(*e.condition);
    Write(*e.then);
    Write(*e.otherwise);
    Add(Op::SELECT);
  }
  void Of(const ast::Call& e) {
    Write(*e.positional[0]);
    Write(*e.positional[1]);
    const std::string& function = std::get<ast::LanguageName>(e.callee->node).path[0];
    Add(function == "cdiv" ? Op::CDIV : function == "minimum" ? Op::MIN : Op::MAX);
  }
  // sema has refused what else a tree can hold.
  template <typename Other>
  void Of(const Other&) {
    Add(Op::CODE_UNSPECIFIED);
  }

  const sema::Kernel& kernel_;
  std::vector<Op> program_;
};

}  // namespace

std::vector<v1::ConditionOp> ConditionProgram(const sema::Kernel& kernel,
                                              const sema::Condition& condition) {
  ProgramWriter writer(kernel);
  writer.Write(*condition.expr);
  return writer.Take();
}

}  // namespace phobos::compiler
