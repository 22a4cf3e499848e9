// SPDX-License-Identifier: Apache-2.0
#include "client/launch/grid.h"

#include <string>

namespace phobos::launch {
namespace {

constexpr int64_t kMostBlocksX = (int64_t{1} << 31) - 1;
constexpr int64_t kMostBlocksYz = 65535;

Status Impossible(const Grid& grid, const std::string& why) {
  return Status(Code::kInvalidArgument, "grid (" + std::to_string(grid.x) + ", " +
                                            std::to_string(grid.y) + ", " + std::to_string(grid.z) +
                                            "): " + why);
}

}  // namespace

StatusOr<int64_t> BlockCount(const Grid& grid) {
  if (grid.x < 0 || grid.y < 0 || grid.z < 0) {
    return Impossible(grid, "a side must not be negative");
  }
  if (grid.y > kMostBlocksYz || grid.z > kMostBlocksYz) {
    return Impossible(grid, "y and z may be 65535 at most; use x");
  }
  if (grid.x > kMostBlocksX) {
    return Impossible(grid, "x may be 2147483647 at most; let each block do more");
  }
  // Below 2^63, as the sides are below 2^31, 2^16 and 2^16.
  return grid.x * grid.y * grid.z;
}

}  // namespace phobos::launch
