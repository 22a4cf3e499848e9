// SPDX-License-Identifier: Apache-2.0
//
// Statements.
#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/ir/shape.h"
#include "compiler/sema/language.h"
#include "compiler/sema/lowering/checker.h"

namespace phobos::compiler::sema {
namespace {

using ir::DType;
using ir::Opcode;

// The one element of ph.NAME, or empty.
std::string_view SingleLanguageName(const ast::Expr& expr) {
  const auto* name = std::get_if<ast::LanguageName>(&expr.node);
  return name != nullptr && name->path.size() == 1 ? std::string_view(name->path[0])
                                                   : std::string_view();
}

}  // namespace

absl::Status Checker::CheckBlock(const ast::Block& block) {
  scopes_.EnterBlock();
  ++block_depth_;
  absl::Status status = CheckStatements(block.data(), block.data() + block.size());
  --block_depth_;
  scopes_.LeaveBlock();
  return status;
}

absl::Status Checker::CheckStatements(const ast::Stmt* begin, const ast::Stmt* end) {
  for (const ast::Stmt* stmt = begin; stmt != end; ++stmt) {
    RETURN_IF_ERROR(CheckStatement(*stmt));
    if (!terminated_ || stmt + 1 == end) continue;
    // Never reached, so it is only checked.
    emitter_.BeginRegion();
    terminated_ = false;
    absl::Status status = CheckStatements(stmt + 1, end);
    emitter_.EndRegion();
    terminated_ = true;
    return status;
  }
  return absl::OkStatus();
}

absl::Status Checker::CheckStatement(const ast::Stmt& stmt) {
  absl::Status status = Enter(stmt.span);
  SetPlace(stmt.span);
  if (status.ok()) status = CheckStatementNode(stmt);
  Leave();
  return status;
}

absl::Status Checker::CheckStatementNode(const ast::Stmt& stmt) {
  const auto& node = stmt.node;
  if (const auto* n = std::get_if<ast::Declare>(&node)) return CheckDeclare(*n);
  if (const auto* n = std::get_if<ast::Assign>(&node)) return CheckAssign(*n);
  if (const auto* n = std::get_if<ast::ExprStmt>(&node)) return CheckExprStmt(*n, stmt.span);
  if (const auto* n = std::get_if<ast::For>(&node)) return CheckFor(*n);
  if (const auto* n = std::get_if<ast::While>(&node)) return CheckWhile(*n);
  if (const auto* n = std::get_if<ast::If>(&node)) return CheckIf(*n);
  if (const auto* n = std::get_if<ast::Return>(&node)) return CheckReturn(*n, stmt.span);
  if (std::holds_alternative<ast::Break>(node)) {
    return CheckLoopExit(Opcode::kBreak, "break", stmt.span);
  }
  if (std::holds_alternative<ast::Continue>(node)) {
    return CheckLoopExit(Opcode::kContinue, "continue", stmt.span);
  }
  return absl::OkStatus();  // pass
}

absl::Status Checker::CheckDeclare(const ast::Declare& declare) {
  if (declare.value == nullptr) {
    return Error(declare.name_span, Concat("'", declare.name, "' is declared without a value"),
                 Concat("give it one: `", declare.name, ": ph.f32 = 0.0`"));
  }
  const std::string_view annotation = SingleLanguageName(*declare.annotation);
  if (annotation != "let" && annotation != "var") {
    ASSIGN_OR_RETURN(ir::Type type, AnnotatedType(*declare.annotation));
    return DeclareTyped(declare, type);
  }
  ASSIGN_OR_RETURN(Operand operand, EvalOperand(*declare.value));
  RETURN_IF_ERROR(CheckNewName(declare.name, declare.name_span));
  ASSIGN_OR_RETURN(Value value, Settle(operand));
  Binding binding;
  binding.name = declare.name;
  binding.span = declare.name_span;
  if (annotation == "let") {
    binding.value = std::move(value);
  } else {
    RETURN_IF_ERROR(CheckNumber({value, operand.span}));
    binding.kind = Binding::Kind::kVariable;
    binding.var = emitter_.Declare(declare.name, value);
  }
  scopes_.Add(std::move(binding));
  return absl::OkStatus();
}

absl::Status Checker::DeclareTyped(const ast::Declare& declare, const ir::Type& type) {
  ASSIGN_OR_RETURN(Operand operand, EvalOperand(*declare.value));
  RETURN_IF_ERROR(CheckNewName(declare.name, declare.name_span));
  ASSIGN_OR_RETURN(Value value, ToTarget(operand, type, declare.name));
  Binding binding;
  binding.name = declare.name;
  binding.span = declare.name_span;
  binding.kind = Binding::Kind::kVariable;
  binding.var = emitter_.Declare(declare.name, value);
  scopes_.Add(std::move(binding));
  return absl::OkStatus();
}

absl::StatusOr<ir::Type> Checker::AnnotatedType(const ast::Expr& annotation) {
  const std::string_view name = SingleLanguageName(annotation);
  if (std::optional<DType> dtype = ir::DTypeNamed(name)) return ir::Type{*dtype, {}};
  if (const auto* shape = std::get_if<ast::Index>(&annotation.node)) {
    return TileType(*shape, annotation.span);
  }
  if (const auto* language = std::get_if<ast::LanguageName>(&annotation.node)) {
    if (language->path.size() == 1 && FindBuiltin(language->path[0]) == nullptr) {
      return UnknownLanguageName(*language, annotation.span);
    }
  }
  return Error(annotation.span, "this is no type",
               "write ph.let, ph.var, a scalar type such as ph.f32, or ph.tile[ph.f32][LENGTH]");
}

absl::StatusOr<ir::Type> Checker::TileType(const ast::Index& shape, Span span) {
  const auto* typed = std::get_if<ast::Index>(&shape.base->node);
  const bool is_tile = typed != nullptr && SingleLanguageName(*typed->base) == "tile" &&
                       typed->subscripts.size() == 1 &&
                       typed->subscripts[0].kind == ast::Subscript::Kind::kIndex;
  if (!is_tile) {
    return Error(span, "this is no type",
                 "write a scalar type such as ph.f32, or ph.tile[ph.f32][LENGTH]");
  }
  ASSIGN_OR_RETURN(DType dtype, EvalDType(*typed->subscripts[0].first));
  std::vector<Operand> sides;
  for (const ast::Subscript& side : shape.subscripts) {
    if (side.kind != ast::Subscript::Kind::kIndex) {
      return Error(side.span, "a tile's side is a number", "write ph.tile[ph.f32][LENGTH]");
    }
    ASSIGN_OR_RETURN(Operand operand, EvalOperand(*side.first));
    sides.push_back(std::move(operand));
  }
  ASSIGN_OR_RETURN(ir::Shape lengths, Sides(sides, span));
  return ir::Type{dtype, std::move(lengths)};
}

absl::Status Checker::CheckAssign(const ast::Assign& assign) {
  const ast::Expr& target = *assign.target;
  if (const auto* name = std::get_if<ast::Name>(&target.node)) {
    return AssignName(*name, assign, target.span);
  }
  if (const auto* index = std::get_if<ast::Index>(&target.node)) {
    return AssignElement(*index, assign, target.span);
  }
  const auto* tuple = std::get_if<ast::Tuple>(&target.node);
  if (tuple == nullptr || assign.is_augmented) {
    return Error(target.span, "this cannot be assigned to",
                 "assign to a ph.var, to a part of a tensor, or to names: a, b = f(x)");
  }
  ASSIGN_OR_RETURN(Operand value, EvalOperand(*assign.value));
  return AssignTuple(*tuple, value);
}

absl::Status Checker::NotAssignable(const std::string& name, Span span) const {
  const Binding* binding = scopes_.Find(name);
  if (binding != nullptr) {
    switch (binding->kind) {
      case Binding::Kind::kLet:
        return Error(span,
                     Concat("'", name, "' is bound once, by ph.let on line ",
                            source_.Line(binding->span.begin)),
                     Concat("declare it `", name, ": ph.var = ...` to change it"));
      case Binding::Kind::kLoopIndex:
        return Error(span, Concat("'", name, "' is the index of a loop, which is fixed inside it"),
                     "use a variable of your own, or a while loop");
      default:
        return Error(span, Concat("'", name, "' is a parameter, and parameters do not change"),
                     Concat("copy it: `value: ph.var = ", name, "`"));
    }
  }
  std::string kind;
  if (!in_function()) {
    for (const ir::Param& param : kernel_.params) {
      if (param.name != name) continue;
      if (param.is_tensor) {
        return Error(span, Concat("'", name, "' is a tensor: assign to a part of it"),
                     Concat("write ", name, "[i:+LENGTH] = ..."));
      }
      return Error(span, Concat("'", name, "' is a parameter, and parameters do not change"),
                   Concat("copy it: `value: ph.var = ", name, "`"));
    }
    for (const ir::Extent& extent : kernel_.extents) {
      if (extent.name == name) kind = "an extent";
    }
    for (const TunedConstant& constant : kernel_.space) {
      if (constant.name == name) kind = "an autotuned constant";
    }
  }
  for (const ast::ModuleConstant& constant : module_.constants) {
    if (constant.name == name) kind = "a module constant";
  }
  if (FindFunction(name) != nullptr) kind = "a function";
  if (!kind.empty()) {
    return Error(span, Concat("'", name, "' is ", kind, ", which does not change"),
                 "use another name");
  }
  return Error(
      span, Concat("'", name, "' is not declared here"),
      Concat("declare it where it begins: `", name, ": ph.let = ...`, or ph.var if it changes"));
}

absl::Status Checker::AssignName(const ast::Name& name, const ast::Assign& assign, Span span) {
  const Binding* binding = scopes_.Find(name.id);
  if (binding == nullptr || binding->kind != Binding::Kind::kVariable) {
    return NotAssignable(name.id, span);
  }
  std::optional<Value> present;
  if (assign.is_augmented) present = emitter_.Read(binding->var);
  ASSIGN_OR_RETURN(Operand value, EvalNumber(*assign.value));
  if (present.has_value()) {
    const Span whole{span.begin, assign.value->span.end};
    ASSIGN_OR_RETURN(Value updated, Binary(assign.op, {*present, span}, value, whole));
    value = {std::move(updated), whole};
  }
  return AssignToBinding(name.id, value, span);
}

absl::Status Checker::AssignToBinding(const std::string& name, const Operand& value, Span span) {
  const Binding* binding = scopes_.Find(name);
  if (binding == nullptr || binding->kind != Binding::Kind::kVariable) {
    return NotAssignable(name, span);
  }
  const ir::Type type = emitter_.function().vars[binding->var].type;
  ASSIGN_OR_RETURN(Value converted, ToTarget(value, type, name));
  emitter_.Write(binding->var, converted);
  return absl::OkStatus();
}

// Python gives the names of `a, b = f(x)` no place for an annotation: those not bound yet are bound
// as by ph.let.
absl::Status Checker::AssignTuple(const ast::Tuple& target, const Operand& value) {
  if (value.value.kind != Value::Kind::kTuple ||
      value.value.elements.size() != target.elements.size()) {
    return Error(value.span,
                 Concat(target.elements.size(), " names, and this is ",
                        Describe(value.value, kernel_.params)),
                 "write as many names as the ph.fn returns values");
  }
  for (size_t i = 0; i < target.elements.size(); ++i) {
    const ast::Expr& element = *target.elements[i];
    const ast::Name* name = std::get_if<ast::Name>(&element.node);
    if (name == nullptr) {
      return Error(element.span, "only names stand on the left of several values",
                   "bind the values to names first");
    }
    const Operand part{value.value.elements[i], value.span};
    if (scopes_.Find(name->id) != nullptr) {
      RETURN_IF_ERROR(AssignToBinding(name->id, part, element.span));
      continue;
    }
    RETURN_IF_ERROR(CheckNewName(name->id, element.span));
    Binding binding;
    binding.name = name->id;
    binding.span = element.span;
    ASSIGN_OR_RETURN(binding.value, Settle(part));
    scopes_.Add(std::move(binding));
  }
  return absl::OkStatus();
}

absl::Status Checker::AssignElement(const ast::Index& index, const ast::Assign& assign, Span span) {
  // Python's order: of `=` the value comes first, of `op=` the target.
  std::optional<Operand> value;
  if (!assign.is_augmented) {
    ASSIGN_OR_RETURN(value, EvalNumber(*assign.value));
  }
  ASSIGN_OR_RETURN(Operand base, EvalOperand(*index.base));
  if (base.value.kind != Value::Kind::kTensor) {
    RETURN_IF_ERROR(CheckNumber(base));
    return Error(span,
                 Concat("this is ", Describe(base.value, kernel_.params),
                        ", whose elements cannot be assigned"),
                 "make a new tile with ph.where, or assign to a part of a tensor");
  }
  ASSIGN_OR_RETURN(Access access, CheckAccess(index, base, span));
  if (assign.is_augmented) {
    const Operand present{EmitLoad(access, nullptr, nullptr), span};
    ASSIGN_OR_RETURN(Operand change, EvalNumber(*assign.value));
    const Span whole{span.begin, assign.value->span.end};
    ASSIGN_OR_RETURN(Value updated, Binary(assign.op, present, change, whole));
    value = Operand{std::move(updated), whole};
  }
  const ir::Type type{kernel_.params[access.param].dtype, access.shape};
  ASSIGN_OR_RETURN(Value converted, ToTarget(*value, type, TargetText(access)));
  SetPlace(span);
  emitter_.Store(access.param, access.subscripts, converted, nullptr);
  return absl::OkStatus();
}

absl::Status Checker::CheckExprStmt(const ast::ExprStmt& stmt, Span span) {
  const ast::Call* call = std::get_if<ast::Call>(&stmt.value->node);
  const Builtin* builtin =
      call != nullptr ? FindBuiltin(SingleLanguageName(*call->callee)) : nullptr;
  if (builtin != nullptr && builtin->kind == Builtin::Kind::kAtomic) {
    ASSIGN_OR_RETURN(const std::vector<const ast::Expr*> arguments,
                     BindArguments(*builtin, *call, span));
    return EvalAtomic(*builtin, arguments, span, /*has_result=*/false).status();
  }
  ASSIGN_OR_RETURN(Value value, Eval(*stmt.value));
  const bool is_fn = call != nullptr && std::holds_alternative<ast::Name>(call->callee->node);
  if (call != nullptr && (is_fn || value.kind == Value::Kind::kNone)) return absl::OkStatus();
  return Error(span, "this statement does nothing with its value", "bind it: `name: ph.let = ...`");
}

absl::StatusOr<ir::Block> Checker::CheckRegion(const ast::Block& block, bool* terminated) {
  const bool outer = terminated_;
  terminated_ = false;
  emitter_.BeginRegion();
  absl::Status status = CheckBlock(block);
  ir::Block region = emitter_.EndRegion();
  *terminated = terminated_;
  terminated_ = outer;
  RETURN_IF_ERROR(status);
  return region;
}

absl::Status Checker::CheckFor(const ast::For& loop) {
  const ast::Call* call = std::get_if<ast::Call>(&loop.iterable->node);
  const ast::Name* plain = call != nullptr ? std::get_if<ast::Name>(&call->callee->node) : nullptr;
  const bool is_range =
      call != nullptr && ((plain != nullptr && plain->id == "range" &&
                           scopes_.Find("range") == nullptr && FindFunction("range") == nullptr) ||
                          SingleLanguageName(*call->callee) == "range");
  if (!is_range) {
    return Error(loop.iterable->span, "a for loops over a range of integers",
                 "write for i in ph.range(n):");
  }
  Range range;
  RETURN_IF_ERROR(CheckRange(*call, loop.iterable->span, &range));
  RETURN_IF_ERROR(CheckNewName(loop.name, loop.name_span));
  Binding binding;
  binding.name = loop.name;
  binding.kind = Binding::Kind::kLoopIndex;
  binding.var = emitter_.NewLoop();
  binding.value = range.place;
  binding.span = loop.name_span;
  const int32_t id = binding.var;
  scopes_.EnterBlock();
  scopes_.Add(std::move(binding));
  ++loop_depth_;
  bool terminated = false;
  absl::StatusOr<ir::Block> body = CheckRegion(loop.body, &terminated);
  --loop_depth_;
  scopes_.LeaveBlock();
  RETURN_IF_ERROR(body.status());
  SetPlace(loop.name_span);
  emitter_.For(id, range.lo, range.hi, range.step, range.unroll, range.stages, *std::move(body));
  return absl::OkStatus();
}

absl::Status Checker::CheckWhile(const ast::While& loop) {
  emitter_.BeginRegion();
  absl::StatusOr<Operand> condition = EvalNumber(*loop.condition);
  absl::StatusOr<Value> truth =
      condition.ok() ? EmitTruth(*condition) : absl::StatusOr<Value>(condition.status());
  if (truth.ok()) emitter_.Yield(*truth);
  ir::Block test = emitter_.EndRegion();
  RETURN_IF_ERROR(truth.status());
  ++loop_depth_;
  bool terminated = false;
  absl::StatusOr<ir::Block> body = CheckRegion(loop.body, &terminated);
  --loop_depth_;
  RETURN_IF_ERROR(body.status());
  SetPlace(loop.condition->span);
  emitter_.While(std::move(test), *std::move(body));
  return absl::OkStatus();
}

// Both arms are checked, so that every variant finds the same mistakes; the arm that these
// constants do not take leaves no op.
absl::Status Checker::CheckConstantIf(const ast::If& branch, bool taken) {
  for (bool arm : {true, false}) {
    bool terminated = false;
    ASSIGN_OR_RETURN(ir::Block block,
                     CheckRegion(arm ? branch.then : branch.otherwise, &terminated));
    if (arm != taken) continue;
    emitter_.Splice(std::move(block));
    terminated_ = terminated;
  }
  return absl::OkStatus();
}

absl::Status Checker::CheckIf(const ast::If& branch) {
  ASSIGN_OR_RETURN(Operand condition, EvalNumber(*branch.condition));
  ASSIGN_OR_RETURN(Value truth, EmitTruth(condition));
  if (std::optional<WideInt> known = KnownInt(truth)) return CheckConstantIf(branch, *known != 0);
  bool then_terminated = false;
  bool else_terminated = false;
  ASSIGN_OR_RETURN(ir::Block then, CheckRegion(branch.then, &then_terminated));
  ASSIGN_OR_RETURN(ir::Block otherwise, CheckRegion(branch.otherwise, &else_terminated));
  SetPlace(branch.condition->span);
  emitter_.If(truth, std::move(then), std::move(otherwise));
  return absl::OkStatus();
}

absl::Status Checker::CheckReturn(const ast::Return& stmt, Span span) {
  if (in_function()) {
    return Error(span, "a ph.fn returns once, as its last statement",
                 "choose the value with ph.where or `a if c else b`, and return it at the end");
  }
  if (stmt.value != nullptr) {
    return Error(stmt.value->span, "a kernel returns nothing",
                 "store the result: out[i:+LENGTH] = ...");
  }
  emitter_.Control(Opcode::kReturn);
  terminated_ = true;
  return absl::OkStatus();
}

absl::Status Checker::CheckLoopExit(Opcode opcode, const std::string& word, Span span) {
  if (loop_depth_ == 0) {
    return Error(span, Concat(word, " stands outside a loop"),
                 "write it inside a for or a while; `return` ends the block");
  }
  emitter_.Control(opcode);
  terminated_ = true;
  return absl::OkStatus();
}

}  // namespace phobos::compiler::sema
