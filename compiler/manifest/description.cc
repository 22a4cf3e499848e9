// SPDX-License-Identifier: Apache-2.0
#include "compiler/manifest/description.h"

#include <utility>
#include <variant>

#include "base/concat.h"
#include "base/digest.h"
#include "compiler/manifest/condition_program.h"

namespace phobos::compiler {
namespace {

v1::DType DTypeOf(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF16:
      return v1::DTYPE_F16;
    case ir::DType::kBF16:
      return v1::DTYPE_BF16;
    case ir::DType::kF32:
      return v1::DTYPE_F32;
    case ir::DType::kF64:
      return v1::DTYPE_F64;
    case ir::DType::kI8:
      return v1::DTYPE_I8;
    case ir::DType::kI16:
      return v1::DTYPE_I16;
    case ir::DType::kI32:
      return v1::DTYPE_I32;
    case ir::DType::kI64:
      return v1::DTYPE_I64;
    case ir::DType::kU8:
      return v1::DTYPE_U8;
    case ir::DType::kU16:
      return v1::DTYPE_U16;
    case ir::DType::kU32:
      return v1::DTYPE_U32;
    case ir::DType::kU64:
      return v1::DTYPE_U64;
    case ir::DType::kBool:
      return v1::DTYPE_BOOL;
  }
  return v1::DTYPE_UNSPECIFIED;
}

v1::Constant ConstantOf(const std::string& name, const sema::ConstantValue& value) {
  v1::Constant constant;
  constant.set_name(name);
  if (const auto* number = std::get_if<int64_t>(&value)) constant.set_int_value(*number);
  if (const auto* number = std::get_if<double>(&value)) constant.set_float_value(*number);
  if (const auto* flag = std::get_if<bool>(&value)) constant.set_bool_value(*flag);
  if (const auto* text = std::get_if<std::string>(&value)) constant.set_string_value(*text);
  return constant;
}

void AddParameter(const sema::Kernel& kernel, const ir::Param& param,
                  v1::KernelDescription* description) {
  v1::Parameter* parameter = description->add_parameters();
  parameter->set_name(param.name);
  parameter->set_dtype(DTypeOf(param.dtype));
  parameter->set_is_tensor(param.is_tensor);
  for (const ir::Dim& dim : param.dims) {
    v1::Dimension* dimension = parameter->add_dims();
    if (dim.extent >= 0) {
      dimension->set_extent(kernel.extents[dim.extent].name);
    } else {
      dimension->set_literal(dim.literal);
    }
  }
  parameter->set_is_read(param.is_read);
  parameter->set_is_written(param.is_written);
  if (param.aligned_bytes > 1) parameter->set_aligned_bytes(param.aligned_bytes);
}

void AddVariants(const sema::Kernel& kernel, v1::KernelDescription* description) {
  for (int64_t i = 0; i < kernel.variant_count(); ++i) {
    const sema::Settings settings = kernel.VariantSettings(i);
    v1::VariantSettings* variant = description->add_variants();
    variant->set_index(static_cast<int32_t>(i));
    for (v1::Constant& constant : ToProto(settings)) *variant->add_settings() = std::move(constant);
    variant->set_excluded_reason(sema::ExcludedReason(kernel, settings));
    variant->set_threads(static_cast<int32_t>(sema::ThreadsFor(kernel, settings)));
    variant->set_index_bits(static_cast<int32_t>(sema::IndexBitsFor(kernel, settings)));
  }
}

}  // namespace

std::vector<v1::Constant> ToProto(const sema::Settings& settings) {
  std::vector<v1::Constant> constants;
  for (const auto& [name, value] : settings) constants.push_back(ConstantOf(name, value));
  return constants;
}

std::vector<std::string> Slots(const sema::Kernel& kernel) {
  std::vector<std::string> slots;
  for (const ir::Param& param : kernel.params) slots.push_back(param.name);
  for (const ir::Extent& extent : kernel.extents) slots.push_back(Concat("extent:", extent.name));
  return slots;
}

v1::KernelDescription Describe(const Source& source, const sema::Kernel& kernel) {
  v1::KernelDescription description;
  description.set_kernel(kernel.name);
  description.set_canonical_source(kernel.canonical_source);
  description.set_source_digest(Sha256Hex(kernel.canonical_source));
  for (const ir::Param& param : kernel.params) AddParameter(kernel, param, &description);
  for (const ir::Extent& extent : kernel.extents) {
    description.add_extents(extent.name);
    if (extent.multiple <= 1) continue;
    v1::ExtentPromise* promise = description.add_extent_promises();
    promise->set_extent(extent.name);
    promise->set_multiple(extent.multiple);
  }
  for (const std::string& name : kernel.key) description.add_key(name);
  for (const sema::Condition& condition : kernel.conditions) {
    if (condition.only_constants) continue;
    v1::Condition* out = description.add_conditions();
    out->set_text(condition.text);
    out->set_line(condition.line);
    out->set_is_assumption(condition.is_assumption);
    for (v1::ConditionOp& op : ConditionProgram(kernel, condition))
      *out->add_program() = std::move(op);
  }
  AddVariants(kernel, &description);
  description.set_grid_dims_used(kernel.grid_dims_used);
  description.set_line(source.Line(kernel.function->name_span.begin));
  return description;
}

}  // namespace phobos::compiler
