// SPDX-License-Identifier: Apache-2.0
//
// Sizes of element types. Pure functions, any thread.
#ifndef PHOBOS_DAEMON_WORKER_CHECK_DTYPE_H_
#define PHOBOS_DAEMON_WORKER_CHECK_DTYPE_H_

#include <cstdint>

#include "proto/phobos/compiler/v1/manifest.pb.h"

namespace phobos::worker {

// Bytes of one element; 0 for a type that this program does not know.
int64_t ElementBytes(compiler::v1::DType dtype);

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_CHECK_DTYPE_H_
