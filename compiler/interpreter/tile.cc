// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/tile.h"

namespace phobos::compiler::interpreter {

void ForEachIndex(const ir::Shape& shape, const std::function<void(const Index&, size_t)>& body) {
  const auto elements = static_cast<size_t>(ir::Type{ir::DType::kI64, shape}.elements());
  Index index(shape.size());
  for (size_t offset = 0; offset < elements; ++offset) {
    body(index, offset);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

size_t OffsetOf(const ir::Shape& shape, const Index& index) {
  size_t offset = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    offset = offset * static_cast<size_t>(shape[d]) + static_cast<size_t>(index[d]);
  }
  return offset;
}

Bits BroadcastElement(const Tile& tile, const Index& index) {
  const ir::Shape& shape = tile.type.shape;
  Index own(index.end() - static_cast<ptrdiff_t>(shape.size()), index.end());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) own[d] = 0;
  }
  return tile.elements[OffsetOf(shape, own)];
}

}  // namespace phobos::compiler::interpreter
