// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/admission.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/launch/condition.h"
#include "client/launch/host.h"
#include "daemon/tuner/setup.h"

namespace phobos::tuner {
namespace {

using compiler::v1::Condition;
using compiler::v1::DType;
using compiler::v1::KernelDescription;
using compiler::v1::Parameter;
using compiler::v1::VariantSettings;
using Values = std::map<std::string, launch::Number>;

constexpr int64_t kMostElements32 = (int64_t{1} << 31) - 1;

template <typename T>
T FromBits(const std::string& bits) {
  T value = {};
  memcpy(&value, bits.data(), std::min(bits.size(), sizeof(value)));
  return value;
}

// A scalar argument's value; nullopt for the types no condition can use (f16, bf16, unknown ones).
std::optional<launch::Number> ScalarValue(DType dtype, const std::string& bits) {
  switch (dtype) {
    case DType::DTYPE_F32:
      return launch::Number(double{FromBits<float>(bits)});
    case DType::DTYPE_F64:
      return launch::Number(FromBits<double>(bits));
    case DType::DTYPE_I8:
      return launch::Number(int64_t{FromBits<int8_t>(bits)});
    case DType::DTYPE_I16:
      return launch::Number(int64_t{FromBits<int16_t>(bits)});
    case DType::DTYPE_I32:
      return launch::Number(int64_t{FromBits<int32_t>(bits)});
    case DType::DTYPE_I64:
    case DType::DTYPE_U64:
      return launch::Number(FromBits<int64_t>(bits));
    case DType::DTYPE_U8:
    case DType::DTYPE_BOOL:
      return launch::Number(int64_t{FromBits<uint8_t>(bits)});
    case DType::DTYPE_U16:
      return launch::Number(int64_t{FromBits<uint16_t>(bits)});
    case DType::DTYPE_U32:
      return launch::Number(int64_t{FromBits<uint32_t>(bits)});
    default:
      return std::nullopt;
  }
}

void AddConstants(const VariantSettings& settings, Values& values) {
  for (const compiler::v1::Constant& constant : settings.settings()) {
    switch (constant.value_case()) {
      case compiler::v1::Constant::kIntValue:
        values[constant.name()] = constant.int_value();
        break;
      case compiler::v1::Constant::kFloatValue:
        values[constant.name()] = constant.float_value();
        break;
      case compiler::v1::Constant::kBoolValue:
        values[constant.name()] = int64_t{constant.bool_value()};
        break;
      default:
        break;  // a string stands in no condition
    }
  }
}

Values NamedValues(const KernelDescription& description, const VariantSettings& settings,
                   absl::Span<const v1::Extent> extents, absl::Span<const v1::Scalar> scalars,
                   const v1::Grid* grid) {
  Values values;
  AddConstants(settings, values);
  for (const v1::Extent& extent : extents) values[extent.name()] = extent.value();
  for (const v1::Scalar& scalar : scalars) {
    for (const Parameter& parameter : description.parameters()) {
      if (parameter.is_tensor() || parameter.name() != scalar.name()) continue;
      const auto value = ScalarValue(parameter.dtype(), scalar.bits());
      if (value.has_value()) values[scalar.name()] = *value;
    }
  }
  if (grid != nullptr) {
    values["grid_x"] = grid->x();
    values["grid_y"] = grid->y();
    values["grid_z"] = grid->z();
  }
  return values;
}

std::vector<launch::ConditionOp> Program(const Condition& condition) {
  std::vector<launch::ConditionOp> program;
  for (const compiler::v1::ConditionOp& op : condition.program()) {
    launch::ConditionOp& step = program.emplace_back();
    step.code = op.code();
    step.name = op.name();
    if (op.code() == compiler::v1::ConditionOp::PUSH_FLOAT) {
      step.number = op.float_value();
    } else {
      step.number = op.int_value();
    }
  }
  return program;
}

bool NamesGrid(const Condition& condition) {
  return std::any_of(condition.program().begin(), condition.program().end(), [](const auto& op) {
    return op.code() == compiler::v1::ConditionOp::PUSH_NAME &&
           (op.name() == "grid_x" || op.name() == "grid_y" || op.name() == "grid_z");
  });
}

// "N=1000, BLOCK=256": the values that the condition names.
std::string NamesText(const Condition& condition, const Values& values) {
  std::map<std::string, std::string> used;
  for (const compiler::v1::ConditionOp& op : condition.program()) {
    const auto value = values.find(op.name());
    if (op.code() != compiler::v1::ConditionOp::PUSH_NAME || value == values.end()) continue;
    used[op.name()] = std::visit([](auto number) { return absl::StrCat(number); }, value->second);
  }
  return absl::StrJoin(used, ", ", absl::PairFormatter("="));
}

Admission Excluded(std::string reason) { return {v1::VARIANT_STATUS_EXCLUDED, std::move(reason)}; }

Admission AdmitConditions(const KernelDescription& description, const Values& values,
                          bool has_grid) {
  const auto lookup = [&](std::string_view name) -> StatusOr<launch::Number> {
    const auto found = values.find(std::string(name));
    if (found != values.end()) return found->second;
    return Status(Code::kInvalidArgument, std::string(name) + " has no value");
  };
  for (const Condition& condition : description.conditions()) {
    if (!has_grid && NamesGrid(condition)) continue;
    const StatusOr<bool> holds = launch::Holds(Program(condition), lookup);
    if (holds.ok() && *holds) continue;
    const char* kind = condition.is_assumption() ? "ph.assume" : "@ph.constraint";
    if (!holds.ok()) {
      return Excluded(absl::StrCat("line ", condition.line(), ": ", kind, "(", condition.text(),
                                   ") cannot be decided: ", holds.status().message()));
    }
    return Excluded(absl::StrCat("line ", condition.line(), ": ", kind, "(", condition.text(),
                                 ") is false for ", NamesText(condition, values)));
  }
  return {};
}

Admission AdmitPromises(const KernelDescription& description, const Values& values) {
  for (const compiler::v1::ExtentPromise& promise : description.extent_promises()) {
    const auto value = values.find(promise.extent());
    const int64_t* extent = value == values.end() ? nullptr : std::get_if<int64_t>(&value->second);
    if (extent == nullptr || promise.multiple() <= 0 || *extent % promise.multiple() == 0) continue;
    return Excluded(absl::StrCat("@ph.aligned promises that ", promise.extent(),
                                 " is a multiple of ", promise.multiple(), ", it is ", *extent));
  }
  return {};
}

Admission AdmitIndices(const KernelDescription& description, const VariantSettings& settings,
                       absl::Span<const v1::Extent> extents) {
  if (settings.index_bits() == 64) return {};
  for (const Parameter& parameter : description.parameters()) {
    if (!parameter.is_tensor()) continue;
    const auto elements = ElementCount(parameter, extents);
    if (!elements.ok()) return Excluded(std::string(elements.status().message()));
    if (elements->has_value() && **elements <= kMostElements32) continue;
    return {v1::VARIANT_STATUS_INDEX_OVERFLOW,
            absl::StrCat("tensor ", parameter.name(), " has ",
                         elements->has_value() ? absl::StrCat(**elements) : "more than 2^63 - 1",
                         " elements, 32-bit offsets reach 2^31 - 1: tune @ph.index_bits")};
  }
  return {};
}

Admission AdmitGrid(const KernelDescription& description, const v1::Grid& grid) {
  const auto refused = [&](const std::string& why) {
    return Admission{v1::VARIANT_STATUS_GRID_ERROR,
                     absl::StrCat("grid (", grid.x(), ", ", grid.y(), ", ", grid.z(), "): ", why)};
  };
  const StatusOr<int64_t> blocks = launch::BlockCount({grid.x(), grid.y(), grid.z()});
  if (!blocks.ok()) return {v1::VARIANT_STATUS_GRID_ERROR, blocks.status().message()};
  if (*blocks == 0) return refused("a side is 0; such a launch does nothing and is never timed");
  const std::pair<const char*, int64_t> sides[] = {
      {"x", grid.x()}, {"y", grid.y()}, {"z", grid.z()}};
  for (int i = 0; i < 3; ++i) {
    const auto& [name, size] = sides[i];
    if (size == 1 || (description.grid_dims_used() >> i & 1) != 0) continue;
    return refused(absl::StrCat("the kernel never reads ph.ctx.block.", name, ", so all its ", size,
                                " blocks would do the same; make that side 1"));
  }
  return {};
}

}  // namespace

Admission Admit(const KernelDescription& description, int variant,
                absl::Span<const v1::Extent> extents, absl::Span<const v1::Scalar> scalars,
                const v1::Grid* grid) {
  const auto& all = description.variants();
  const auto settings = std::find_if(
      all.begin(), all.end(), [variant](const VariantSettings& s) { return s.index() == variant; });
  if (settings == all.end()) {
    return Excluded(absl::StrCat("the kernel's space has no variant ", variant));
  }
  if (!settings->excluded_reason().empty()) return Excluded(settings->excluded_reason());
  const Values values = NamedValues(description, *settings, extents, scalars, grid);
  // The grid before the conditions, which may name it.
  Admission admission = grid != nullptr ? AdmitGrid(description, *grid) : Admission();
  if (admission.status == v1::VARIANT_STATUS_UNSPECIFIED) {
    admission = AdmitPromises(description, values);
  }
  if (admission.status == v1::VARIANT_STATUS_UNSPECIFIED) {
    admission = AdmitConditions(description, values, grid != nullptr);
  }
  if (admission.status == v1::VARIANT_STATUS_UNSPECIFIED) {
    admission = AdmitIndices(description, *settings, extents);
  }
  return admission;
}

Admission JudgeCompiled(const compiler::v1::Variant& variant) {
  switch (variant.status()) {
    case compiler::v1::VARIANT_STATUS_COMPILED:
      break;
    case compiler::v1::VARIANT_STATUS_COMPILE_ERROR:
      return {v1::VARIANT_STATUS_COMPILE_ERROR, variant.reason()};
    case compiler::v1::VARIANT_STATUS_RACE:
      return {v1::VARIANT_STATUS_RACE,
              variant.reason().empty() ? variant.race_detail() : variant.reason()};
    case compiler::v1::VARIANT_STATUS_UNSUPPORTED:
      return {v1::VARIANT_STATUS_UNSUPPORTED, variant.reason()};
    case compiler::v1::VARIANT_STATUS_EXCLUDED:
      return {v1::VARIANT_STATUS_EXCLUDED, variant.reason()};
    default:
      return {v1::VARIANT_STATUS_COMPILE_ERROR,
              absl::StrCat("the compiler gave a status that this daemon does not know (",
                           static_cast<int>(variant.status()), ")")};
  }
  switch (variant.race_verdict()) {
    case compiler::v1::RACE_VERDICT_RACE_FREE:
      return {};
    case compiler::v1::RACE_VERDICT_RACE:
      return {v1::VARIANT_STATUS_RACE, variant.race_detail()};
    case compiler::v1::RACE_VERDICT_UNPROVEN:
      if (variant.recording().has_artifact()) return {};
      return {v1::VARIANT_STATUS_RACE_CHECK_FAILED,
              absl::StrCat("could not be proved free of races: ", variant.race_detail(),
                           "; and there is no race-recording form of it: ",
                           variant.recording().reason().empty() ? "the compiler made none"
                                                                : variant.recording().reason())};
    default:
      return {v1::VARIANT_STATUS_RACE_CHECK_FAILED,
              absl::StrCat("the compiler gave no verdict on races (",
                           static_cast<int>(variant.race_verdict()), ")")};
  }
}

}  // namespace phobos::tuner
