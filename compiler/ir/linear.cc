// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/linear.h"

#include <limits>

namespace phobos::compiler::ir {
namespace {

// a * scale_a + b * scale_b. Not the smallest int64: it has no negative.
std::optional<int64_t> Mix(int64_t a, int64_t scale_a, int64_t b, int64_t scale_b) {
  int64_t left = 0;
  int64_t right = 0;
  int64_t sum = 0;
  if (__builtin_mul_overflow(a, scale_a, &left) || __builtin_mul_overflow(b, scale_b, &right) ||
      __builtin_add_overflow(left, right, &sum) || sum == std::numeric_limits<int64_t>::min()) {
    return std::nullopt;
  }
  return sum;
}

}  // namespace

std::optional<Linear> Combine(const Linear& a, int64_t scale_a, const Linear& b, int64_t scale_b) {
  Linear result;
  std::optional<int64_t> constant = Mix(a.constant, scale_a, b.constant, scale_b);
  if (!constant.has_value()) return std::nullopt;
  result.constant = *constant;
  constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();
  size_t i = 0;
  size_t j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    const int32_t left = i < a.terms.size() ? a.terms[i].first : kEnd;
    const int32_t right = j < b.terms.size() ? b.terms[j].first : kEnd;
    const int32_t atom = left < right ? left : right;
    const int64_t from_a = left == atom ? a.terms[i++].second : 0;
    const int64_t from_b = right == atom ? b.terms[j++].second : 0;
    std::optional<int64_t> coefficient = Mix(from_a, scale_a, from_b, scale_b);
    if (!coefficient.has_value()) return std::nullopt;
    if (*coefficient != 0) result.terms.emplace_back(atom, *coefficient);
  }
  return result;
}

}  // namespace phobos::compiler::ir
