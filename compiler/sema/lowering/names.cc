// SPDX-License-Identifier: Apache-2.0
//
// What names stand for.
#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/language.h"
#include "compiler/sema/lowering/checker.h"
#include "compiler/sema/nearest.h"

namespace phobos::compiler::sema {
namespace {

Value ValueOf(const ConstantValue& constant) {
  if (const int64_t* i = std::get_if<int64_t>(&constant)) return Value::OfInt(*i);
  if (const double* d = std::get_if<double>(&constant)) return Value::OfLiteral(*d);
  if (const bool* b = std::get_if<bool>(&constant)) return Value::OfLiteral(*b);
  return Value::OfLiteral(std::get<std::string>(constant));
}

std::optional<int32_t> AxisOf(const std::string& name) {
  if (name == "x") return 0;
  if (name == "y") return 1;
  if (name == "z") return 2;
  return std::nullopt;
}

// What NumPy and Triton call it, and what stands for it here.
std::string_view WordHere(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"arange", "ph.iota(LENGTH)"},
      {"program_id", "ph.ctx.block.x (or .y, .z)"},
      {"num_programs", "ph.ctx.grid.x (or .y, .z)"},
      {"static_range", "ph.range(n)"},
      {"astype", "ph.cast(x, ph.f32)"},
      {"to", "ph.cast(x, ph.f32)"},
      {"view", "ph.bitcast(x, ph.i32)"},
      {"empty", "ph.zeros(ph.f32, LENGTH)"},
      {"zeros_like", "ph.zeros(ph.f32, LENGTH)"},
      {"ones", "ph.full(ph.f32, 1.0, LENGTH)"},
      {"power", "ph.pow(x, y)"},
      {"expand_dims", "t[:, None]"},
      {"concatenate", "ph.join(a, b)"},
      {"matmul", "ph.dot(a, b)"},
      {"float16", "ph.f16"},
      {"bfloat16", "ph.bf16"},
      {"float32", "ph.f32"},
      {"float64", "ph.f64"},
      {"int8", "ph.i8"},
      {"int16", "ph.i16"},
      {"int32", "ph.i32"},
      {"int64", "ph.i64"},
      {"uint8", "ph.u8"},
      {"uint16", "ph.u16"},
      {"uint32", "ph.u32"},
      {"uint64", "ph.u64"},
  };
  for (const auto& [theirs, ours] : kWords) {
    if (theirs == name) return ours;
  }
  return "";
}

}  // namespace

bool Checker::FindInKernel(std::string_view name, Value* value) {
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    if (kernel_.params[i].name != name) continue;
    const int32_t index = static_cast<int32_t>(i);
    *value = kernel_.params[i].is_tensor ? Value::Tensor(index) : emitter_.ScalarParam(index);
    return true;
  }
  for (size_t i = 0; i < kernel_.extents.size(); ++i) {
    if (kernel_.extents[i].name != name) continue;
    *value = emitter_.Extent(static_cast<int32_t>(i));
    return true;
  }
  for (const auto& [setting, constant] : settings_) {
    if (setting != name) continue;
    *value = ValueOf(constant);
    return true;
  }
  return false;
}

bool Checker::FindModuleConstant(std::string_view name, Value* value) const {
  for (const NamedConstant& constant : kernel_.constants) {
    if (constant.name != name) continue;
    *value = ValueOf(constant.value);
    return true;
  }
  return false;
}

const ast::Function* Checker::FindFunction(std::string_view name) const {
  for (const ast::Function& function : module_.functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

Value Checker::LoopIndex(const Binding& binding) {
  const Value turn = emitter_.LoopIndex(binding.var);
  if (binding.value.kind != Value::Kind::kTuple) return turn;
  const std::vector<Value>& place = binding.value.elements;
  return emitter_.Elementwise(ir::Opcode::kAdd,
                              {place[0], emitter_.Elementwise(ir::Opcode::kMul, {turn, place[1]})});
}

absl::StatusOr<Value> Checker::EvalName(const ast::Name& name, Span span) {
  if (const Binding* binding = scopes_.Find(name.id)) {
    switch (binding->kind) {
      case Binding::Kind::kVariable:
        return emitter_.Read(binding->var);
      case Binding::Kind::kLoopIndex:
        return LoopIndex(*binding);
      default:
        return binding->value;
    }
  }
  Value value;
  if (!in_function() && FindInKernel(name.id, &value)) return value;
  if (FindModuleConstant(name.id, &value)) return value;
  if (FindFunction(name.id) != nullptr) {
    return Error(span, Concat("'", name.id, "' is a function, and no value"),
                 Concat("call it: ", name.id, "(...)"));
  }
  return UnknownName(name.id, span);
}

std::vector<std::string_view> Checker::NamesInSight() const {
  std::vector<std::string_view> names;
  scopes_.AppendNames(&names);
  if (!in_function()) {
    for (const ir::Param& param : kernel_.params) names.push_back(param.name);
    for (const ir::Extent& extent : kernel_.extents) names.push_back(extent.name);
    for (const auto& setting : settings_) names.push_back(setting.first);
  }
  for (const ast::ModuleConstant& constant : module_.constants) names.push_back(constant.name);
  for (const ast::Function& function : module_.functions) {
    if (!function.is_kernel) names.push_back(function.name);
  }
  return names;
}

// AnalyzeModule has refused the names that exist nowhere; left are those that are not in sight.
absl::Status Checker::UnknownName(const std::string& name, Span span) const {
  const bool of_kernel =
      std::any_of(kernel_.params.begin(), kernel_.params.end(),
                  [&](const ir::Param& param) { return param.name == name; }) ||
      std::any_of(kernel_.extents.begin(), kernel_.extents.end(),
                  [&](const ir::Extent& extent) { return extent.name == name; }) ||
      std::any_of(kernel_.space.begin(), kernel_.space.end(),
                  [&](const TunedConstant& constant) { return constant.name == name; });
  if (of_kernel) {
    return Error(span, Concat("'", name, "' belongs to the kernel, and a ph.fn does not see it"),
                 "give it to the function as an argument");
  }
  return Error(span, Concat("'", name, "' is not defined here"),
               DidYouMean(name, NamesInSight(),
                          "a name ends with the block that made it: declare a ph.var before that "
                          "block"));
}

absl::Status Checker::UnknownLanguageName(const ast::LanguageName& name, Span span) const {
  const std::string what =
      Concat("'ph.", absl::StrJoin(name.path, "."), "' is not in the language");
  if (name.path[0] == "ctx") {
    return Error(span, what, "write ph.ctx.block.x (or .y, .z), or ph.ctx.grid.x");
  }
  const std::string_view here = WordHere(name.path[0]);
  if (!here.empty()) return Error(span, what, Concat("write ", here));
  const std::string_view nearest = Nearest(name.path[0], LanguageNames());
  if (nearest.empty() || nearest == name.path[0]) {
    return Error(span, what, "docs/language.md lists the names of the language");
  }
  return Error(span, what, Concat("did you mean ph.", nearest, "?"));
}

absl::StatusOr<Value> Checker::EvalLanguageName(const ast::LanguageName& name, Span span) {
  const std::vector<std::string>& path = name.path;
  if (path.size() == 3 && path[0] == "ctx") {
    std::optional<int32_t> axis = AxisOf(path[2]);
    if (axis.has_value() && path[1] == "block") return emitter_.BlockId(*axis);
    if (axis.has_value() && path[1] == "grid") return emitter_.GridSize(*axis);
  }
  if (path.size() != 1) return UnknownLanguageName(name, span);
  if (path[0] == "inf") return Value::OfLiteral(double{INFINITY});
  if (path[0] == "nan") return Value::OfLiteral(double{NAN});
  if (std::optional<ir::DType> dtype = ir::DTypeNamed(path[0])) return Value::OfDType(*dtype);
  const Builtin* builtin = FindBuiltin(path[0]);
  if (builtin == nullptr || path[0] == "ctx") return UnknownLanguageName(name, span);
  const std::string written = Concat("ph.", path[0]);
  if (builtin->kind == Builtin::Kind::kStructure) {
    return Error(span, Concat(written, " is no value"),
                 "it has its own place: an annotation, a decorator or a for");
  }
  return Error(span, Concat(written, " is a function, and no value"),
               Concat("call it: ", written, "(...)"));
}

absl::StatusOr<Value> Checker::EvalAttribute(const ast::Attribute& attribute, Span span) {
  const ast::Call* call = std::get_if<ast::Call>(&attribute.base->node);
  const ast::LanguageName* callee =
      call != nullptr ? std::get_if<ast::LanguageName>(&call->callee->node) : nullptr;
  const bool is_limit = callee != nullptr && callee->path.size() == 1 &&
                        (callee->path[0] == "finfo" || callee->path[0] == "iinfo");
  if (is_limit) {
    if (call->positional.size() != 1 || !call->keyword.empty()) {
      return Error(attribute.base->span, Concat(callee->path[0], " takes one type"),
                   Concat("write ph.", callee->path[0], "(ph.f32).max"));
    }
    ASSIGN_OR_RETURN(Operand type, EvalOperand(*call->positional[0]));
    return EvalLimit(callee->path[0], type, attribute.name, span);
  }
  if (attribute.name == "shape" || attribute.name == "size") {
    return Error(span, Concat("values have no attributes such as .", attribute.name),
                 "use the extent's name, or ph.extent(A, 0)");
  }
  return Error(span, Concat("values have no attributes such as .", attribute.name),
               FindBuiltin(attribute.name) != nullptr
                   ? Concat("write ph.", attribute.name, "(...)")
                   : std::string("the language has functions only, for example ph.exp(x)"));
}

absl::StatusOr<Value> Checker::EvalLimit(const std::string& of, const Operand& type,
                                         const std::string& name, Span span) {
  const bool is_float = of == "finfo";
  if (type.value.kind != Value::Kind::kDType ||
      (is_float ? !ir::IsFloat(type.value.dtype) : !ir::IsInteger(type.value.dtype))) {
    return Error(type.span, Concat(of, " takes ", is_float ? "a float type" : "an integer type"),
                 Concat("write for example ph.", of, is_float ? "(ph.f32).max" : "(ph.i32).max"));
  }
  const ir::DType dtype = type.value.dtype;
  if (is_float) {
    if (name == "max") return Value::OfLiteral(LargestFinite(dtype));
    if (name == "min") return Value::OfLiteral(-LargestFinite(dtype));
    if (name == "eps") return Value::OfLiteral(Epsilon(dtype));
  } else {
    if (name == "max") return Value::OfInt(LargestOf(dtype));
    if (name == "min") return Value::OfInt(SmallestOf(dtype));
  }
  return Error(span, Concat(of, " has no ", name),
               is_float ? "it has max, min and eps" : "it has max and min");
}

absl::Status Checker::CheckNewName(const std::string& name, Span span) const {
  if (absl::StartsWith(name, "_ph")) {
    return Error(span, "names that begin with _ph are reserved", "choose another name");
  }
  std::string hides;
  if (const Binding* binding = scopes_.Find(name)) {
    hides = Concat("the '", name, "' of line ", source_.Line(binding->span.begin));
    if (binding->kind == Binding::Kind::kLet) {
      return Error(
          span,
          Concat("'", name, "' is already bound, on line ", source_.Line(binding->span.begin)),
          Concat("ph.let binds a name once: use another, or declare `", name,
                 ": ph.var` and assign to it"));
    }
  }
  if (!in_function()) {
    for (const ir::Param& param : kernel_.params) {
      if (param.name == name) hides = Concat("the parameter ", name);
    }
    for (const ir::Extent& extent : kernel_.extents) {
      if (extent.name == name) hides = Concat("the extent ", name);
    }
    for (const TunedConstant& constant : kernel_.space) {
      if (constant.name == name) hides = Concat("the autotuned constant ", name);
    }
  }
  for (const ast::ModuleConstant& constant : module_.constants) {
    if (constant.name == name) hides = Concat("the module constant ", name);
  }
  const ast::Function* function = FindFunction(name);
  if (function != nullptr && !function->is_kernel) hides = Concat("the function ", name);
  if (hides.empty()) return absl::OkStatus();
  return Error(span, Concat("'", name, "' would hide ", hides), "use another name");
}

}  // namespace phobos::compiler::sema
