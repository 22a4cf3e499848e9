// SPDX-License-Identifier: Apache-2.0
//
// A copy of floats by stores past the caches: what this machine's memory gives to whoever reads one
// tensor and writes another. The bench compiles this file with gcc -O3 -march=native -fopenmp.
#include <immintrin.h>
#include <stdint.h>

enum { kLanes = 8 };

// Whole vectors of `to` alone go past the caches; what is left of it at either end does not.
static void CopyPart(const float* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i < count && (uintptr_t)(to + i) % sizeof(__m256) != 0; ++i) to[i] = from[i];
  for (; i + kLanes <= count; i += kLanes) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
  for (; i < count; ++i) to[i] = from[i];
}

void hand_copy(const float* x, float* out, int64_t rows, int64_t columns) {
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < rows; ++i) CopyPart(x + i * columns, out + i * columns, columns);
    _mm_sfence();
  }
}
