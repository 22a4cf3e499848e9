// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/setup.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "daemon/worker/check/dtype.h"

namespace phobos::tuner {
namespace {

using compiler::v1::Parameter;

const v1::Extent* FindExtent(absl::Span<const v1::Extent> extents, const std::string& name) {
  const auto found = std::find_if(extents.begin(), extents.end(),
                                  [&](const v1::Extent& extent) { return extent.name() == name; });
  return found == extents.end() ? nullptr : &*found;
}

absl::StatusOr<std::vector<int64_t>> Shape(const Parameter& parameter,
                                           absl::Span<const v1::Extent> extents) {
  std::vector<int64_t> shape;
  for (const compiler::v1::Dimension& dimension : parameter.dims()) {
    if (dimension.extent().empty()) {
      shape.push_back(dimension.literal());
      continue;
    }
    const v1::Extent* extent = FindExtent(extents, dimension.extent());
    if (extent == nullptr || extent->value() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("extent ", dimension.extent(), " of ", parameter.name(),
                       extent == nullptr ? " has no value" : " is negative"));
    }
    shape.push_back(extent->value());
  }
  return shape;
}

std::string CannotTune(const std::string& parameter, absl::string_view why) {
  return absl::StrCat("cannot tune with this ", parameter, ": ", why);
}

absl::StatusOr<worker::TensorSetup> MakeTensor(const Parameter& parameter, const Spec& spec,
                                               const Arguments& arguments) {
  const auto& copies = arguments.tensors();
  const auto copy = std::find_if(copies.begin(), copies.end(), [&](const Arguments::Copied& c) {
    return c.parameter == parameter.name();
  });
  if (copy == copies.end()) {
    return absl::InvalidArgumentError(CannotTune(parameter.name(), "it was not uploaded"));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> shape, Shape(parameter, spec.extents));
  ASSIGN_OR_RETURN(const std::optional<int64_t> elements, ElementCount(parameter, spec.extents));
  const int64_t element_bytes = worker::ElementBytes(parameter.dtype());
  if (!elements.has_value() || element_bytes == 0 || copy->bytes % element_bytes != 0 ||
      copy->bytes / element_bytes != *elements) {
    return absl::InvalidArgumentError(CannotTune(
        parameter.name(), absl::StrCat("its shape has ", elements.value_or(-1), " elements of ",
                                       element_bytes, " bytes, it has ", copy->bytes, " bytes")));
  }
  // An address is known modulo 256 only: a larger promise is judged by what is known of it.
  const int64_t promise = std::min<int64_t>(parameter.aligned_bytes(), 256);
  if (promise > 1 && copy->address_mod_256 % promise != 0) {
    return absl::InvalidArgumentError(CannotTune(
        parameter.name(),
        absl::StrCat("@ph.aligned promises an address that is a multiple of ",
                     parameter.aligned_bytes(), ", it is ", copy->address_mod_256, " modulo 256")));
  }
  worker::TensorSetup tensor;
  tensor.set_parameter(parameter.name());
  tensor.set_memory(copy->memory);
  tensor.set_offset_bytes(copy->offset_bytes);
  tensor.set_bytes(copy->bytes);
  tensor.set_address_mod_256(copy->address_mod_256);
  tensor.set_dtype(parameter.dtype());
  tensor.set_is_written(parameter.is_written());
  tensor.set_is_restored(parameter.is_written() && parameter.is_read());
  tensor.set_expected_memory(copy->expected_memory);
  tensor.set_expected_offset_bytes(copy->expected_offset_bytes);
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  return tensor;
}

constexpr absl::string_view kExtentSlot = "extent:";

// The value of a slot that is no tensor: an extent, or a scalar's bits, zero-extended.
absl::StatusOr<uint64_t> SlotValue(const std::string& slot, const Spec& spec) {
  absl::string_view name = slot;
  if (absl::ConsumePrefix(&name, kExtentSlot)) {
    const v1::Extent* extent = FindExtent(spec.extents, std::string(name));
    if (extent == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("extent ", name, " has no value"));
    }
    return static_cast<uint64_t>(extent->value());
  }
  for (const v1::Scalar& scalar : spec.scalars) {
    if (scalar.name() != slot) continue;
    if (scalar.bits().size() > sizeof(uint64_t)) break;
    uint64_t value = 0;
    for (size_t i = 0; i < scalar.bits().size(); ++i) {
      value |= uint64_t{static_cast<uint8_t>(scalar.bits()[i])} << (8 * i);
    }
    return value;
  }
  return absl::InvalidArgumentError(absl::StrCat("scalar ", slot, " has no value"));
}

}  // namespace

absl::StatusOr<std::optional<int64_t>> ElementCount(const Parameter& parameter,
                                                    absl::Span<const v1::Extent> extents) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> shape, Shape(parameter, extents));
  int64_t count = 1;
  bool overflow = false;
  for (const int64_t side : shape) {
    if (side == 0) return std::optional<int64_t>(0);
    overflow |= __builtin_mul_overflow(count, side, &count);
  }
  if (overflow) return std::optional<int64_t>();
  return std::optional<int64_t>(count);
}

int ParameterSlots(const compile::CompiledSpace& space) {
  return static_cast<int>(
      std::count_if(space.slots.begin(), space.slots.end(),
                    [](const std::string& slot) { return !absl::StartsWith(slot, kExtentSlot); }));
}

absl::StatusOr<worker::JobSetup> MakeJobSetup(const Spec& spec, const compile::CompiledSpace& space,
                                              const Arguments& arguments, uint64_t seed) {
  worker::JobSetup setup;
  std::map<std::string, int> tensors;
  for (const Parameter& parameter : spec.description.parameters()) {
    if (!parameter.is_tensor()) continue;
    tensors[parameter.name()] = setup.tensors_size();
    ASSIGN_OR_RETURN(*setup.add_tensors(), MakeTensor(parameter, spec, arguments));
  }
  for (const std::string& slot : space.slots) {
    worker::SlotSetup* made = setup.add_slots();
    const auto tensor = tensors.find(slot);
    made->set_tensor(tensor == tensors.end() ? -1 : tensor->second);
    if (tensor != tensors.end()) continue;
    ASSIGN_OR_RETURN(const uint64_t value, SlotValue(slot, spec));
    made->set_value(value);
  }
  setup.set_has_rtol(spec.options.has_rtol());
  setup.set_rtol(spec.options.rtol());
  setup.set_has_atol(spec.options.has_atol());
  setup.set_atol(spec.options.atol());
  setup.set_seed(seed);
  setup.set_arguments_token(arguments.token());
  setup.set_flush(spec.options.flush_l2());
  return setup;
}

}  // namespace phobos::tuner
