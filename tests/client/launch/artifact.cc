// SPDX-License-Identifier: Apache-2.0
//
// Stand-in artifacts of the host ABI, as one shared object.
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

}  // namespace

// slots: counts (int32 a block), thread ids (int64 a block), nanoseconds a block is to take.
extern "C" void count(const uint64_t* slots, const int64_t*, int64_t first, int64_t end, void*) {
  auto* counts = reinterpret_cast<int32_t*>(slots[0]);
  auto* threads = reinterpret_cast<int64_t*>(slots[1]);
  for (int64_t block = first; block < end; ++block) {
    __atomic_fetch_add(&counts[block], 1, __ATOMIC_RELAXED);
    threads[block] = syscall(SYS_gettid);
    const int64_t until = NowNs() + static_cast<int64_t>(slots[2]);
    while (NowNs() < until) sched_yield();
  }
}

// Fills its 256 bytes of scratch, gives way, and counts the bytes that somebody else changed:
// slots[0].
extern "C" void scratch(const uint64_t* slots, const int64_t*, int64_t first, int64_t end,
                        void* memory) {
  auto* bytes = static_cast<volatile uint8_t*>(memory);
  for (int64_t block = first; block < end; ++block) {
    for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(block + i);
    sched_yield();
    for (int i = 0; i < 256; ++i) {
      if (bytes[i] == static_cast<uint8_t>(block + i)) continue;
      __atomic_fetch_add(reinterpret_cast<int32_t*>(slots[0]), 1, __ATOMIC_RELAXED);
    }
    if (reinterpret_cast<uintptr_t>(memory) % 64 != 0) {
      __atomic_fetch_add(reinterpret_cast<int32_t*>(slots[0]), 1, __ATOMIC_RELAXED);
    }
  }
}

// Writes the grid it sees: slots[0] is int64[3].
extern "C" void sides(const uint64_t* slots, const int64_t* grid, int64_t, int64_t, void*) {
  auto* out = reinterpret_cast<int64_t*>(slots[0]);
  for (int i = 0; i < 3; ++i) __atomic_store_n(&out[i], grid[i], __ATOMIC_RELAXED);
}
