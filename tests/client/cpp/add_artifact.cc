// SPDX-License-Identifier: Apache-2.0
//
// What a compiler would make of the vector add, for any BLOCK up to 4096 by a constant of the
// build: out[i] = x[i] + y[i] for the block's elements. Slots: x, y, out, N.
#include <stdint.h>

extern "C" void add(const uint64_t* slots, const int64_t*, int64_t first, int64_t end, void*) {
  const auto* x = reinterpret_cast<const float*>(slots[0]);
  const auto* y = reinterpret_cast<const float*>(slots[1]);
  auto* out = reinterpret_cast<float*>(slots[2]);
  const auto n = static_cast<int64_t>(slots[3]);
  for (int64_t i = first * BLOCK; i < end * BLOCK && i < n; ++i) out[i] = x[i] + y[i];
}
