// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/cost.h"

#include <algorithm>

namespace phobos::compiler::passes {
namespace {

// A vector's lanes one at a time, or dozens of instructions.
constexpr int kDear = 16;

bool IsOneVectorLoad(const ir::Op& load) {
  if (load.subscripts.empty()) return true;
  const bool gathers =
      std::any_of(load.subscripts.begin(), load.subscripts.end(),
                  [](const ir::Subscript& s) { return s.kind == ir::Subscript::Kind::kGather; });
  return !gathers && load.subscripts.back().kind == ir::Subscript::Kind::kSlice;
}

}  // namespace

int Cost(const ir::Op& op) {
  switch (op.opcode) {
    case ir::Opcode::kConstant:
    case ir::Opcode::kBroadcast:
    case ir::Opcode::kReshape:
      return 0;
    case ir::Opcode::kFloorDiv:
    case ir::Opcode::kMod:
    case ir::Opcode::kPow:
      return 2 * kDear;
    case ir::Opcode::kDot:
      return kDear;
    case ir::Opcode::kRandomU32:
      return 3 * kDear;
    case ir::Opcode::kSqrt:
      return 2;
    case ir::Opcode::kLoad:
      return IsOneVectorLoad(op) ? 1 : kDear;
    default:
      return op.opcode >= ir::Opcode::kExp && op.opcode <= ir::Opcode::kSigmoid ? kDear : 1;
  }
}

}  // namespace phobos::compiler::passes
