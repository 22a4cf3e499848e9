// SPDX-License-Identifier: Apache-2.0
//
// An absl::Status that carries an ErrorDetail: what the daemon's rooms return when a caller should
// be told more than a code and a sentence. rpc/status.h puts the detail on the wire. Pure
// functions, any thread.
#ifndef PHOBOS_DAEMON_ERROR_ERROR_H_
#define PHOBOS_DAEMON_ERROR_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::error {

// REQUIRES: code is not OK. `message` says what was wrong, `remedy` in one sentence what to do (it
// is also appended to the message, for callers that show only that).
absl::Status Make(absl::StatusCode code, tuner::v1::ErrorReason reason, const std::string& message,
                  const std::string& remedy = "");

// What a call of the system answered with this errno, as the caller's error. Where the machine
// lacks something that somebody can give it (room on a disk, rights, descriptors, memory) it is
// Unavailable or ResourceExhausted, never an error of the caller's own, and has MACHINE and the
// remedy; others are as Abseil has them. `call` names the call, with the path where there is one.
absl::Status FromErrno(int error, const std::string& call);

// To those who wait when the daemon ends.
absl::Status Stopping();

// What to do about blocks that race.
inline constexpr char kRaceRemedy[] =
    "let no block touch an element that another one writes, and no scatter name one twice: give "
    "each block elements of its own, or update those that are shared by ph.atomic_add and the like";

// `status` with this detail instead of the one it has. OK stays OK.
absl::Status Attach(const absl::Status& status, const tuner::v1::ErrorDetail& detail);

// The detail that Make or Attach put there; an empty one when there is none.
tuner::v1::ErrorDetail DetailOf(const absl::Status& status);

// `status` with its detail's kernel and key set, and `reason` where it has none yet.
absl::Status About(const absl::Status& status, tuner::v1::ErrorReason reason,
                   const std::string& kernel, const std::string& key);

}  // namespace phobos::error

#endif  // PHOBOS_DAEMON_ERROR_ERROR_H_
