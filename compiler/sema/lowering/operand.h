// SPDX-License-Identifier: Apache-2.0
//
// What the checker's methods hand to each other: values and parts of tensors, with the place where
// they are written. Values, any thread.
#ifndef PHOBOS_COMPILER_SEMA_LOWERING_OPERAND_H_
#define PHOBOS_COMPILER_SEMA_LOWERING_OPERAND_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/sema/value/value.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler::sema {

// A value and where it is written.
struct Operand {
  Value value;
  Span span;
};

// A[subscripts] of a tensor, checked.
struct Access {
  int32_t param = 0;
  std::vector<ir::Subscript> subscripts;
  std::vector<int64_t> shape;
  Span span;
};

// ph.range(...), checked: i64 scalars.
struct Range {
  Value lo;
  Value hi;
  int64_t step = 1;
  int32_t unroll = 1;
  int32_t stages = 1;
  // A tuple (first, step) where the step is no constant: lo, hi and the loop's own index count
  // turns, and the name stands for first + turn * step. Else None.
  Value place;
};

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_LOWERING_OPERAND_H_
