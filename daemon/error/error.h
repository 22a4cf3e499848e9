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

// What to do about a disk that refuses, in the message's folder.
inline constexpr char kDiskRemedy[] =
    "make room there, or give the daemon's user access, or start the daemon with another "
    "--cache-dir (or PHOBOS_KERNEL_CACHE_DIR)";

// What to do when the system gives no more memory, processes or open files.
inline constexpr char kLimitsRemedy[] =
    "end other programs, or raise the limits of memory, processes and open files that the daemon "
    "runs under";

// What a call of the system answered with this errno, as the caller's error; never OK. Where the
// machine lacks something that somebody can give it, it has MACHINE and the remedy: of descriptors,
// memory and processes (EMFILE, ENFILE, ENOMEM, EAGAIN) it is ResourceExhausted, and of a disk's
// room and rights (ENOSPC, EDQUOT, EROFS, EACCES, EPERM) it is Unavailable where there is a `path`.
// Others, and those of the disk for a call without a path, are as Abseil has them. 0: Internal.
absl::Status FromErrno(int error, const std::string& call, const std::string& path = "");

// To those who wait when the daemon ends.
absl::Status Stopping();

// What to do about blocks that race.
inline constexpr char kRaceRemedy[] =
    "let no block touch an element that another one writes, and no scatter name one twice: give "
    "each block elements of its own, or update those that are shared by ph.atomic_add and the like "
    "(places that a scatter loads past the end of their tensor are 0: give ph.load(p[i:+B], "
    "fill=-1))";

// `status` with this detail instead of the one it has. OK stays OK.
absl::Status Attach(const absl::Status& status, const tuner::v1::ErrorDetail& detail);

// The detail that Make or Attach put there; an empty one when there is none.
tuner::v1::ErrorDetail DetailOf(const absl::Status& status);

// `status` with its detail's kernel and key set, and `reason` where it has none yet.
absl::Status About(const absl::Status& status, tuner::v1::ErrorReason reason,
                   const std::string& kernel, const std::string& key);

}  // namespace phobos::error

#endif  // PHOBOS_DAEMON_ERROR_ERROR_H_
