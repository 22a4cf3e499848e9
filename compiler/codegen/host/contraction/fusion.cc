// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/contraction/fusion.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/equality.h"

namespace phobos::compiler::host {
namespace {

using ir::Op;
using ir::Opcode;
using ir::ValueId;

class Finder {
 public:
  explicit Finder(const ir::Function& function)
      : definitions_(ir::DefinitionsOf(function)),
        uses_(ir::UsesOf(function)),
        place_(function.value_count),
        is_fused_(function.value_count) {
    Find(function.body);
  }

  std::vector<bool> Take() { return std::move(is_fused_); }

 private:
  struct Place {
    const ir::Block* block = nullptr;
    size_t index = 0;
  };

  void Find(const ir::Block& block);
  bool IsFused(const Place& first, const Op& target, ValueId operand) const;
  bool IsEvaluatedLate(const Op& op) const;
  bool Reads(ValueId value, ir::VarId var, std::set<ValueId>* seen) const;

  const std::vector<const Op*> definitions_;
  const std::vector<int> uses_;  // by ValueId
  std::vector<Place> place_;     // by ValueId
  std::vector<bool> is_fused_;
};

void Finder::Find(const ir::Block& block) {
  size_t effects_end = 0;  // behind the last op so far that may change what is read
  for (size_t i = 0; i < block.size(); ++i) {
    const Op& op = block[i];
    for (const ir::Block& region : op.regions) Find(region);
    if (op.result == ir::kNoValue || ir::IsAtomic(op.opcode)) effects_end = i + 1;
    if (op.result == ir::kNoValue) continue;
    place_[op.result] = {&block, i};
    if (op.opcode != Opcode::kDot || i + 1 == block.size()) continue;
    // Panels of a transposed b are turned, from memory.
    for (size_t side = 0; side < (op.axis == 0 ? 2 : 1); ++side) {
      const ValueId operand = op.operands[side];
      if (IsFused({&block, effects_end}, block[i + 1], operand)) is_fused_[operand] = true;
    }
  }
}

// `first` is the first place from which on nothing changes before the product is stored by
// `target`.
bool Finder::IsFused(const Place& first, const Op& target, ValueId operand) const {
  const Op& stage = *definitions_[operand];
  const Place& place = place_[operand];
  if (stage.opcode != Opcode::kStage || uses_[operand] != 1) return false;
  if (place.block != first.block || place.index < first.index) return false;
  if (!IsEvaluatedLate(*definitions_[stage.operands[0]])) return false;
  std::set<ValueId> seen;
  return target.opcode == Opcode::kStage || !Reads(stage.operands[0], target.index, &seen);
}

// Whether a tile is computed where its elements are needed.
bool Finder::IsEvaluatedLate(const Op& op) const {
  return ir::IsElementwise(op.opcode) || op.opcode == Opcode::kLoad ||
         op.opcode == Opcode::kBroadcast || op.opcode == Opcode::kReadVar ||
         op.opcode == Opcode::kIota || op.opcode == Opcode::kReshape;
}

// Whether a tile is computed from what the variable holds.
bool Finder::Reads(ValueId value, ir::VarId var, std::set<ValueId>* seen) const {
  const Op& op = *definitions_[value];
  if (op.type.is_scalar() || op.opcode == Opcode::kStage || !seen->insert(value).second) {
    return false;
  }
  if (op.opcode == Opcode::kReadVar) return op.index == var;
  const auto reads = [&](ValueId used) { return used != ir::kNoValue && Reads(used, var, seen); };
  return std::any_of(op.operands.begin(), op.operands.end(), reads) ||
         std::any_of(op.subscripts.begin(), op.subscripts.end(),
                     [&](const ir::Subscript& subscript) { return reads(subscript.position); });
}

}  // namespace

std::vector<bool> FindFusedStages(const ir::Function& function) { return Finder(function).Take(); }

}  // namespace phobos::compiler::host
