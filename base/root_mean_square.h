// SPDX-License-Identifier: Apache-2.0
//
// The root mean square of a tensor's finite elements, as the comparison of a tune's outputs wants
// it. One definition for all who judge by it, with sums in an order that does not depend on
// threads, so that a tensor has the same one everywhere. Any thread.
#ifndef PHOBOS_BASE_ROOT_MEAN_SQUARE_H_
#define PHOBOS_BASE_ROOT_MEAN_SQUARE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/parallel.h"

namespace phobos {

// Sum of (value * scale)^2 over the finite values, and their number.
struct Squares {
  double sum = 0;
  int64_t count = 0;
};

// `read` gives an element as double by its index; it is called from several threads.
template <typename Read>
Squares SumSquares(int64_t begin, int64_t end, double scale, const Read& read) {
  // Several sums side by side: one alone would wait for each addition.
  constexpr int64_t kLanes = 8;
  double sums[kLanes] = {};
  int64_t counts[kLanes] = {};
  const auto add = [&](int64_t index, int64_t lane) {
    const double value = read(index);
    const bool finite = std::abs(value) <= std::numeric_limits<double>::max();
    const double scaled = finite ? value * scale : 0.0;
    sums[lane] += scaled * scaled;
    counts[lane] += finite ? 1 : 0;
  };
  int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  }
  for (; i < end; ++i) add(i, 0);
  Squares all;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    all.sum += sums[lane];
    all.count += counts[lane];
  }
  return all;
}

template <typename Read>
Squares SumSquares(int64_t count, double scale, const Read& read) {
  constexpr int64_t kGrain = int64_t{1} << 20;
  std::vector<Squares> parts(static_cast<size_t>((count + kGrain - 1) / kGrain));
  ForRanges(count, kGrain, [&](int64_t begin, int64_t end) {
    parts[static_cast<size_t>(begin / kGrain)] = SumSquares(begin, end, scale, read);
  });
  Squares all;
  for (const Squares& part : parts) {
    all.sum += part.sum;
    all.count += part.count;
  }
  return all;
}

// 0 where no element is finite. A square that is less than the least double counts as 0.
template <typename Read>
double RootMeanSquare(int64_t count, const Read& read) {
  constexpr double kScale = 0x1p-600;  // squares of the largest double stay finite with it
  Squares squares = SumSquares(count, 1.0, read);
  if (squares.count == 0) return 0.0;
  if (std::isfinite(squares.sum)) {
    return std::sqrt(squares.sum / static_cast<double>(squares.count));
  }
  squares = SumSquares(count, kScale, read);
  return std::sqrt(squares.sum / static_cast<double>(squares.count)) / kScale;
}

}  // namespace phobos

#endif  // PHOBOS_BASE_ROOT_MEAN_SQUARE_H_
