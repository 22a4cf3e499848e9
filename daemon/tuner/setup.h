// SPDX-License-Identifier: Apache-2.0
//
// A tune's spec and arguments as the worker is told of them. Pure functions, any thread.
#ifndef PHOBOS_DAEMON_TUNER_SETUP_H_
#define PHOBOS_DAEMON_TUNER_SETUP_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/compile/runner.h"
#include "daemon/tuner/arguments.h"
#include "daemon/tuner/spec.h"
#include "daemon/worker/messages.pb.h"

namespace phobos::tuner {

// The tensors in parameter order and the slots in the ABI's. `seed` is of the canaries.
// InvalidArgument: something that the caller should have made sure of: a tensor, scalar or extent
// without a value, a tensor whose size is not its shape's, one whose address breaks its promise of
// alignment, a slot of no parameter.
absl::StatusOr<worker::JobSetup> MakeJobSetup(const Spec& spec, const compile::CompiledSpace& space,
                                              const Arguments& arguments, uint64_t seed);

// Slots of parameters, which stand before those of extents.
int ParameterSlots(const compile::CompiledSpace& space);

// Number of elements of a tensor parameter with these extents; nullopt: more than 2^63 - 1.
// InvalidArgument: an extent that has no value, or a negative one.
absl::StatusOr<std::optional<int64_t>> ElementCount(const compiler::v1::Parameter& parameter,
                                                    absl::Span<const v1::Extent> extents);

}  // namespace phobos::tuner

#endif  // PHOBOS_DAEMON_TUNER_SETUP_H_
