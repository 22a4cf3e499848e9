// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/operation.h"

#include <cstddef>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/printer.h"

namespace phobos::compiler::interpreter {
namespace {

using ir::Opcode;
using Operands = std::vector<const Tile*>;

absl::Status Unknown(const ir::Op& op) {
  return absl::UnimplementedError(absl::StrCat("the interpreter has no meaning for `",
                                               std::string(ir::Name(op.opcode)), "` of type ",
                                               op.type.ToString()));
}

Bits ConstantOf(const ir::Op& op) {
  if (const double* real = std::get_if<double>(&op.constant)) {
    return FromReal(op.type.dtype, *real);
  }
  return FromInteger(op.type.dtype, std::get<int64_t>(op.constant));
}

// A tile of the op's type whose element at each index is what `element` says.
template <typename Element>
Tile Generate(const ir::Op& op, Element element) {
  Tile tile{op.type, std::vector<Bits>(op.type.elements())};
  ForEachIndex(op.type.shape,
               [&](const Index& index, size_t offset) { tile.elements[offset] = element(index); });
  return tile;
}

absl::StatusOr<Tile> Elementwise(const ir::Op& op, const Operands& operands) {
  const ir::DType dtype = operands[op.opcode == Opcode::kSelect ? 1 : 0]->type.dtype;
  Tile tile{op.type, {}};
  std::vector<Bits> at_one_place(operands.size());
  for (int64_t i = 0; i < op.type.elements(); ++i) {
    for (size_t k = 0; k < operands.size(); ++k) at_one_place[k] = operands[k]->elements[i];
    const std::optional<Bits> element = Apply(op, dtype, at_one_place);
    if (!element.has_value()) return Unknown(op);
    tile.elements.push_back(*element);
  }
  return tile;
}

}  // namespace

absl::StatusOr<Tile> Evaluate(const ir::Op& op, const Operands& operands) {
  if (IsElementwise(op.opcode)) return Elementwise(op, operands);
  switch (op.opcode) {
    case Opcode::kConstant:
      return Tile{op.type, {ConstantOf(op)}};
    case Opcode::kIota:
      return Generate(op, [](const Index& index) { return index[0]; });
    case Opcode::kBroadcast:
      return Generate(op,
                      [&](const Index& index) { return BroadcastElement(*operands[0], index); });
    case Opcode::kReshape:
      return Tile{op.type, operands[0]->elements};
    case Opcode::kTranspose:
      return Generate(op, [&](const Index& index) {
        Index source(index.size());
        for (size_t d = 0; d < index.size(); ++d) source[op.permutation[d]] = index[d];
        return BroadcastElement(*operands[0], source);
      });
    case Opcode::kStage:
      return *operands[0];
    default:
      return Unknown(op);
  }
}

}  // namespace phobos::compiler::interpreter
