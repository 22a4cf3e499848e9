// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/unsupported.h"

namespace phobos::compiler::nvptx {
namespace {

// Empty: the op can be done.
std::string UnsupportedPart(const ir::Op& op) {
  switch (op.opcode) {
    default:
      return "";
  }
}

std::optional<Unsupported> FindUnsupported(const ir::Block& block) {
  for (const ir::Op& op : block) {
    const std::string what = UnsupportedPart(op);
    if (!what.empty()) return Unsupported{what + " on an NVIDIA chip", &op};
    for (const ir::Block& region : op.regions) {
      std::optional<Unsupported> inside = FindUnsupported(region);
      if (inside.has_value()) return inside;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Unsupported> FindUnsupported(const ir::Function& function) {
  return FindUnsupported(function.body);
}

}  // namespace phobos::compiler::nvptx
