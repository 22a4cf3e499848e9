// SPDX-License-Identifier: Apache-2.0
//
// Which variant wins. Pure functions, any thread.
#ifndef PHOBOS_DAEMON_TUNER_DECISION_CHOICE_H_
#define PHOBOS_DAEMON_TUNER_DECISION_CHOICE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/tuner/decision/statistics.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::tuner {

// A variant that passed and has samples.
struct Candidate {
  int variant = 0;
  Statistics statistics;
};

struct Choice {
  int winner = 0;
  std::vector<int> ties;  // within noise of the fastest, the fastest among them; in order of index
};

// The fastest, the lower index where times are equal; or, by TIE_BREAK_FIRST_WITHIN_NOISE, the
// lowest index among the ties. A tie: best <= fastest * (1 + max(0.5 %, IQR / median of the
// fastest)), or no farther from the fastest than the timer can tell. REQUIRES: candidates is not
// empty, in order of index.
Choice Choose(absl::Span<const Candidate> candidates, int64_t timer_resolution_ns,
              v1::TieBreak tie_break);

}  // namespace phobos::tuner

#endif  // PHOBOS_DAEMON_TUNER_DECISION_CHOICE_H_
