// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/declaration/canonical.h"

#include <variant>

#include "base/concat.h"
#include "compiler/syntax/printer.h"

namespace phobos::compiler::sema {
namespace {

// The form of the text below. A new number makes every stored result unreachable.
constexpr int kForm = 1;

std::string Type(const Kernel& kernel, const ir::Param& param) {
  if (!param.is_tensor) return std::string(ir::Name(param.dtype));
  std::string dims;
  for (const ir::Dim& dim : param.dims) {
    Append(&dims, dims.empty() ? "" : ", ",
           dim.extent >= 0 ? kernel.extents[dim.extent].name : Concat(dim.literal));
  }
  return Concat(ir::Name(param.dtype), "[", dims, "]");
}

std::string Choice(const LiteralOrTuned& value) {
  const auto* literal = std::get_if<int64_t>(&value);
  return literal != nullptr ? Concat(*literal) : std::get<std::string>(value);
}

std::string Signature(const ast::Function& function) {
  std::string parameters;
  for (const ast::Parameter& parameter : function.parameters) {
    Append(&parameters, parameters.empty() ? "" : ", ", parameter.name,
           parameter.annotation == nullptr ? "" : Concat(": ", ast::Print(*parameter.annotation)));
  }
  return Concat("fn ", function.name, "(", parameters, ")");
}

}  // namespace

std::string CanonicalSource(const Kernel& kernel, const Usage& usage) {
  std::string out = Concat("phobos kernel ", kForm, "\nkernel ", kernel.name, "\n");
  for (const ir::Param& param : kernel.params) {
    Append(&out, "param ", param.name, ": ", Type(kernel, param));
    if (param.aligned_bytes != 1) Append(&out, " aligned ", param.aligned_bytes);
    Append(&out, "\n");
  }
  for (const ir::Extent& extent : kernel.extents) {
    if (extent.multiple != 1) Append(&out, "multiple ", extent.name, " ", extent.multiple, "\n");
  }
  for (const std::string& name : kernel.key) Append(&out, "key ", name, "\n");
  for (const TunedConstant& constant : kernel.space) {
    Append(&out, "tune ", constant.name);
    for (const ConstantValue& value : constant.choices) Append(&out, " ", ToString(value));
    Append(&out, "\n");
  }
  for (const NamedConstant& constant : kernel.constants) {
    Append(&out, "constant ", constant.name, " ", ToString(constant.value), "\n");
  }
  Append(&out, "threads ", Choice(kernel.threads), " min_blocks ", kernel.min_blocks, "\n");
  Append(&out, "index_bits ", Choice(kernel.index_bits), "\n");
  if (kernel.fast_math) Append(&out, "fast_math\n");
  for (const Condition& condition : kernel.conditions) {
    Append(&out, condition.is_assumption ? "assume " : "constraint ", condition.text, "\n");
  }
  Append(&out, "body\n", ast::Print(kernel.function->body, 1));
  for (const auto& [name, function] : usage.functions) {
    Append(&out, Signature(*function), "\n", ast::Print(function->body, 1));
  }
  return out;
}

}  // namespace phobos::compiler::sema
