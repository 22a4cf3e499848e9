// SPDX-License-Identifier: Apache-2.0
//
// Whether a compiled variant may be launched with given extents, scalars and grid. Shared by the
// tuner, which leaves out what may not, and by the engine, which looks for a winner that may. Pure
// functions, any thread.
#ifndef PHOBOS_DAEMON_TUNER_ADMISSION_H_
#define PHOBOS_DAEMON_TUNER_ADMISSION_H_

#include <string>

#include "absl/types/span.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::tuner {

// Why a variant cannot be launched: a false condition, 32-bit offsets and a large tensor, an
// impossible grid; or the compiler's own word on it.
struct Admission {
  v1::VariantStatus status = v1::VARIANT_STATUS_UNSPECIFIED;  // UNSPECIFIED: admissible
  std::string reason;
};

// `grid` null: it is not known yet, and what hangs on it is left open.
Admission Admit(const compiler::v1::KernelDescription& description, int variant,
                absl::Span<const v1::Extent> extents, absl::Span<const v1::Scalar> scalars,
                const v1::Grid* grid);

// What the compiler's word alone makes of a variant: only one that compiled and is proved free of
// races is admissible, or one that NeedsRecording before it may be launched for its results.
Admission JudgeCompiled(const compiler::v1::Variant& variant);

// Whether only a launch of its race-recording form can tell if a variant has races.
inline bool NeedsRecording(const compiler::v1::Variant& variant) {
  return variant.race_verdict() == compiler::v1::RACE_VERDICT_UNPROVEN;
}

}  // namespace phobos::tuner

#endif  // PHOBOS_DAEMON_TUNER_ADMISSION_H_
