// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/equality.h"

#include <cstddef>

namespace phobos::compiler::ir {
namespace {

constexpr int kMaxDepth = 16;

void Define(const Block& block, std::vector<const Op*>* definitions) {
  for (const Op& op : block) {
    if (op.result != kNoValue) (*definitions)[op.result] = &op;
    for (const Block& region : op.regions) Define(region, definitions);
  }
}

bool AreEqual(const std::vector<const Op*>& definitions, ValueId a, ValueId b, int depth) {
  if (a == b) return true;
  const Op& x = *definitions[a];
  const Op& y = *definitions[b];
  if (depth == 0 || x.opcode != y.opcode || x.type != y.type || x.index != y.index ||
      x.axis != y.axis || x.constant != y.constant || x.operands.size() != y.operands.size() ||
      x.opcode == Opcode::kLoad || x.opcode == Opcode::kReadVar) {
    return false;
  }
  for (size_t i = 0; i < x.operands.size(); ++i) {
    if (!AreEqual(definitions, x.operands[i], y.operands[i], depth - 1)) return false;
  }
  return true;
}

}  // namespace

std::vector<const Op*> DefinitionsOf(const Function& function) {
  std::vector<const Op*> definitions(function.value_count);
  Define(function.body, &definitions);
  return definitions;
}

bool AreEqualScalars(const std::vector<const Op*>& definitions, ValueId a, ValueId b) {
  return AreEqual(definitions, a, b, kMaxDepth);
}

bool AreSameElements(const std::vector<const Op*>& definitions, const Op& a, const Op& b) {
  for (size_t d = 0; d < a.subscripts.size(); ++d) {
    const Subscript& x = a.subscripts[d];
    const Subscript& y = b.subscripts[d];
    if (x.kind != y.kind || x.kind == Subscript::Kind::kGather) return false;
    if (x.kind == Subscript::Kind::kSlice && x.length != y.length) return false;
    if (!AreEqualScalars(definitions, x.position, y.position)) return false;
  }
  return true;
}

}  // namespace phobos::compiler::ir
