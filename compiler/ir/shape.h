// SPDX-License-Identifier: Apache-2.0
//
// The two rules of shapes that more than one stage needs: NumPy's broadcasting, and the shape that
// subscripts give. Pure, any thread.
#ifndef PHOBOS_COMPILER_IR_SHAPE_H_
#define PHOBOS_COMPILER_IR_SHAPE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::ir {

using Shape = std::vector<int64_t>;

// NumPy's: aligned at the last axis, a side of 1 stretches. Nothing when the two do not fit.
std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// The shape of A[subscripts]: an element drops its dimension, a slice gives its length, and the
// index tiles of gathers broadcast together and stand where the first one stands. `shape_of` gives
// the shape of a gather's index tile. Nothing when index tiles do not fit each other.
std::optional<Shape> SubscriptShape(const std::vector<Subscript>& subscripts,
                                    const std::function<Shape(ValueId)>& shape_of);

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_SHAPE_H_
