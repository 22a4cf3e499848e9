// SPDX-License-Identifier: Apache-2.0
//
// The most fmas that one thread of this machine can do. The bench compiles this file with gcc -O3
// -march=native.
#include <time.h>

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif
#define SUMS 12

typedef float Vector __attribute__((vector_size(4 * LANES)));

static double CpuSeconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Gflop a second of CPU time, two an fma: the best of some runs of sums that do not wait for each
// other.
double peak_gflops(void) {
  const long turns = 4000000;
  double best = 0;
  for (int run = 0; run < 8; ++run) {
    Vector sums[SUMS] = {};
    for (int i = 0; i < SUMS; ++i)
      __asm__ volatile("" : "+v"(sums[i]));  // all different, for all it knows
    Vector factor = sums[0] + 0.5f;
    const double began = CpuSeconds();
    for (long turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
      for (int i = 0; i < SUMS; ++i) sums[i] = sums[i] * factor + factor;
      __asm__ volatile("" : "+v"(factor));
    }
    const double rate = 2.0 * LANES * SUMS * turns / (CpuSeconds() - began) / 1e9;
    for (int i = 0; i < SUMS; ++i) __asm__ volatile("" : : "v"(sums[i]));
    if (rate > best) best = rate;
  }
  return best;
}
