// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/key.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"

namespace phobos::engine {
namespace {

int64_t ValueOf(absl::Span<const tuner::v1::Extent> extents, const std::string& name) {
  const auto found = std::find_if(extents.begin(), extents.end(),
                                  [&](const auto& extent) { return extent.name() == name; });
  return found == extents.end() ? 0 : found->value();
}

std::string ConstantText(const compiler::v1::Constant& constant) {
  switch (constant.value_case()) {
    case compiler::v1::Constant::kIntValue:
      return absl::StrCat(constant.name(), "=", constant.int_value());
    case compiler::v1::Constant::kFloatValue:
      return absl::StrCat(constant.name(), "=", constant.float_value());
    case compiler::v1::Constant::kBoolValue:
      return absl::StrCat(constant.name(), "=", constant.bool_value() ? "True" : "False");
    case compiler::v1::Constant::kStringValue:
      return absl::StrCat(constant.name(), "=", constant.string_value());
    case compiler::v1::Constant::VALUE_NOT_SET:
      break;
  }
  return absl::StrCat(constant.name(), "=?");
}

}  // namespace

cache::KeyColumns MakeKey(const compiler::v1::KernelDescription& description,
                          const tuner::v1::Device& device,
                          absl::Span<const tuner::v1::Extent> extents) {
  cache::KeyColumns key;
  key.kernel = description.kernel();
  key.source_digest = description.source_digest();
  key.chip = device.chip();
  key.card_name = device.card_name();
  // A field's value is escaped, so that no value can look like another field.
  key.text = absl::StrCat("format=", kKeyFormat, "\nkernel=", absl::CEscape(key.kernel),
                          "\nsource=", absl::CEscape(key.source_digest),
                          "\nchip=", absl::CEscape(key.chip),
                          "\ncard=", absl::CEscape(key.card_name), "\n");
  for (const std::string& name : description.key()) {
    key.values.emplace_back(name, ValueOf(extents, name));
    absl::StrAppend(&key.text, "extent ", absl::CEscape(name), "=", key.values.back().second, "\n");
  }
  key.digest = Sha256Hex(key.text);
  return key;
}

std::string ValuesText(absl::Span<const cache::KeyValue> values) {
  return absl::StrJoin(values, " ", absl::PairFormatter("="));
}

std::string ExtentsText(const google::protobuf::RepeatedPtrField<tuner::v1::Extent>& extents) {
  return absl::StrJoin(extents, " ", [](std::string* out, const tuner::v1::Extent& extent) {
    absl::StrAppend(out, extent.name(), "=", extent.value());
  });
}

std::string SettingsText(
    const google::protobuf::RepeatedPtrField<compiler::v1::Constant>& settings) {
  return absl::StrJoin(settings, " ", [](std::string* out, const compiler::v1::Constant& constant) {
    absl::StrAppend(out, ConstantText(constant));
  });
}

std::string OptionsText(const tuner::v1::TuneOptions& options) {
  const std::string rtol =
      options.has_rtol() ? absl::StrFormat("%.17g", options.rtol()) : "default";
  const std::string atol =
      options.has_atol() ? absl::StrFormat("%.17g", options.atol()) : "default";
  return absl::StrCat("rtol=", rtol, " atol=", atol, " flush_l2=", options.flush_l2() ? 1 : 0,
                      " tie_break=", static_cast<int>(options.tie_break()));
}

tuner::v1::TuneOptions Resolved(const tuner::v1::TuneOptions& options,
                                tuner::v1::TieBreak tie_break) {
  tuner::v1::TuneOptions resolved = options;
  if (!options.has_flush_l2()) resolved.set_flush_l2(true);
  // A policy of a later version is the daemon's own here.
  const bool is_known = options.tie_break() == tuner::v1::TIE_BREAK_FASTEST ||
                        options.tie_break() == tuner::v1::TIE_BREAK_FIRST_WITHIN_NOISE;
  if (!is_known) resolved.set_tie_break(tie_break);
  return resolved;
}

}  // namespace phobos::engine
