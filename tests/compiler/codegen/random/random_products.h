// SPDX-License-Identifier: Apache-2.0
//
// Products in random kernels: of tiles in sight, and of tiles of tensors of their own, summed up
// step by step as kernels of matrices do. Each of their sides is 1 now and then. One thread.
#ifndef PHOBOS_TESTS_COMPILER_CODEGEN_RANDOM_RANDOM_PRODUCTS_H_
#define PHOBOS_TESTS_COMPILER_CODEGEN_RANDOM_RANDOM_PRODUCTS_H_

#include <cstdint>

#include "compiler/ir/ir.h"
#include "compiler/ir/shape.h"
#include "tests/compiler/codegen/random/random_values.h"

namespace phobos::compiler::testing {

class RandomProducts : protected RandomValues {
 protected:
  using RandomValues::RandomValues;

  // Of `a` and another tile. REQUIRES: a has two sides or more.
  void Multiply(ir::ValueId a);
  // Of tiles that are loaded for it, in a loop or not.
  void MultiplyTensors();

 private:
  // The last sides of a product's operands and what they have in common.
  struct Form {
    ir::DType dtype;
    ir::Shape leading;
    int64_t m, n, k;
    bool is_transposed;
    ir::Precision precision;
  };
  // One of the operands: where it is loaded from, and where along each of its last two sides.
  struct Operand {
    int32_t tensor;
    ir::Shape shape;
    ir::ValueId row, column;
  };

  Form NewForm();
  int64_t Side();
  int64_t WholeSide(int64_t least);
  ir::Type SumType(const Form& form) const;
  // Whether the result depends on who computes it: matrix instructions add floats in an order of
  // their own, which does not show where all sums are exact.
  static bool MayBeReordered(const Form& form);
  // Small whole numbers instead, of the type of `a`.
  ir::ValueId Small(ir::ValueId a);
  ir::ValueId Start(const Form& form);
  ir::ValueId ProductOf(const Form& form, ir::ValueId a, ir::ValueId b, ir::ValueId acc);
  Operand NewOperand(const Form& form, int64_t rows, int64_t columns, int64_t row_steps,
                     int64_t column_steps);
  ir::ValueId Load(const Operand& operand);
};

}  // namespace phobos::compiler::testing

#endif  // PHOBOS_TESTS_COMPILER_CODEGEN_RANDOM_RANDOM_PRODUCTS_H_
