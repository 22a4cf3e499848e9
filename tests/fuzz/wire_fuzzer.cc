// SPDX-License-Identifier: Apache-2.0
//
// Any bytes from the daemon's side of the wire: the thin stub neither crashes nor hangs.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  phobos::testing::TakeWireInput({reinterpret_cast<const char*>(data), size});
  return 0;
}
