// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/value/accumulate.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/ir/equality.h"

namespace phobos::compiler::sema {
namespace {

using ir::Op;
using ir::Opcode;
using ir::ValueId;

constexpr int64_t kNowhere = -1;

class Accumulator {
 public:
  explicit Accumulator(const ir::Function& function)
      : uses_(ir::UsesOf(function)), dot_at_(function.value_count, kNowhere) {}

  void Rewrite(ir::Block* block);

 private:
  int64_t DotAmong(const Op& sum) const;

  const std::vector<int> uses_;  // by ValueId
  std::vector<int64_t> dot_at_;  // by ValueId: where in the Block at hand a kDot from 0 stands
};

// The place of the last kDot that the sum may be started from.
int64_t Accumulator::DotAmong(const Op& sum) const {
  int64_t last = kNowhere;
  for (ValueId operand : sum.operands) {
    if (uses_[operand] == 1 && dot_at_[operand] > last) last = dot_at_[operand];
  }
  return last;
}

void Accumulator::Rewrite(ir::Block* block) {
  for (Op& op : *block) {
    for (ir::Block& region : op.regions) Rewrite(&region);
  }
  std::vector<ValueId> dots;
  std::vector<bool> is_moved(block->size());
  for (size_t i = 0; i < block->size(); ++i) {
    Op& op = (*block)[i];
    if (op.opcode == Opcode::kAdd) {
      if (const int64_t place = DotAmong(op); place != kNowhere) {
        Op dot = std::move((*block)[place]);
        is_moved[place] = true;
        dot.operands[2] = op.operands[dot.result == op.operands[0] ? 1 : 0];
        dot.result = op.result;
        op = std::move(dot);
      }
    } else if (op.opcode == Opcode::kDot && op.operands[2] == ir::kNoValue) {
      dot_at_[op.result] = static_cast<int64_t>(i);
      dots.push_back(op.result);
    }
  }
  for (ValueId dot : dots) dot_at_[dot] = kNowhere;
  size_t place = 0;
  std::erase_if(*block, [&](const Op&) { return is_moved[place++]; });
}

}  // namespace

void AccumulateDots(ir::Function* function) { Accumulator(*function).Rewrite(&function->body); }

}  // namespace phobos::compiler::sema
