// SPDX-License-Identifier: Apache-2.0
//
// What every request must be before the engine sees it: digests that are digests, names that are
// names, sizes within their caps. What depends on the kernel (its extents, its scalars) is checked
// by the engine. Pure functions, any thread.
#ifndef PHOBOS_DAEMON_RPC_VALIDATE_H_
#define PHOBOS_DAEMON_RPC_VALIDATE_H_

#include "absl/status/status.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"

namespace phobos::rpc {

// InvalidArgument with reason BAD_ARGUMENT names the field and what it takes; ResourceExhausted
// with reason LIMIT the cap.
absl::Status Check(const tuner::v1::KernelRef& ref);
absl::Status Check(const tuner::v1::LookupRequest& request);
absl::Status Check(const tuner::v1::CompileRequest& request);
absl::Status Check(const tuner::v1::GetArtifactRequest& request);
// Of Open: all of it; of the other steps: their size.
absl::Status Check(const tuner::v1::TuneRequest& request);

}  // namespace phobos::rpc

#endif  // PHOBOS_DAEMON_RPC_VALIDATE_H_
