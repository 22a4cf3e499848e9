// SPDX-License-Identifier: Apache-2.0
//
// The rules of shapes that more than one stage needs: NumPy's broadcasting, the shape that
// subscripts and products give, which tiles have the same elements in the same places. Pure, any
// thread.
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

// Of a kDot of tiles that fit each other. `is_transposed`: b is [.., N, K].
Shape DotShape(const Shape& a, const Shape& b, bool is_transposed);

// The sides that are longer than 1: tiles that agree in them have the same elements in the same
// order.
Shape LongSides(const Shape& shape);

// How an element of a tile of shape `to` is found in one of shape `from`, which has the same long
// sides: by side of `from`, the side of `to` whose index it takes, or -1: its index is 0.
std::vector<int> MapLongSides(const Shape& from, const Shape& to);

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_SHAPE_H_
