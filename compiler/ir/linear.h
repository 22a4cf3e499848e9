// SPDX-License-Identifier: Apache-2.0
//
// A linear form over integers that are not known: constant + sum of coefficient * atom. What an
// atom is, the user of the form says. Exact: an operation whose numbers leave int64 gives nothing.
// Values, any thread.
#ifndef PHOBOS_COMPILER_IR_LINEAR_H_
#define PHOBOS_COMPILER_IR_LINEAR_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace phobos::compiler::ir {

struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<int32_t, int64_t>> terms;  // by atom, increasing; no coefficient is 0

  static Linear Of(int64_t constant) { return {constant, {}}; }
  static Linear Atom(int32_t atom) { return {0, {{atom, 1}}}; }

  bool is_constant() const { return terms.empty(); }

  friend bool operator==(const Linear&, const Linear&) = default;
};

// a * scale_a + b * scale_b.
std::optional<Linear> Combine(const Linear& a, int64_t scale_a, const Linear& b, int64_t scale_b);

inline std::optional<Linear> Add(const Linear& a, const Linear& b) { return Combine(a, 1, b, 1); }
inline std::optional<Linear> Subtract(const Linear& a, const Linear& b) {
  return Combine(a, 1, b, -1);
}
inline std::optional<Linear> Scale(const Linear& a, int64_t factor) {
  return Combine(a, factor, Linear{}, 0);
}

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_LINEAR_H_
