// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/join/guilty.h"

#include <algorithm>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/engine/key.h"

namespace phobos::engine {
namespace {

constexpr char kKind[] = "guilty";

// Whether it ran to its end, if only to be found wrong.
bool CameThrough(const tuner::v1::VariantResult& variant) {
  return variant.status() == tuner::v1::VARIANT_STATUS_TIMED ||
         variant.status() == tuner::v1::VARIANT_STATUS_WRONG_RESULT ||
         variant.status() == tuner::v1::VARIANT_STATUS_OUT_OF_BOUNDS;
}

// A hang costs so much that it is remembered in any case.
bool IsGuilty(const tuner::v1::VariantResult& variant, bool device_works) {
  return variant.status() == tuner::v1::VARIANT_STATUS_TIMED_OUT ||
         (variant.status() == tuner::v1::VARIANT_STATUS_CRASHED && device_works);
}

bool Has(const std::vector<tuner::v1::VariantResult>& variants, int index) {
  return std::any_of(variants.begin(), variants.end(),
                     [&](const auto& variant) { return variant.index() == index; });
}

absl::Status Remember(cache::ResultStore& store, const std::string& name,
                      const std::vector<tuner::v1::VariantResult>& known,
                      const std::vector<tuner::v1::VariantResult>& variants,
                      absl::FunctionRef<bool(const tuner::v1::VariantResult&)> is_guilty,
                      const char* until) {
  if (variants.empty()) return absl::OkStatus();
  tuner::v1::ErrorDetail detail;
  for (const tuner::v1::VariantResult& variant : known) *detail.add_variants() = variant;
  for (const tuner::v1::VariantResult& variant : variants) {
    if (!is_guilty(variant) || Has(known, variant.index())) continue;
    tuner::v1::VariantResult& fact = *detail.add_variants();
    fact.set_index(variant.index());
    fact.set_status(variant.status());
    fact.set_reason(
        absl::StrCat(variant.reason(), " (in an earlier tune; not tried again with ", until, ")"));
  }
  const std::string fact = detail.SerializeAsString();
  const absl::StatusOr<std::optional<std::string>> before = store.Recall(kKind, name);
  if (before.ok() && before->value_or("") == fact) return absl::OkStatus();
  return store.Remember(kKind, name, fact);
}

}  // namespace

std::string GuiltyName(const std::string& source_digest, const std::string& compiler_fingerprint,
                       const tuner::v1::Device& device) {
  return absl::StrCat(source_digest, "\n", compiler_fingerprint, "\n", device.driver(), "\n",
                      device.card_name());
}

std::string RecordingsName(const std::string& guilty_name,
                           const google::protobuf::RepeatedPtrField<tuner::v1::Extent>& extents) {
  return absl::StrCat(guilty_name, "\nrecorded at ", ExtentsText(extents));
}

std::vector<tuner::v1::VariantResult> RecallGuilty(cache::ResultStore& store,
                                                   const std::string& name) {
  const absl::StatusOr<std::optional<std::string>> fact = store.Recall(kKind, name);
  tuner::v1::ErrorDetail detail;
  if (!fact.ok() || !fact->has_value() || !detail.ParseFromString(**fact)) return {};
  return {detail.variants().begin(), detail.variants().end()};
}

absl::Status RememberGuilty(cache::ResultStore& store, const std::string& name,
                            const std::vector<tuner::v1::VariantResult>& known,
                            const std::vector<tuner::v1::VariantResult>& variants) {
  const bool device_works = std::any_of(variants.begin(), variants.end(), CameThrough);
  const auto is_guilty = [device_works](const auto& variant) {
    return IsGuilty(variant, device_works);
  };
  return Remember(store, name, known, variants, is_guilty, "this compiler and driver");
}

absl::Status RememberRecordings(cache::ResultStore& store, const std::string& name,
                                const std::vector<tuner::v1::VariantResult>& known,
                                const std::vector<tuner::v1::VariantResult>& variants) {
  return Remember(
      store, name, known, variants, [](const auto& variant) { return variant.recording_died(); },
      "this compiler and driver at these extents, but by force");
}

}  // namespace phobos::engine
