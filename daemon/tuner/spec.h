// SPDX-License-Identifier: Apache-2.0
//
// What is tuned and how: the values that go into a Tune (tune.h). Plain structs, any thread.
#ifndef PHOBOS_DAEMON_TUNER_SPEC_H_
#define PHOBOS_DAEMON_TUNER_SPEC_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::tuner {

// What is tuned. All of it validated by the caller: extents and scalars complete and of the right
// type.
struct Spec {
  compiler::v1::KernelDescription description;
  std::vector<v1::Extent> extents;     // all
  std::vector<v1::Scalar> scalars;     // all
  std::vector<v1::VariantGrid> grids;  // of the variants that are not excluded by the space
  v1::TuneOptions options;  // resolved: rtol/atol only when given, flush_l2 and tie_break set
  // Variants known to be guilty (crashed or hung in an earlier tune with this compiler and driver):
  // index, status and reason. They are left out without another try.
  std::vector<v1::VariantResult> guilty;
};

// How it is tuned. The defaults are the requirements'; tests shrink them.
struct Measuring {
  int rounds = 20;       // clean ones
  int most_rounds = 60;  // of all
  absl::Duration warm_up = absl::Milliseconds(300);
  absl::Duration longest_gap = absl::Milliseconds(100);  // a longer one warms up again
  absl::Duration shortest_launch_limit = absl::Seconds(1);
  absl::Duration longest_launch_limit = absl::Seconds(10);
  uint64_t seed = 0;                               // of canaries; 0: a random one
  std::function<absl::Time()> clock = &absl::Now;  // by which gaps and phases are measured
};

}  // namespace phobos::tuner

#endif  // PHOBOS_DAEMON_TUNER_SPEC_H_
