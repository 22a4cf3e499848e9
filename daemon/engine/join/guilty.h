// SPDX-License-Identifier: Apache-2.0
//
// Which variants of a kernel crashed or hung on this chip, remembered over tunes and restarts, so
// that each costs its worker deaths once. A fact holds for one source, compiler, driver and card;
// any other starts without guilt. Wrong results are not remembered: finding them costs one launch.
// Nor are crashes where no variant came through: then the device may be what is at fault. A forced
// tune tries the guilty again. Race-recording forms that crashed or did not end are remembered by
// themselves and with the extents, for how long one takes depends on them. Any thread.
#ifndef PHOBOS_DAEMON_ENGINE_JOIN_GUILTY_H_
#define PHOBOS_DAEMON_ENGINE_JOIN_GUILTY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cache/result_store.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::engine {

// The name under which a kernel's guilty variants are remembered.
std::string GuiltyName(const std::string& source_digest, const std::string& compiler_fingerprint,
                       const tuner::v1::Device& device);

// The name under which those are remembered of which the race-recording form died at these extents.
std::string RecordingsName(const std::string& guilty_name,
                           const google::protobuf::RepeatedPtrField<tuner::v1::Extent>& extents);

// Index, status and reason of each; none where nothing is remembered or nothing can be read.
std::vector<tuner::v1::VariantResult> RecallGuilty(cache::ResultStore& store,
                                                   const std::string& name);

// Remembers `known`, which the tune left out, and those of its `variants` that are guilty. Where
// there are no variants, so that nothing was learnt, what was remembered stays. Errors as
// ResultStore::Remember.
absl::Status RememberGuilty(cache::ResultStore& store, const std::string& name,
                            const std::vector<tuner::v1::VariantResult>& known,
                            const std::vector<tuner::v1::VariantResult>& variants);

// The same of those whose race-recording form died.
absl::Status RememberRecordings(cache::ResultStore& store, const std::string& name,
                                const std::vector<tuner::v1::VariantResult>& known,
                                const std::vector<tuner::v1::VariantResult>& variants);

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_JOIN_GUILTY_H_
