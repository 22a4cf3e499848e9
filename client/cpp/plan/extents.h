// SPDX-License-Identifier: Apache-2.0
//
// What a launch's extents mean beside what is stored: its key, and whether a recording of races was
// made at them. Values are by index of the description's extents. Pure, any thread.
#ifndef PHOBOS_CLIENT_CPP_PLAN_EXTENTS_H_
#define PHOBOS_CLIENT_CPP_PLAN_EXTENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/stub/wire/types.h"

namespace phobos {

// Values of the key's extents, in the key's order.
std::vector<int64_t> KeyOf(const KernelDescription& description,
                           const std::vector<int64_t>& extents);

// The values with their names.
std::vector<Extent> NamedExtents(const KernelDescription& description,
                                 const std::vector<int64_t>& extents);

// The extents that the recording of the winner saw; none where it is proved free of races.
std::vector<Extent> RecordedExtents(const Result& result);

// What to tell the user of a launch at `extents` of what was recorded at `recorded`; empty:
// nothing. One text for all other extents, so that it can be told once.
std::string RemarkOnExtents(const KernelDescription& description,
                            const std::vector<int64_t>& extents,
                            const std::vector<Extent>& recorded);

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_PLAN_EXTENTS_H_
