// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner/tolerance.h"

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "daemon/worker/check/compare.h"

namespace phobos::tuner {
namespace {

absl::Status CheckOne(const char* name, double asked, double least, const std::string& tensor) {
  if (asked >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s=%g is smaller than the %g that the type of %s needs; a tolerance may only "
      "widen: leave it out or give at least %g",
      name, asked, least, tensor, least));
}

}  // namespace

absl::Status CheckTolerances(const compiler::v1::KernelDescription& description,
                             const v1::TuneOptions& options) {
  for (const compiler::v1::Parameter& parameter : description.parameters()) {
    if (!parameter.is_tensor() || !parameter.is_written()) continue;
    const worker::Tolerance least = worker::DefaultTolerance(parameter.dtype());
    if (options.has_rtol()) {
      RETURN_IF_ERROR(CheckOne("rtol", options.rtol(), least.rtol, parameter.name()));
    }
    if (options.has_atol()) {
      RETURN_IF_ERROR(CheckOne("atol", options.atol(), least.atol, parameter.name()));
    }
  }
  return absl::OkStatus();
}

}  // namespace phobos::tuner
