// SPDX-License-Identifier: Apache-2.0
//
// The softmax of rows as a C programmer writes it. The bench compiles this file with gcc -O3
// -march=native -ffast-math -fopenmp on the machine it runs on, so that maximum, expf and sum are
// vectors.
#include <math.h>
#include <stdint.h>

void hand_softmax(const float* x, float* out, int64_t rows, int64_t columns) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; ++i) {
    const float* __restrict from = x + i * columns;
    float* __restrict to = out + i * columns;
    float top = -INFINITY;
    for (int64_t j = 0; j < columns; ++j) top = from[j] > top ? from[j] : top;
    float total = 0;
    for (int64_t j = 0; j < columns; ++j) {
      to[j] = expf(from[j] - top);
      total += to[j];
    }
    const float scale = 1 / total;
    for (int64_t j = 0; j < columns; ++j) to[j] *= scale;
  }
}
