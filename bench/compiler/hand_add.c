// SPDX-License-Identifier: Apache-2.0
//
// The vector add as a C programmer writes it, twice: a plain loop, and with stores past the caches.
// The bench compiles this file with g++ -O3 -march=native on the machine it runs on. Blocks are
// equal parts of the arrays; the signature is that of a host artifact.
#include <immintrin.h>
#include <stdint.h>

static void range(const uint64_t* slots, const int64_t* grid, int64_t first, int64_t end,
                  int64_t* begin, int64_t* stop) {
  const int64_t n = (int64_t)slots[3];
  const int64_t part = (n / grid[0] + 63) / 64 * 64;
  *begin = first * part;
  *stop = end == grid[0] ? n : end * part;
}

#ifdef __cplusplus
extern "C" {
#endif

void hand_add(const uint64_t* slots, const int64_t* grid, int64_t first, int64_t end,
              void* scratch) {
  const float* __restrict x = (const float*)slots[0];
  const float* __restrict y = (const float*)slots[1];
  float* __restrict out = (float*)slots[2];
  int64_t begin, stop;
  (void)scratch;
  range(slots, grid, first, end, &begin, &stop);
  for (int64_t i = begin; i < stop; ++i) out[i] = x[i] + y[i];
}

void hand_add_streamed(const uint64_t* slots, const int64_t* grid, int64_t first, int64_t end,
                       void* scratch) {
  const float* x = (const float*)slots[0];
  const float* y = (const float*)slots[1];
  float* out = (float*)slots[2];
  int64_t begin, stop;
  (void)scratch;
  range(slots, grid, first, end, &begin, &stop);
  int64_t i = begin;
#ifdef __AVX512F__
  for (; i < stop && ((uintptr_t)(out + i) & 63) != 0; ++i) out[i] = x[i] + y[i];
  for (; i + 16 <= stop; i += 16) {
    _mm512_stream_ps(out + i, _mm512_add_ps(_mm512_loadu_ps(x + i), _mm512_loadu_ps(y + i)));
  }
#else
  for (; i < stop && ((uintptr_t)(out + i) & 31) != 0; ++i) out[i] = x[i] + y[i];
  for (; i + 8 <= stop; i += 8) {
    _mm256_stream_ps(out + i, _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
  }
#endif
  for (; i < stop; ++i) out[i] = x[i] + y[i];
  _mm_sfence();
}

#ifdef __cplusplus
}
#endif
