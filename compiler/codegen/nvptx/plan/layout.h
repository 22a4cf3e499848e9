// SPDX-License-Identifier: Apache-2.0
//
// Which thread of a block holds which elements of a tile. Values, any thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_LAYOUT_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_LAYOUT_H_

#include <cstdint>
#include <vector>

namespace phobos::compiler::nvptx {

// A part of a thread's or a turn's number: it moves along one of a tile's two long sides.
struct Digit {
  int64_t count = 1;   // of its values
  int64_t stride = 1;  // elements of the side
  bool is_row = false;

  friend bool operator==(const Digit&, const Digit&) = default;
};

struct Offset {
  int64_t row = 0;
  int64_t column = 0;
};

// A tile's elements in row-major order are dealt out in vectors: thread t has the elements
// (c * threads + t) * vector .. + vector - 1 of turn c = 0, 1, ... A vector never crosses a row.
//
// Or, of a tile with two long sides, in blocks: the vector's row and column are the sums of what
// the digits of the thread and of the turn say. Then every thread has a vector in each turn.
struct Layout {
  int64_t elements = 1;
  int64_t threads = 1;
  int64_t vector = 1;  // divides the last long side
  // In blocks: the lowest digit first; both empty otherwise.
  std::vector<Digit> thread_digits;
  std::vector<Digit> turn_digits;
  // In blocks, of a tile with one long side: threads that have parts of the same rows all have what
  // it says of them. `elements` counts each of these copies.
  bool has_copies = false;

  bool is_in_blocks() const { return !thread_digits.empty(); }
  // In blocks: what the turn's digits say.
  Offset OffsetOf(int64_t turn) const;

  int64_t turn() const { return threads * vector; }  // elements
  // Turns in which every thread has a vector, and elements behind them.
  int64_t whole_turns() const { return elements / turn(); }
  int64_t rest() const { return elements % turn(); }
  int64_t turns() const { return whole_turns() + (rest() > 0 ? 1 : 0); }
  // Room for what one thread holds.
  int64_t thread_elements() const { return turns() * vector; }

  friend bool operator==(const Layout&, const Layout&) = default;
};

// Of a tile that says one thing of each row of a tile in blocks: each thread has it of the rows
// that it has a part of, in their order.
Layout RowsOf(const Layout& blocks);

// The widest layout in which a vector of elements of `widest_bytes` is at most 16 bytes, and no
// more than `most` elements. Where there are fewer elements than such vectors times threads,
// `spread` asks for narrower ones, so that more threads work.
Layout LayoutOf(const std::vector<int64_t>& shape, int64_t threads, int64_t widest_bytes,
                bool spread, int64_t most = 16);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_LAYOUT_H_
