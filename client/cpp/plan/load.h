// SPDX-License-Identifier: Apache-2.0
//
// Loads a variant's compiled code into this process, from the daemon's cache folder or, where that
// cannot be read from here (a container, another user's cache) or holds something else by now, from
// the bytes that the daemon sends. Bytes that are not those of the digest are never run. Any
// thread.
#ifndef PHOBOS_CLIENT_CPP_PLAN_LOAD_H_
#define PHOBOS_CLIENT_CPP_PLAN_LOAD_H_

#include <memory>

#include "client/cpp/gpu/gpu.h"
#include "client/cpp/plan/plan.h"
#include "client/launch/status.h"
#include "client/stub/daemon.h"

namespace phobos {

// `gpu`: the card; null: the host chip. On a GPU the code is read here, and loaded in a context by
// its first launch there. FailedPrecondition: not for this machine's processor. DataLoss: the bytes
// are not those of the digest.
StatusOr<std::shared_ptr<const LoadedVariant>> Load(stub::Daemon& daemon, const LaunchPlan& plan,
                                                    std::shared_ptr<Gpu> gpu,
                                                    const stub::Patience& patience);

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_PLAN_LOAD_H_
