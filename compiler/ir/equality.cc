// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/equality.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <variant>

namespace phobos::compiler::ir {
namespace {

constexpr int kMaxDepth = 16;

void Define(const Block& block, std::vector<const Op*>* definitions) {
  for (const Op& op : block) {
    if (op.result != kNoValue) (*definitions)[op.result] = &op;
    for (const Block& region : op.regions) Define(region, definitions);
  }
}

void CountUses(const Block& block, std::vector<int>* uses) {
  for (const Op& op : block) {
    for (ValueId operand : op.operands) {
      if (operand != kNoValue) ++(*uses)[operand];
    }
    for (const Subscript& subscript : op.subscripts) ++(*uses)[subscript.position];
    for (const Block& region : op.regions) CountUses(region, uses);
  }
}

bool AreEqual(const std::vector<const Op*>& definitions, ValueId a, ValueId b, int depth) {
  if (a == b) return true;
  const Op& x = *definitions[a];
  const Op& y = *definitions[b];
  if (depth == 0 || x.opcode != y.opcode || x.type != y.type || x.index != y.index ||
      x.axis != y.axis || x.constant != y.constant || x.permutation != y.permutation ||
      x.operands.size() != y.operands.size() || IsAccess(x.opcode) ||
      x.opcode == Opcode::kReadVar) {
    return false;
  }
  for (size_t i = 0; i < x.operands.size(); ++i) {
    if (x.operands[i] == kNoValue || y.operands[i] == kNoValue) {
      if (x.operands[i] != y.operands[i]) return false;
      continue;
    }
    if (!AreEqual(definitions, x.operands[i], y.operands[i], depth - 1)) return false;
  }
  return true;
}

bool AreSameDims(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Dim& x, const Dim& y) {
    return x.extent == y.extent && (x.extent >= 0 || x.literal == y.literal);
  });
}

bool AreSameParams(const Param& a, const Param& b) {
  return a.name == b.name && a.dtype == b.dtype && a.is_tensor == b.is_tensor &&
         AreSameDims(a.dims, b.dims) && a.aligned_bytes == b.aligned_bytes &&
         a.is_read == b.is_read && a.is_written == b.is_written;
}

bool AreSameConstants(const ConstantValue& a, const ConstantValue& b) {
  const double* x = std::get_if<double>(&a);
  const double* y = std::get_if<double>(&b);
  if (x == nullptr || y == nullptr) return a == b;
  if (std::isnan(*x) || std::isnan(*y)) return std::isnan(*x) && std::isnan(*y);
  return *x == *y && std::signbit(*x) == std::signbit(*y);
}

bool AreSameBlocks(const Block& a, const Block& b);

bool AreSameOps(const Op& a, const Op& b) {
  const bool has_type = a.result != kNoValue || WritesTensor(a.opcode);
  return a.opcode == b.opcode && a.result == b.result && (!has_type || a.type == b.type) &&
         a.operands == b.operands && a.index == b.index && a.axis == b.axis &&
         a.is_near == b.is_near && a.permutation == b.permutation && a.texts == b.texts &&
         AreSameConstants(a.constant, b.constant) &&
         std::equal(a.subscripts.begin(), a.subscripts.end(), b.subscripts.begin(),
                    b.subscripts.end(), AreSameSubscripts) &&
         std::equal(a.regions.begin(), a.regions.end(), b.regions.begin(), b.regions.end(),
                    AreSameBlocks) &&
         a.unroll == b.unroll && a.stages == b.stages;
}

bool AreSameBlocks(const Block& a, const Block& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), AreSameOps);
}

}  // namespace

bool AreSameSubscripts(const Subscript& a, const Subscript& b) {
  return a.kind == b.kind && a.position == b.position &&
         (a.kind != Subscript::Kind::kSlice || a.length == b.length);
}

bool AreSame(const Function& a, const Function& b) {
  return a.name == b.name &&
         std::equal(a.params.begin(), a.params.end(), b.params.begin(), b.params.end(),
                    AreSameParams) &&
         std::equal(a.extents.begin(), a.extents.end(), b.extents.begin(), b.extents.end(),
                    [](const Extent& x, const Extent& y) {
                      return x.name == y.name && x.multiple == y.multiple;
                    }) &&
         std::equal(a.vars.begin(), a.vars.end(), b.vars.begin(), b.vars.end(),
                    [](const Variable& x, const Variable& y) {
                      return x.name == y.name && x.type == y.type;
                    }) &&
         a.settings == b.settings && AreSameBlocks(a.body, b.body) &&
         a.index_bits == b.index_bits && a.threads == b.threads && a.min_blocks == b.min_blocks &&
         a.grid_dims_used == b.grid_dims_used && a.fast_math == b.fast_math;
}

std::vector<const Op*> DefinitionsOf(const Function& function) {
  std::vector<const Op*> definitions(function.value_count);
  Define(function.body, &definitions);
  return definitions;
}

std::vector<int> UsesOf(const Function& function) {
  std::vector<int> uses(function.value_count);
  CountUses(function.body, &uses);
  return uses;
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
