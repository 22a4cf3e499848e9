// SPDX-License-Identifier: Apache-2.0
//
// Grid: how many blocks a launch has in each direction. A value, any thread.
#ifndef PHOBOS_CLIENT_LAUNCH_GRID_H_
#define PHOBOS_CLIENT_LAUNCH_GRID_H_

#include <cstdint>

#include "client/launch/status.h"

namespace phobos::launch {

struct Grid {
  int64_t x = 1;
  int64_t y = 1;
  int64_t z = 1;
};

// Number of blocks, or InvalidArgument: a negative side, x over 2^31 - 1, or y or z over 65535. The
// compiler's race check counts on these limits.
StatusOr<int64_t> BlockCount(const Grid& grid);

}  // namespace phobos::launch

#endif  // PHOBOS_CLIENT_LAUNCH_GRID_H_
