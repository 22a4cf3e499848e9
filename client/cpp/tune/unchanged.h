// SPDX-License-Identifier: Apache-2.0
//
// The guard against kernels that do nothing: where a caller's output holds the right answer already
// (from an earlier launch, say), a variant that writes nothing would pass the check. Such an output
// is overwritten before the tune, by values that are certainly wrong. Pure, any thread.
#ifndef PHOBOS_CLIENT_CPP_TUNE_UNCHANGED_H_
#define PHOBOS_CLIENT_CPP_TUNE_UNCHANGED_H_

#include <cstddef>
#include <cstdint>

#include "client/stub/wire/types.h"

namespace phobos {

// Tolerances as a tune has them: |got - want| <= atol + rtol * max(|want|, rms(want)).
struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

// The type's own, widened by what the options ask for.
Tolerance ToleranceFor(DType dtype, const TuneOptions& options);

// Elements of a tensor.
struct Part {
  int64_t begin = 0;
  int64_t count = 0;
};

// Whether the check of the tuner would take `got`, which is one part of a tensor, for that part of
// `want`, which is the whole one, of `count` elements.
bool IsAccepted(DType dtype, const void* got, const void* want, int64_t count,
                const Tolerance& tolerance, const Part& part);

// Fills `out` with elements of which each differs from that of `want`, by far.
void FillWithWrong(DType dtype, const void* want, int64_t count, void* out);

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_TUNE_UNCHANGED_H_
