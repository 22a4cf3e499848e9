// SPDX-License-Identifier: Apache-2.0
//
// Hand-written artifacts of the host ABI (Artifact in manifest.proto), most of them guilty of
// something. All take the slots x, y, out, n of f32 tensors, if nothing else is said; `accumulate`
// takes x, y, n. A block has kBlock elements.
#include <cstdint>
#include <ctime>

namespace {

constexpr int64_t kBlock = 1024;

struct Arguments {
  const float* x;
  const float* y;
  float* out;
  int64_t n;
};

Arguments Read(const uint64_t* slots) {
  return {reinterpret_cast<const float*>(slots[0]), reinterpret_cast<const float*>(slots[1]),
          reinterpret_cast<float*>(slots[2]), static_cast<int64_t>(slots[3])};
}

void Add(const Arguments& a, int64_t first, int64_t end) {
  const int64_t last = end * kBlock < a.n ? end * kBlock : a.n;
  for (int64_t i = first * kBlock; i < last; ++i) a.out[i] = a.x[i] + a.y[i];
}

volatile int64_t launches = 0;  // of the counting kernels; one block each

}  // namespace

#define KERNEL(name)                                           \
  extern "C" __attribute__((visibility("default"))) void name( \
      const uint64_t* slots, const int64_t* grid, int64_t first, int64_t end, void* scratch)
#define UNUSED (void)grid, (void)scratch

KERNEL(add) { UNUSED, Add(Read(slots), first, end); }

KERNEL(add_slowly) {
  UNUSED, Add(Read(slots), first, end);
  timespec pause = {0, 2'000'000};
  nanosleep(&pause, nullptr);
}

// The add, and then nothing until the given time is over; for one block.
void AddFor(const uint64_t* slots, int64_t first, int64_t end, int64_t least_ns) {
  timespec start = {}, now = {};
  clock_gettime(CLOCK_MONOTONIC, &start);
  Add(Read(slots), first, end);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - start.tv_sec) * 1'000'000'000 + now.tv_nsec - start.tv_nsec < least_ns);
}

KERNEL(add_in_2_us) { UNUSED, AddFor(slots, first, end, 2000); }
KERNEL(add_in_3_us) { UNUSED, AddFor(slots, first, end, 3000); }

KERNEL(accumulate) {
  UNUSED;
  auto* x = reinterpret_cast<float*>(slots[0]);
  const auto* y = reinterpret_cast<const float*>(slots[1]);
  const auto n = static_cast<int64_t>(slots[2]);
  for (int64_t i = first * kBlock; i < n && i < end * kBlock; ++i) x[i] += y[i];
}

KERNEL(nothing) { UNUSED, (void)slots, (void)first, (void)end; }

// Right but for element 5.
KERNEL(wrong) {
  UNUSED, Add(Read(slots), first, end);
  if (first == 0) Read(slots).out[5] += 1;
}

KERNEL(write_before) {
  UNUSED, Add(Read(slots), first, end);
  if (first == 0) reinterpret_cast<char*>(Read(slots).out)[-1] ^= 1;
}

KERNEL(write_behind) {
  UNUSED, Add(Read(slots), first, end);
  if (first == 0) *reinterpret_cast<char*>(Read(slots).out + Read(slots).n) ^= 1;
}

KERNEL(overwrite_input) {
  UNUSED, Add(Read(slots), first, end);
  if (first == 0) const_cast<float*>(Read(slots).y)[3] = 0;
}

KERNEL(crash) {
  UNUSED, (void)slots, (void)first, (void)end;
  *reinterpret_cast<volatile int*>(16) = 1;
}

KERNEL(endless) {
  UNUSED, (void)slots, (void)first, (void)end;
  while (true) launches = launches + 1;
}

// Right 14 times, then it faults.
KERNEL(crash_at_15) {
  UNUSED, Add(Read(slots), first, end);
  if (first != 0) return;
  launches = launches + 1;
  if (launches >= 15) *reinterpret_cast<volatile int*>(16) = 1;
}

// Far outside, where there is no canary.
KERNEL(write_far) {
  UNUSED, Add(Read(slots), first, end);
  if (first == 0) Read(slots).out[int64_t{1} << 30] = 1;
}

// Touches its scratch memory.
KERNEL(with_scratch) {
  (void)grid, Add(Read(slots), first, end);
  for (int i = 0; i < 64; ++i) static_cast<volatile char*>(scratch)[i] = 1;
}

// Race-recording forms of the add: out's last writer and its first one in slots 3 and 4, n in slot
// 5.
namespace {

void Record(const uint64_t* slots, int64_t first, int64_t end, int64_t block) {
  const Arguments a = Read(slots);
  const auto n = static_cast<int64_t>(slots[5]);
  Add({a.x, a.y, a.out, n}, first, end);
  auto* last_write = reinterpret_cast<uint32_t*>(slots[3]);
  auto* first_write = reinterpret_cast<uint32_t*>(slots[4]);
  const auto number = static_cast<uint32_t>(block);
  for (int64_t i = first * kBlock; i < n && i < end * kBlock; ++i) {
    if (last_write[i] < number + 1) last_write[i] = number + 1;
    if (first_write[i] < ~number) first_write[i] = ~number;
  }
}

}  // namespace

KERNEL(record) {
  UNUSED;
  for (int64_t i = first; i < end; ++i) Record(slots, i, i + 1, i);
}

// As if block 2 too had written what block 0 has.
KERNEL(record_race) {
  UNUSED;
  for (int64_t i = first; i < end; ++i) Record(slots, i, i + 1, i);
  if (first == 0) Record(slots, 0, 1, 2);
}

KERNEL(record_and_write_before) {
  UNUSED;
  for (int64_t i = first; i < end; ++i) Record(slots, i, i + 1, i);
  if (first == 0) reinterpret_cast<char*>(Read(slots).out)[-1] ^= 1;
}
