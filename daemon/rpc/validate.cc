// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/validate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "daemon/error/error.h"

namespace phobos::rpc {
namespace {

constexpr size_t kMostSource = 1 << 20;
constexpr size_t kLongestName = 1024;
constexpr size_t kLongestFileName = 4096;
// Extents, scalars, tensors of one kernel, and variants of one space by language's limits, with
// room.
constexpr int kMostOfAKind = 1024;
constexpr int kMostGrids = 1 << 16;
constexpr size_t kMostStepBytes = 1 << 20;

absl::Status BadArgument(const std::string& message, const std::string& remedy) {
  return error::Make(absl::StatusCode::kInvalidArgument, tuner::v1::ERROR_REASON_BAD_ARGUMENT,
                     message, remedy);
}

absl::Status TooMuch(const std::string& message) {
  return error::Make(absl::StatusCode::kResourceExhausted, tuner::v1::ERROR_REASON_LIMIT, message);
}

// A name that can also be part of a file's.
bool IsPlainName(const std::string& text) {
  return !text.empty() && text.size() <= kLongestName && text[0] != '.' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}

absl::Status CheckExtents(const google::protobuf::RepeatedPtrField<tuner::v1::Extent>& extents) {
  if (extents.size() > kMostOfAKind)
    return TooMuch(absl::StrCat(extents.size(), " extents are too many"));
  return absl::OkStatus();
}

absl::Status CheckTolerance(bool is_given, double value, const char* name) {
  if (!is_given || (std::isfinite(value) && value >= 0)) return absl::OkStatus();
  return BadArgument(absl::StrCat(name, " is ", value),
                     "give a finite number that is not negative");
}

absl::Status CheckTimeout(int64_t ms, const char* name) {
  if (ms >= 0) return absl::OkStatus();
  return BadArgument(absl::StrCat(name, " is negative"), "leave it 0 for the default");
}

absl::Status CheckOpen(const tuner::v1::Open& open) {
  RETURN_IF_ERROR(rpc::Check(open.kernel()));
  RETURN_IF_ERROR(CheckExtents(open.extents()));
  if (open.scalars_size() > kMostOfAKind || open.tensor_bytes_size() > kMostOfAKind ||
      open.held_segments_size() > kMostOfAKind) {
    return TooMuch("too many scalars, tensors or segments");
  }
  RETURN_IF_ERROR(CheckTolerance(open.options().has_rtol(), open.options().rtol(), "rtol"));
  RETURN_IF_ERROR(CheckTolerance(open.options().has_atol(), open.options().atol(), "atol"));
  RETURN_IF_ERROR(CheckTimeout(open.queue_timeout_ms(), "queue_timeout_ms"));
  RETURN_IF_ERROR(CheckTimeout(open.run_timeout_ms(), "run_timeout_ms"));
  RETURN_IF_ERROR(CheckTimeout(open.upload_timeout_ms(), "upload_timeout_ms"));
  return CheckTimeout(open.reference_timeout_ms(), "reference_timeout_ms");
}

}  // namespace

absl::Status Check(const tuner::v1::KernelRef& ref) {
  if (!IsSha256Hex(ref.text_digest())) {
    return BadArgument("text_digest is no digest",
                       "send the text's SHA-256 as 64 lower-case hex digits");
  }
  if (ref.kernel().empty() || ref.kernel().size() > kLongestName) {
    return BadArgument("the kernel's name is empty or too long",
                       "send the name of the @ph.kernel function");
  }
  if (ref.file_name().size() > kLongestFileName)
    return TooMuch("file_name is longer than 4096 bytes");
  if (ref.source_text().size() > kMostSource) {
    return TooMuch(
        absl::StrCat("the source has ", ref.source_text().size(),
                     " bytes, at most 1048576 are taken; put the kernel into a file of its own"));
  }
  return absl::OkStatus();
}

absl::Status Check(const tuner::v1::LookupRequest& request) {
  RETURN_IF_ERROR(Check(request.kernel()));
  return CheckExtents(request.extents());
}

absl::Status Check(const tuner::v1::CompileRequest& request) { return Check(request.kernel()); }

absl::Status Check(const tuner::v1::GetArtifactRequest& request) {
  if (!IsSha256Hex(request.digest()))
    return BadArgument("digest is no digest", "send LaunchPlan.artifact.digest");
  if (!IsPlainName(request.chip()))
    return BadArgument("chip is no chip's name", "send LaunchPlan.chip");
  if (!IsPlainName(request.file()))
    return BadArgument("file is no file name", "send LaunchPlan.artifact.file");
  return absl::OkStatus();
}

absl::Status Check(const tuner::v1::TuneRequest& request) {
  if (request.has_open()) return CheckOpen(request.open());
  if (request.ByteSizeLong() > kMostStepBytes || request.args().grids_size() > kMostGrids) {
    return TooMuch("the step is too large");
  }
  return absl::OkStatus();
}

}  // namespace phobos::rpc
