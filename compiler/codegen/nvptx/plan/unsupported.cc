// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/unsupported.h"

#include <vector>

#include "compiler/ir/equality.h"
#include "compiler/ir/shape.h"

namespace phobos::compiler::nvptx {
namespace {

// Empty: the op can be done.
std::string UnsupportedPart(const std::vector<const ir::Op*>& definitions, const ir::Op& op) {
  switch (op.opcode) {
    case ir::Opcode::kTranspose:
      return "ph.transpose";
    case ir::Opcode::kDot:
      return op.axis == 0 ? "ph.dot" : "ph.dot_t";
    case ir::Opcode::kCumulativeSum:
      return "ph.cumsum";
    case ir::Opcode::kReshape: {
      const ir::Shape& from = definitions[op.operands[0]]->type.shape;
      if (ir::LongSides(from) == ir::LongSides(op.type.shape)) return "";
      return "ph.reshape that does more than add or drop sides of 1";
    }
    default:
      return ir::IsReduction(op.opcode) ? "a reduction such as ph.sum" : "";
  }
}

// Whether block[i] only makes a tile flat for the next op, which goes over all of its elements and
// is what the kernel's text says.
bool IsFlattened(const std::vector<const ir::Op*>& definitions, const ir::Block& block, size_t i) {
  if (block[i].opcode != ir::Opcode::kReshape || i + 1 == block.size()) return false;
  const ir::Op& next = block[i + 1];
  return !next.operands.empty() && next.operands[0] == block[i].result &&
         !UnsupportedPart(definitions, next).empty();
}

std::optional<Unsupported> FindUnsupported(const std::vector<const ir::Op*>& definitions,
                                           const ir::Block& block) {
  for (size_t i = 0; i < block.size(); ++i) {
    const ir::Op& op = block[i];
    std::string what = UnsupportedPart(definitions, op);
    if (!what.empty() && !IsFlattened(definitions, block, i)) {
      return Unsupported{what + " on an NVIDIA chip", &op};
    }
    for (const ir::Block& region : op.regions) {
      std::optional<Unsupported> inside = FindUnsupported(definitions, region);
      if (inside.has_value()) return inside;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Unsupported> FindUnsupported(const ir::Function& function) {
  return FindUnsupported(ir::DefinitionsOf(function), function.body);
}

}  // namespace phobos::compiler::nvptx
