// SPDX-License-Identifier: Apache-2.0
//
// Calls, and the inlining of ph.fn.
#include <algorithm>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/language.h"
#include "compiler/sema/lowering/checker.h"

namespace phobos::compiler::sema {

absl::StatusOr<Value> Checker::EvalCall(const ast::Call& call, Span span) {
  if (const auto* name = std::get_if<ast::LanguageName>(&call.callee->node)) {
    return CallBuiltin(*name, call, span);
  }
  if (const auto* attribute = std::get_if<ast::Attribute>(&call.callee->node)) {
    std::string instead =
        FindBuiltin(attribute->name) != nullptr ? attribute->name + "(x)" : "exp(x)";
    if (attribute->name == "astype" || attribute->name == "to") instead = "cast(x, ph.f32)";
    if (attribute->name == "view") instead = "bitcast(x, ph.i32)";
    return Error(call.callee->span,
                 Concat("values have no methods such as .", attribute->name, "()"),
                 Concat("call a function: ph.", instead));
  }
  const ast::Name* name = std::get_if<ast::Name>(&call.callee->node);
  if (name == nullptr) {
    return Error(call.callee->span, "only functions are called", "write ph.exp(x), or f(x)");
  }
  if (scopes_.Find(name->id) == nullptr) {
    if (const ast::Function* function = FindFunction(name->id)) {
      return CallFunction(*function, call, span);
    }
    if (name->id == "range") {
      return Error(span, "range stands only in a for", "write for i in ph.range(n):");
    }
  }
  ASSIGN_OR_RETURN(Value value, EvalName(*name, call.callee->span));
  return Error(call.callee->span,
               Concat(name->id, " is ", Describe(value, kernel_.params), ", and no function"),
               "only ph.fn functions of this file and the functions of the language are called");
}

absl::StatusOr<std::vector<Operand>> Checker::FunctionArguments(const ast::Function& function,
                                                                const ast::Call& call, Span span) {
  const std::string usage = Concat(
      function.name, " is defined on line ", source_.Line(function.name_span.begin), " with ",
      function.parameters.size(), " parameter", function.parameters.size() == 1 ? "" : "s");
  std::vector<const ast::Expr*> bound(function.parameters.size(), nullptr);
  if (call.positional.size() > bound.size()) {
    return Error(span, Concat("too many arguments for ", function.name), usage);
  }
  for (size_t i = 0; i < call.positional.size(); ++i) bound[i] = call.positional[i].get();
  for (const ast::KeywordArgument& argument : call.keyword) {
    size_t i = 0;
    while (i < bound.size() && function.parameters[i].name != argument.name) ++i;
    if (i == bound.size()) {
      return Error(argument.name_span, Concat(function.name, " has no parameter ", argument.name),
                   usage);
    }
    if (bound[i] != nullptr) {
      return Error(argument.name_span, Concat(argument.name, " is given twice"), usage);
    }
    bound[i] = argument.value.get();
  }
  std::vector<Operand> operands;
  for (size_t i = 0; i < bound.size(); ++i) {
    if (bound[i] == nullptr) {
      return Error(span, Concat(function.name, " needs an argument ", function.parameters[i].name),
                   usage);
    }
    ASSIGN_OR_RETURN(Operand operand, EvalOperand(*bound[i]));
    const Value::Kind kind = operand.value.kind;
    if (kind == Value::Kind::kNone || kind == Value::Kind::kTuple) {
      return Error(operand.span,
                   Concat("an argument cannot be ", Describe(operand.value, kernel_.params)),
                   "a ph.fn takes tiles, scalars, tensors and types");
    }
    operands.push_back(std::move(operand));
  }
  return operands;
}

// An annotation is optional. With one, a number is converted to it as a store converts, and a
// tensor must be of its type and rank.
absl::StatusOr<Value> Checker::ConvertArgument(const ast::Parameter& parameter,
                                               const Operand& argument) {
  if (parameter.annotation == nullptr) return argument.value;
  const ast::Index* extents = std::get_if<ast::Index>(&parameter.annotation->node);
  const ast::Index* typed =
      extents != nullptr ? std::get_if<ast::Index>(&extents->base->node) : nullptr;
  const auto* head =
      typed != nullptr ? std::get_if<ast::LanguageName>(&typed->base->node) : nullptr;
  if (head == nullptr || head->path != std::vector<std::string>{"tensor"}) {
    ASSIGN_OR_RETURN(ir::Type type, AnnotatedType(*parameter.annotation));
    return ToTarget(argument, type, Concat("the parameter ", parameter.name));
  }
  if (typed->subscripts.size() != 1 || typed->subscripts[0].first == nullptr) {
    return Error(parameter.annotation->span, "this is no type of a tensor",
                 "write ph.tensor[ph.f32][N]");
  }
  ASSIGN_OR_RETURN(ir::DType dtype, EvalDType(*typed->subscripts[0].first));
  if (argument.value.kind != Value::Kind::kTensor) {
    return Error(argument.span,
                 Concat("the parameter ", parameter.name, " is a tensor, and this is ",
                        Describe(argument.value, kernel_.params)),
                 "give the tensor itself, without subscripts");
  }
  const ir::Param& tensor = kernel_.params[argument.value.param];
  if (tensor.dtype != dtype || tensor.dims.size() != extents->subscripts.size()) {
    return Error(argument.span,
                 Concat(tensor.name, " is a tensor of ", ir::Name(tensor.dtype), " of rank ",
                        tensor.dims.size(), ", and the parameter ", parameter.name, " of ",
                        ir::Name(dtype), " of rank ", extents->subscripts.size()),
                 "give a tensor of that type, or leave the annotation out");
  }
  return argument.value;
}

absl::Status Checker::BindArgument(const ast::Parameter& parameter, const Operand& argument) {
  RETURN_IF_ERROR(CheckNewName(parameter.name, parameter.name_span));
  ASSIGN_OR_RETURN(Value value, ConvertArgument(parameter, argument));
  Binding binding;
  binding.name = parameter.name;
  binding.kind = Binding::Kind::kArgument;
  binding.value = std::move(value);
  binding.span = parameter.name_span;
  scopes_.Add(std::move(binding));
  return absl::OkStatus();
}

// AnalyzeModule has refused recursion and calls of kernels.
absl::StatusOr<Value> Checker::CallFunction(const ast::Function& function, const ast::Call& call,
                                            Span span) {
  ASSIGN_OR_RETURN(std::vector<Operand> arguments, FunctionArguments(function, call, span));
  calls_.push_back({&function, span, loop_depth_});
  scopes_.EnterFunction();
  loop_depth_ = 0;
  absl::Status bound = absl::OkStatus();
  for (size_t i = 0; i < arguments.size() && bound.ok(); ++i) {
    bound = BindArgument(function.parameters[i], arguments[i]);
  }
  absl::StatusOr<Value> result = bound.ok() ? InlineBody(function) : bound;
  scopes_.LeaveFunction();
  loop_depth_ = calls_.back().loop_depth;
  calls_.pop_back();
  return result;
}

absl::StatusOr<Value> Checker::InlineBody(const ast::Function& function) {
  const ast::Block& body = function.body;
  if (body.empty()) return Value();
  const ast::Return* last = std::get_if<ast::Return>(&body.back().node);
  const size_t count = last != nullptr ? body.size() - 1 : body.size();
  RETURN_IF_ERROR(CheckStatements(body.data(), body.data() + count));
  if (last == nullptr || last->value == nullptr) return Value();
  SetPlace(body.back().span);
  return Eval(*last->value);
}

}  // namespace phobos::compiler::sema
