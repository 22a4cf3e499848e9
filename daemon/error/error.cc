// SPDX-License-Identifier: Apache-2.0
#include "daemon/error/error.h"

#include <errno.h>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace phobos::error {
namespace {

constexpr char kDetailUrl[] = "type.googleapis.com/phobos.tuner.v1.ErrorDetail";

// What the machine lacks when a call of the system fails so, and what to do.
struct Lack {
  absl::StatusCode code = absl::StatusCode::kOk;  // OK: it lacks nothing
  const char* remedy = "";
};

Lack LackOf(int error, bool is_on_disk) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EROFS:
    case EACCES:
    case EPERM:
      if (!is_on_disk) return {};
      return {absl::StatusCode::kUnavailable, kDiskRemedy};
    case EMFILE:
      return {absl::StatusCode::kResourceExhausted,
              "close other clients, or start the daemon with a higher limit of open files "
              "(ulimit -n, or LimitNOFILE= of its unit)"};
    case ENFILE:
      return {absl::StatusCode::kResourceExhausted,
              "end programs that hold many files, or raise the system's limit (fs.file-max)"};
    case EFBIG:
      return {absl::StatusCode::kResourceExhausted,
              "start the daemon with a higher limit of a file's size (ulimit -f, or LimitFSIZE= of "
              "its unit)"};
    case ENOMEM:
    case EAGAIN:
      return {absl::StatusCode::kResourceExhausted, kLimitsRemedy};
    default:
      return {};
  }
}

}  // namespace

absl::Status Make(absl::StatusCode code, tuner::v1::ErrorReason reason, const std::string& message,
                  const std::string& remedy) {
  tuner::v1::ErrorDetail detail;
  detail.set_reason(reason);
  detail.set_remedy(remedy);
  const std::string text = remedy.empty() ? message : absl::StrCat(message, "; ", remedy);
  return Attach(absl::Status(code, text), detail);
}

absl::Status FromErrno(int error, const std::string& call, const std::string& path) {
  const std::string what = path.empty() ? call : absl::StrCat(call, " ", path);
  if (error == 0) return absl::InternalError(absl::StrCat(what, " failed, and gave no cause"));
  const Lack lack = LackOf(error, !path.empty());
  const absl::Status status = absl::ErrnoToStatus(error, what);
  if (lack.code == absl::StatusCode::kOk) return status;
  return Make(lack.code, tuner::v1::ERROR_REASON_MACHINE, std::string(status.message()),
              lack.remedy);
}

absl::Status Stopping() {
  return Make(absl::StatusCode::kUnavailable, tuner::v1::ERROR_REASON_DRAINING,
              "the daemon is stopping", "connect again");
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
