// SPDX-License-Identifier: Apache-2.0
//
// Whether the tolerances that a caller asks for are allowed: they may widen what a type's rounding
// needs, never narrow it. The defaults themselves are in worker/check/compare.h. Pure, any thread.
#ifndef PHOBOS_DAEMON_TUNER_TOLERANCE_H_
#define PHOBOS_DAEMON_TUNER_TOLERANCE_H_

#include "absl/status/status.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::tuner {

// InvalidArgument names the option, the tensor and the least value, where an rtol or atol is below
// the default of a float tensor that the kernel writes.
absl::Status CheckTolerances(const compiler::v1::KernelDescription& description,
                             const v1::TuneOptions& options);

}  // namespace phobos::tuner

#endif  // PHOBOS_DAEMON_TUNER_TOLERANCE_H_
