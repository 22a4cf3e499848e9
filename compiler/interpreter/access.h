// SPDX-License-Identifier: Apache-2.0
//
// Which elements of a tensor an access touches: the one place where subscripts, bounds and masks
// are read. Pure, any thread.
#ifndef PHOBOS_COMPILER_INTERPRETER_ACCESS_H_
#define PHOBOS_COMPILER_INTERPRETER_ACCESS_H_

#include <functional>
#include <optional>
#include <vector>

#include "compiler/interpreter/tile.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::interpreter {

// Calls `body` with each index of `shape`, the shape that the subscripts give, its offset, and the
// offset of the tensor's element there: nothing where that lies outside `sides` or where the mask
// is false. `positions` are the values of the subscripts' positions; `mask` may be null.
// REQUIRES: one subscript a side; the mask broadcasts to the shape.
void ForEachElement(const std::vector<ir::Subscript>& subscripts,
                    const std::vector<const Tile*>& positions, const std::vector<int64_t>& sides,
                    const Tile* mask, const ir::Shape& shape,
                    const std::function<void(const Index& index, size_t offset,
                                             std::optional<size_t> element)>& body);

}  // namespace phobos::compiler::interpreter

#endif  // PHOBOS_COMPILER_INTERPRETER_ACCESS_H_
