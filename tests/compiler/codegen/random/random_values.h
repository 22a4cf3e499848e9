// SPDX-License-Identifier: Apache-2.0
//
// What a random kernel is made of: its parameters, the values in sight, numbers where arithmetic
// changes, and the places of tensors. No statements: those are random_kernel.cc's, the one user.
// One thread.
#ifndef PHOBOS_TESTS_COMPILER_CODEGEN_RANDOM_RANDOM_VALUES_H_
#define PHOBOS_TESTS_COMPILER_CODEGEN_RANDOM_RANDOM_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "compiler/interpreter/interpreter.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/shape.h"
#include "tests/compiler/codegen/random/random_kernel.h"

namespace phobos::compiler::testing {

class RandomValues {
 protected:
  static constexpr size_t kMaxRank = 4;
  static constexpr int64_t kMaxTensorElements = 4000;

  RandomValues(uint64_t seed, const Forms& forms);

  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
  }
  template <typename T, size_t n>
  T OneOf(const T (&all)[n]) {
    return all[Below(n)];
  }
  template <typename T>
  const T& OneOf(const std::vector<T>& all) {
    return all[Below(static_cast<int64_t>(all.size()))];
  }
  const ir::Type& TypeOf(ir::ValueId value) { return b_.TypeOf(value); }

  // Few types, shapes and places, so that much is read where something was written.
  void AddParams();
  ir::Shape SomeShape() { return Below(5) == 0 ? NewShape() : OneOf(shapes_); }

  int64_t SideOf(const ir::Dim& dim) const;
  int64_t ElementsOf(const std::vector<ir::Dim>& dims) const;

  // A value in sight of this type, or a new one.
  ir::ValueId Get(const ir::Type& type);
  ir::ValueId Keep(ir::ValueId value);
  // A second operand for `a`; now and then equal to it, or to it but for the sign, zeros' too.
  ir::ValueId Other(ir::ValueId a);
  // Subscripts of a tensor that give `shape`; nothing when there are none.
  std::optional<std::vector<ir::Subscript>> Subscripts(int32_t tensor, const ir::Shape& shape,
                                                       bool is_store);

  // Of addresses; those of extents are AddParams's.
  void Promise(ir::Function* function);
  // Tensors and scalars full of numbers.
  interpreter::Launch LaunchOf(const ir::Function& function);

  const Forms forms_;
  ir::Builder b_;
  bool moves_ = false;       // whether elements of tiles change places
  bool multiplies_ = false;  // whether there are products
  std::vector<ir::DType> types_;
  std::vector<ir::Shape> shapes_;
  std::vector<int32_t> tensors_;
  std::vector<int32_t> scalars_;
  std::set<int32_t> small_;          // tensors of small whole numbers alone
  std::vector<ir::ValueId> values_;  // in sight

 private:
  ir::Shape NewShape();
  ir::Shape AnyShape();
  // A shape that broadcasts to `shape`, of at least rank `least`.
  ir::Shape PartOf(const ir::Shape& shape, size_t least);
  ir::ValueId Fresh(const ir::Type& type);
  ir::ValueId Constant(ir::DType dtype);
  // Mostly a small number, else one where arithmetic changes.
  interpreter::Bits Number(ir::DType dtype);
  // A position that mostly lies near the tensors.
  ir::ValueId Position();
  // Positions of a gather, of a shape that broadcasts to `shape`.
  ir::ValueId Positions(const ir::Shape& shape, bool is_first);
  // Positions of which no two are the same: those of a scatter.
  ir::ValueId DistinctPositions(int64_t length);

  std::mt19937_64 random_;
  std::vector<int64_t> sizes_;  // of the extents
};

}  // namespace phobos::compiler::testing

#endif  // PHOBOS_TESTS_COMPILER_CODEGEN_RANDOM_RANDOM_VALUES_H_
