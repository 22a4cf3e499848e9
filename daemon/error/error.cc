// SPDX-License-Identifier: Apache-2.0
#include "daemon/error/error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace phobos::error {
namespace {

constexpr char kDetailUrl[] = "type.googleapis.com/phobos.tuner.v1.ErrorDetail";

}  // namespace

absl::Status Make(absl::StatusCode code, tuner::v1::ErrorReason reason, const std::string& message,
                  const std::string& remedy) {
  tuner::v1::ErrorDetail detail;
  detail.set_reason(reason);
  detail.set_remedy(remedy);
  const std::string text = remedy.empty() ? message : absl::StrCat(message, "; ", remedy);
  return Attach(absl::Status(code, text), detail);
}

absl::Status Attach(const absl::Status& status, const tuner::v1::ErrorDetail& detail) {
  absl::Status attached = status;
  attached.SetPayload(kDetailUrl, absl::Cord(detail.SerializeAsString()));
  return attached;
}

tuner::v1::ErrorDetail DetailOf(const absl::Status& status) {
  tuner::v1::ErrorDetail detail;
  const absl::optional<absl::Cord> payload = status.GetPayload(kDetailUrl);
  if (payload.has_value() && !detail.ParseFromString(std::string(*payload))) detail.Clear();
  return detail;
}

absl::Status About(const absl::Status& status, tuner::v1::ErrorReason reason,
                   const std::string& kernel, const std::string& key) {
  tuner::v1::ErrorDetail detail = DetailOf(status);
  if (detail.reason() == tuner::v1::ERROR_REASON_UNSPECIFIED) detail.set_reason(reason);
  detail.set_kernel(kernel);
  detail.set_key(key);
  return Attach(status, detail);
}

}  // namespace phobos::error
