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

std::optional<Unsupported> FindUnsupported(const std::vector<const ir::Op*>& definitions,
                                           const ir::Block& block) {
  for (const ir::Op& op : block) {
    std::string what = UnsupportedPart(definitions, op);
    if (!what.empty()) return Unsupported{what + " on an NVIDIA chip", &op};
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
