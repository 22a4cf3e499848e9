// SPDX-License-Identifier: Apache-2.0
//
// Calls of ph.dot and ph.dot_t.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/ir/shape.h"
#include "compiler/sema/language.h"
#include "compiler/sema/lowering/checker.h"

namespace phobos::compiler::sema {
namespace {

using ir::DType;

// What b's sides would have to be for the products to fit.
std::string Layout(bool is_transposed) { return is_transposed ? "[N, K]" : "[K, N]"; }

// Why two tiles cannot be multiplied; nothing: they can.
std::optional<Problem> Misfit(const ir::Type& left, const ir::Type& right, bool is_transposed,
                              const std::string& name) {
  if (left.dtype != right.dtype) {
    const bool is_left_wider = ir::BitWidth(left.dtype) >= ir::BitWidth(right.dtype);
    const std::string wider(ir::Name(is_left_wider ? left.dtype : right.dtype));
    return Problem{Concat(name, " multiplies tiles of one type, and these are ",
                          ir::Name(left.dtype), " and ", ir::Name(right.dtype)),
                   Concat("convert one of them, for example with ph.cast(t, ph.", wider, ")")};
  }
  const std::string shapes =
      Concat("a of shape ", ShapeText(left.shape), " and b of shape ", ShapeText(right.shape));
  const size_t rank = left.shape.size();
  if (right.shape.size() != rank ||
      !std::equal(left.shape.begin(), left.shape.end() - 2, right.shape.begin())) {
    return Problem{Concat(name, " does not fit ", shapes),
                   "the sides before the last two number the products and are the same in both"};
  }
  const size_t k_side = rank - (is_transposed ? 1 : 2);
  if (left.shape.back() == right.shape[k_side]) return std::nullopt;
  const bool fits_other = left.shape.back() == right.shape[2 * rank - 3 - k_side];
  const std::string other = is_transposed ? "ph.dot" : "ph.dot_t";
  return Problem{Concat(name, " sums over the last side of a, ", left.shape.back(), ", and the ",
                        is_transposed ? "last" : "last but one", " of b, ", right.shape[k_side],
                        ": ", shapes, " do not fit"),
                 fits_other
                     ? Concat(other, "(a, b) takes b as ", Layout(!is_transposed))
                     : Concat("a is [M, K] and b is ", Layout(is_transposed), ", with one K")};
}

}  // namespace

// A tile that may be multiplied; `name` is who asks for it.
absl::StatusOr<Operand> Checker::EvalMatrix(const ast::Expr& expr, const std::string& name) {
  ASSIGN_OR_RETURN(Operand operand, EvalNumber(expr));
  const std::string what = Concat(name, " multiplies tiles of two or more sides, and this is ",
                                  Describe(operand.value, kernel_.params));
  if (operand.value.is_scalar()) {
    return Error(operand.span, what, "write x * y, one side of which may be a scalar");
  }
  if (operand.value.type.shape.size() < 2) {
    return Error(operand.span, what,
                 "v[None, :] is a row and v[:, None] a column; of two vectors write ph.sum(u * v)");
  }
  if (!ir::DotResult(operand.value.type.dtype).has_value()) {
    return Error(operand.span,
                 Concat(name, " multiplies f16, bf16, f32, f64, i8 and u8, and this is ",
                        Describe(operand.value, kernel_.params)),
                 "write ph.cast(t, ph.f32), or ph.f64, where the numbers fit that");
  }
  return operand;
}

// What is written as precision=, for operands of `dtype`; null: nothing is.
absl::StatusOr<ir::Precision> Checker::EvalPrecision(const ast::Expr* expr, DType dtype) {
  if (expr == nullptr) return ir::Precision::kExact;
  ASSIGN_OR_RETURN(Operand operand, EvalOperand(*expr));
  const Value& value = operand.value;
  const bool is_text = value.is_literal() && IsString(value.literal);
  const std::string text = is_text ? std::get<std::string>(value.literal) : std::string();
  if (text == "exact") return ir::Precision::kExact;
  if (text != "tf32" && text != "f16") {
    return Error(
        operand.span,
        is_text ? Concat("there is no precision \"", text, "\"")
                : Concat("precision is a string, and this is ", Describe(value, kernel_.params)),
        "write \"tf32\" or \"f16\"; \"exact\", as without it, rounds no operand");
  }
  if (dtype != DType::kF32) {
    return Error(operand.span,
                 Concat("precision is about f32 operands, and these are ", ir::Name(dtype)),
                 "leave it out: operands of this type are multiplied as they are");
  }
  return text == "tf32" ? ir::Precision::kTf32 : ir::Precision::kF16;
}

absl::StatusOr<Value> Checker::EvalDot(const Builtin& builtin,
                                       const std::vector<const ast::Expr*>& arguments, Span span) {
  const std::string name = Concat("ph.", std::string(builtin.name));
  const bool is_transposed = builtin.kind == Builtin::Kind::kDotTransposed;
  ASSIGN_OR_RETURN(Operand a, EvalMatrix(*arguments[0], name));
  ASSIGN_OR_RETURN(Operand b, EvalMatrix(*arguments[1], name));
  const std::optional<Problem> misfit = Misfit(a.value.type, b.value.type, is_transposed, name);
  if (misfit.has_value()) return Error(span, *misfit);
  ASSIGN_OR_RETURN(ir::Precision precision, EvalPrecision(arguments[2], a.value.type.dtype));
  RETURN_IF_ERROR(
      CheckShape(ir::DotShape(a.value.type.shape, b.value.type.shape, is_transposed), span));
  SetPlace(span);
  return emitter_.Dot(a.value, b.value, is_transposed, precision);
}

}  // namespace phobos::compiler::sema
