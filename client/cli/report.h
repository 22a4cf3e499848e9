// SPDX-License-Identifier: Apache-2.0
//
// The daemon's answers as text for people. JSON is protobuf's own. Pure but for the local time
// zone, any thread.
#ifndef PHOBOS_CLIENT_CLI_REPORT_H_
#define PHOBOS_CLIENT_CLI_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/phobos/tuner/v1/admin.pb.h"
#include "proto/phobos/tuner/v1/cache.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::cli {

std::string StatusText(const tuner::v1::GetStatusResponse& status, int64_t now_unix_ms);
std::string ResultsText(const std::vector<tuner::v1::ResultSummary>& results);
// Why no Result fits `filter`: for each of its values that none of `all`, every stored Result, has,
// the values that there are.
std::string NoneFitsText(const tuner::v1::ResultFilter& filter,
                         const std::vector<tuner::v1::ResultSummary>& all);
std::string ResultText(const tuner::v1::Result& result);

}  // namespace phobos::cli

#endif  // PHOBOS_CLIENT_CLI_REPORT_H_
