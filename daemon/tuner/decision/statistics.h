// SPDX-License-Identifier: Apache-2.0
//
// What a variant's samples come to. Pure functions, any thread.
#ifndef PHOBOS_DAEMON_TUNER_DECISION_STATISTICS_H_
#define PHOBOS_DAEMON_TUNER_DECISION_STATISTICS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace phobos::tuner {

// All of one variant; zeros before there are samples.
struct Statistics {
  int64_t best_ns = 0;           // the variant's time: its fastest sample
  int64_t median_ns = 0;         // of an even number: the mean of the middle two, rounded down
  double spread = 0;             // (max - min) / min
  int64_t interquartile_ns = 0;  // third quartile less the first, each by linear interpolation
};

// REQUIRES: not empty, all positive. In any order.
Statistics Summarize(absl::Span<const int64_t> samples_ns);

}  // namespace phobos::tuner

#endif  // PHOBOS_DAEMON_TUNER_DECISION_STATISTICS_H_
