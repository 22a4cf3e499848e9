// SPDX-License-Identifier: Apache-2.0
//
// Reads the stores of all chips as one: pages of summaries, newest first, and single Results by
// their key's digest. Any thread.
#ifndef PHOBOS_DAEMON_ENGINE_LIST_H_
#define PHOBOS_DAEMON_ENGINE_LIST_H_

#include <string>

#include "absl/status/statusor.h"
#include "daemon/engine/chips.h"
#include "proto/phobos/tuner/v1/cache.pb.h"

namespace phobos::engine {

// InvalidArgument: a page size out of range, a page token that is none.
absl::StatusOr<tuner::v1::ListResultsResponse> ListResults(
    Chips& chips, const tuner::v1::ListResultsRequest& request);

// NotFound names keys that begin alike. InvalidArgument: a prefix that fits several keys, or of
// less than 4 digits.
absl::StatusOr<tuner::v1::Result> GetResult(Chips& chips,
                                            const tuner::v1::GetResultRequest& request);

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_LIST_H_
