// SPDX-License-Identifier: Apache-2.0
//
// What a thread reads of the operands of a product of tiles, from shared memory, for the sums that
// it works on together: each row and each column once, whatever the number of sums it goes to. One
// product, while it is emitted; one thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_OPERANDS_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_OPERANDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/tile/environment.h"
#include "compiler/codegen/nvptx/tile/held.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

class Operands {
 public:
  // `places`: of the sums, in turns first, first + 1, .. of the product's layout.
  Operands(Environment& environment, const Statement& product, const std::vector<Place>& places,
           int64_t first);

  size_t places() const { return row_of_.size(); }
  size_t rows() const { return rows_.size(); }
  size_t columns() const { return columns_.size(); }
  // By number of a place: its row of a, and its columns of b, as many as it has lanes.
  size_t RowOf(size_t place) const { return row_of_[place]; }
  size_t ColumnOf(size_t place) const { return column_of_[place]; }

  // a[.., m, k + i] at i, for i < depth.
  Fragment LoadRow(size_t row, llvm::Value* k, unsigned depth) const;
  // b[.., k + i, n + lane], or b[.., n + lane, k + i], at i * lanes + lane.
  Fragment LoadColumns(size_t column, llvm::Value* k, unsigned depth) const;

 private:
  // A place that has the row or the columns, and how far from the first one's they are.
  struct Part {
    Place place;
    int64_t distance = 0;
  };
  void Add(const Place& place, int64_t distance, std::vector<Part>* parts,
           std::vector<size_t>* number);
  Fragment LoadColumnsAlongK(const Place& place, llvm::Value* k, unsigned depth) const;

  Environment& env_;
  const bool is_transposed_;
  const HeldTile a_;
  const HeldTile b_;
  bool are_shared_ = false;  // places have rows and columns in common, as the layout says
  std::vector<Part> rows_;
  std::vector<Part> columns_;
  std::vector<size_t> row_of_;
  std::vector<size_t> column_of_;
};

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_CONTRACTION_OPERANDS_H_
