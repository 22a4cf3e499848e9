// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/declaration/signature.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/nearest.h"

namespace phobos::compiler::sema {
namespace {

constexpr size_t kMaxRank = 4;

// NumPy's, torch's and C's names of the language's types.
struct OtherName {
  std::string_view other;
  std::string_view ours;
};
constexpr OtherName kOtherNames[] = {
    {"float16", "f16"}, {"half", "f16"},    {"bfloat16", "bf16"}, {"float32", "f32"},
    {"float", "f32"},   {"float64", "f64"}, {"double", "f64"},    {"int8", "i8"},
    {"int16", "i16"},   {"int32", "i32"},   {"int", "i32"},       {"int64", "i64"},
    {"uint8", "u8"},    {"uint16", "u16"},  {"uint32", "u32"},    {"uint64", "u64"},
    {"bool_", "bool"},  {"fp16", "f16"},    {"fp32", "f32"},      {"fp64", "f64"},
};

constexpr std::string_view kTypeNames[] = {"f16", "bf16", "f32", "f64", "i8",  "i16", "i32",
                                           "i64", "u8",   "u16", "u32", "u64", "bool"};

// The last part of `ph.float32`, `np.float32`, `float`; empty for anything else.
std::string_view LastName(const ast::Expr& expr) {
  if (const auto* name = std::get_if<ast::Name>(&expr.node)) return name->id;
  if (const auto* member = std::get_if<ast::Attribute>(&expr.node)) return member->name;
  const auto* language = std::get_if<ast::LanguageName>(&expr.node);
  return language != nullptr ? std::string_view(language->path.back()) : std::string_view();
}

bool IsLanguageName(const ast::Expr& expr, std::string_view name) {
  const auto* language = std::get_if<ast::LanguageName>(&expr.node);
  return language != nullptr && language->path.size() == 1 && language->path[0] == name;
}

class SignatureReader {
 public:
  SignatureReader(const DeclarationScope& scope, Kernel* kernel) : scope_(scope), kernel_(kernel) {}

  absl::Status Run() {
    for (const ast::Parameter& parameter : kernel_->function->parameters)
      RETURN_IF_ERROR(OneParameter(parameter));
    for (const ast::Parameter& parameter : kernel_->function->parameters)
      RETURN_IF_ERROR(CheckName(parameter));
    return absl::OkStatus();
  }

 private:
  absl::Status OneParameter(const ast::Parameter& parameter);
  absl::Status CheckName(const ast::Parameter& parameter) const;
  absl::StatusOr<ir::DType> ElementType(const ast::Expr& expr) const;
  absl::Status Dimensions(const ast::Index& index, Span span, ir::Param* param);
  absl::StatusOr<ir::Dim> Dimension(const ast::Subscript& subscript);
  absl::StatusOr<ir::Dim> LiteralDimension(const ast::Expr& expr) const;
  absl::StatusOr<ir::Dim> NamedDimension(const std::string& name, Span span);

  const DeclarationScope& scope_;
  Kernel* kernel_;
};

absl::StatusOr<ir::DType> SignatureReader::ElementType(const ast::Expr& expr) const {
  const std::string_view name = LastName(expr);
  if (std::holds_alternative<ast::LanguageName>(expr.node) && IsLanguageName(expr, name)) {
    if (const std::optional<ir::DType> dtype = ir::DTypeNamed(name)) return *dtype;
  }
  std::string_view ours = ir::DTypeNamed(name).has_value() ? name : std::string_view();
  for (const OtherName& other : kOtherNames) {
    if (other.other == name) ours = other.ours;
  }
  const std::vector<std::string_view> types(std::begin(kTypeNames), std::end(kTypeNames));
  if (ours.empty()) ours = Nearest(name, types);
  const std::string remedy =
      ours.empty() ? Concat("write one of f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool: ",
                            scope_.alias(), ".f32")
                   : Concat("write ", scope_.alias(), ".", ours);
  return scope_.source.Error(
      expr.span,
      Concat("'", scope_.source.text(expr.span).substr(0, 40), "' is no type of an element"),
      remedy);
}

absl::Status SignatureReader::OneParameter(const ast::Parameter& parameter) {
  const std::string example =
      Concat(parameter.name, ": ", scope_.alias(), ".tensor[", scope_.alias(), ".f32][N], or ",
             parameter.name, ": ", scope_.alias(), ".f32 for a scalar");
  if (parameter.annotation == nullptr) {
    return scope_.source.Error(parameter.name_span,
                               Concat("the parameter '", parameter.name, "' has no type"),
                               Concat("write ", example));
  }
  const ast::Expr& annotation = *parameter.annotation;
  ir::Param param;
  param.name = parameter.name;
  const auto* index = std::get_if<ast::Index>(&annotation.node);
  const auto* inner = index == nullptr ? nullptr : std::get_if<ast::Index>(&index->base->node);
  if (inner != nullptr && IsLanguageName(*inner->base, "tensor")) {
    param.is_tensor = true;
    if (inner->subscripts.size() != 1 ||
        inner->subscripts[0].kind != ast::Subscript::Kind::kIndex) {
      return scope_.source.Error(inner->subscripts[0].span, "a tensor has one element type",
                                 Concat("write ", example));
    }
    ASSIGN_OR_RETURN(param.dtype, ElementType(*inner->subscripts[0].first));
    RETURN_IF_ERROR(Dimensions(*index, annotation.span, &param));
  } else if (IsLanguageName(annotation, "tensor") ||
             (index != nullptr && IsLanguageName(*index->base, "tensor"))) {
    return scope_.source.Error(annotation.span, "a tensor needs its element type and its extents",
                               Concat("write ", example));
  } else if (index != nullptr) {
    return scope_.source.Error(annotation.span, "this is no type of a parameter",
                               Concat("write ", example));
  } else {
    ASSIGN_OR_RETURN(param.dtype, ElementType(annotation));
  }
  kernel_->params.push_back(std::move(param));
  return absl::OkStatus();
}

absl::Status SignatureReader::Dimensions(const ast::Index& index, Span span, ir::Param* param) {
  if (index.subscripts.size() > kMaxRank) {
    return scope_.source.Error(span,
                               Concat("a tensor has at most ", kMaxRank,
                                      " dimensions, and this has ", index.subscripts.size()),
                               "reshape it before the launch");
  }
  for (const ast::Subscript& subscript : index.subscripts) {
    ASSIGN_OR_RETURN(const ir::Dim dim, Dimension(subscript));
    param->dims.push_back(dim);
  }
  return absl::OkStatus();
}

absl::StatusOr<ir::Dim> SignatureReader::Dimension(const ast::Subscript& subscript) {
  if (subscript.kind != ast::Subscript::Kind::kIndex) {
    return scope_.source.Error(subscript.span, "an extent is a name, an int or a module constant",
                               "write for example N");
  }
  if (const auto* name = std::get_if<ast::Name>(&subscript.first->node);
      name != nullptr && !scope_.constants.Has(name->id)) {
    return NamedDimension(name->id, subscript.span);
  }
  return LiteralDimension(*subscript.first);
}

absl::StatusOr<ir::Dim> SignatureReader::LiteralDimension(const ast::Expr& expr) const {
  const absl::StatusOr<ConstantValue> value = scope_.constants.Evaluate(expr);
  if (!value.ok() && !std::holds_alternative<ast::Name>(expr.node)) {
    return scope_.source.Error(expr.span, "an extent is a name, an int or a module constant",
                               Concat("give the extent a name of its own, and promise what it is: ",
                                      scope_.alias(), ".assume(M == 2 * N)"));
  }
  RETURN_IF_ERROR(value.status());
  const auto* extent = std::get_if<int64_t>(&*value);
  if (extent == nullptr) {
    return scope_.source.Error(expr.span,
                               Concat("an extent is an int, and this is ", KindOf(*value)),
                               "write a whole number, or a name");
  }
  if (*extent < 1) {
    return scope_.source.Error(expr.span, Concat("the extent ", *extent, " is below 1"),
                               "write a positive number, or a name");
  }
  return ir::Dim{-1, *extent};
}

absl::StatusOr<ir::Dim> SignatureReader::NamedDimension(const std::string& name, Span span) {
  RETURN_IF_ERROR(scope_.CheckNotReserved(name, span));
  if (FindTuned(*kernel_, name) != nullptr) {
    return scope_.source.Error(
        span,
        Concat("'", name, "' is an autotuned constant, and an extent comes from the argument"),
        "use a name of its own; a condition can relate the two: @ph.constraint(\"BLOCK <= N\")");
  }
  for (const ast::Parameter& parameter : kernel_->function->parameters) {
    if (parameter.name != name) continue;
    return scope_.source.Error(span, Concat("'", name, "' is a parameter as well as an extent"),
                               "remove the parameter: an extent is an integer in the body");
  }
  int extent = FindExtent(*kernel_, name);
  if (extent < 0) {
    extent = static_cast<int>(kernel_->extents.size());
    kernel_->extents.push_back({name, 1});
  }
  return ir::Dim{extent, 0};
}

absl::Status SignatureReader::CheckName(const ast::Parameter& parameter) const {
  const Span span = parameter.name_span;
  RETURN_IF_ERROR(scope_.CheckHidesNothing(parameter.name, "a parameter", span));
  if (FindTuned(*kernel_, parameter.name) != nullptr) {
    return scope_.source.Error(
        span, Concat("'", parameter.name, "' is a parameter and an autotuned constant"),
        "give one of the two another name");
  }
  for (const ast::Parameter& other : kernel_->function->parameters) {
    if (&other == &parameter) break;
    if (other.name != parameter.name) continue;
    return scope_.source.Error(span, Concat("there are two parameters '", parameter.name, "'"),
                               "give one of them another name");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadSignature(const DeclarationScope& scope, Kernel* kernel) {
  return SignatureReader(scope, kernel).Run();
}

}  // namespace phobos::compiler::sema
