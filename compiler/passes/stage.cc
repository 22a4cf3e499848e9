// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/stage.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "compiler/ir/equality.h"
#include "compiler/ir/shape.h"
#include "compiler/passes/cost.h"

namespace phobos::compiler::passes {
namespace {

using ir::Op;
using ir::Opcode;
using ir::ValueId;

// Holding a tile costs a store and loads of it. Computing it again must cost more than that.
constexpr int kDearTwice = 12;
constexpr int kDearInLoop = 6;
constexpr int kCostLimit = 1000;

// An op in the order of the text, and the loops it is in, outermost first. A loop is named by its
// own index in that order.
struct Place {
  const Op* op = nullptr;
  std::vector<size_t> loops;
  size_t end = 0;  // behind the last op inside it
};

// Whether the op is done in a statement of its own that leaves its result in memory.
bool IsDoneApart(Opcode opcode) {
  return ir::IsWholeTile(opcode) || ir::IsAtomic(opcode) || opcode == Opcode::kJoin ||
         opcode == Opcode::kInterleave;
}

// What a value or a statement is computed from, gathered positions included.
std::vector<ValueId> Uses(const Op& op) {
  std::vector<ValueId> uses;
  for (ValueId operand : op.operands) {
    if (operand != ir::kNoValue) uses.push_back(operand);
  }
  for (const ir::Subscript& subscript : op.subscripts) uses.push_back(subscript.position);
  return uses;
}

class Stager {
 public:
  Stager(const ir::Function& function, bool in_registers)
      : function_(function),
        in_registers_(in_registers),
        definitions_(ir::DefinitionsOf(function)),
        stores_(function.params.size()),
        var_writes_(function.vars.size()),
        cost_(function.value_count),
        evaluated_at_(function.value_count) {
    Number(function.body, {});
  }

  // By ValueId: whether it has to be held.
  std::vector<bool> Decide();

 private:
  void Number(const ir::Block& block, const std::vector<size_t>& loops);
  bool IsTile(ValueId value) const { return !definitions_[value]->type.is_scalar(); }

  bool NeedsMemory(const Op& op, ValueId operand) const;
  bool IsWrittenAtOnce(size_t place, const std::vector<size_t>& evaluations) const;
  bool Repeats(const Op& op) const;
  bool IsDear(size_t definition, const std::vector<size_t>& evaluations, bool is_repeated) const;
  bool IsLoadedTwice(const Op& op, const std::vector<size_t>& evaluations) const;
  bool IsDisturbed(size_t read, size_t evaluation) const;

  const ir::Function& function_;
  const bool in_registers_;
  const std::vector<const Op*> definitions_;
  std::vector<Place> places_;
  // Places in order: of kStore and atomics by parameter; of kDeclareVar and kWriteVar by variable.
  std::vector<std::vector<size_t>> stores_;
  std::vector<std::vector<size_t>> var_writes_;
  std::vector<int> cost_;  // by ValueId: of it and all that it is computed from
  std::vector<std::vector<size_t>> evaluated_at_;  // by ValueId: places of statements
};

void Stager::Number(const ir::Block& block, const std::vector<size_t>& loops) {
  for (const Op& op : block) {
    const size_t place = places_.size();
    places_.push_back({&op, loops});
    if (ir::WritesTensor(op.opcode)) stores_[op.index].push_back(place);
    if (op.opcode == Opcode::kDeclareVar || op.opcode == Opcode::kWriteVar) {
      var_writes_[op.index].push_back(place);
    }
    if (op.result != ir::kNoValue) {
      int cost = Cost(op);
      if (op.opcode != Opcode::kStage) {
        for (ValueId use : Uses(op)) cost += IsTile(use) ? cost_[use] : 0;
      }
      cost_[op.result] = std::min(cost, kCostLimit);
    }
    std::vector<size_t> inside = loops;
    if (op.opcode == Opcode::kFor || op.opcode == Opcode::kWhile) inside.push_back(place);
    for (const ir::Block& region : op.regions) Number(region, inside);
    places_[place].end = places_.size();
  }
}

// From the last op to the first, so that all users of a value are known when it is its turn.
std::vector<bool> Stager::Decide() {
  std::vector<bool> is_held(function_.value_count);
  std::vector<bool> is_repeated(function_.value_count);
  for (size_t place = places_.size(); place-- > 0;) {
    const Op& op = *places_[place].op;
    std::vector<size_t> evaluations;
    if (IsTileStatement(function_, op) || op.opcode == Opcode::kPrint) {
      evaluations = {place};
    } else if (op.result != ir::kNoValue && IsTile(op.result)) {
      evaluations = std::move(evaluated_at_[op.result]);
      std::sort(evaluations.begin(), evaluations.end());
      evaluations.erase(std::unique(evaluations.begin(), evaluations.end()), evaluations.end());
      const bool is_disturbed =
          (op.opcode == Opcode::kLoad || op.opcode == Opcode::kReadVar) &&
          std::any_of(evaluations.begin(), evaluations.end(),
                      [&](size_t evaluation) { return IsDisturbed(place, evaluation); });
      if (is_held[op.result] || is_disturbed ||
          (IsDoneApart(op.opcode) && !IsWrittenAtOnce(place, evaluations)) ||
          IsDear(place, evaluations, is_repeated[op.result]) || IsLoadedTwice(op, evaluations)) {
        is_held[op.result] = true;
        evaluations = {place};
      }
    }
    for (ValueId use : Uses(op)) {
      if (!IsTile(use)) continue;
      evaluated_at_[use].insert(evaluated_at_[use].end(), evaluations.begin(), evaluations.end());
      const bool passes_on =
          op.result != ir::kNoValue && is_repeated[op.result] && !is_held[op.result];
      if (passes_on || Repeats(op)) is_repeated[use] = true;
      if (NeedsMemory(op, use)) is_held[use] = true;
    }
  }
  return is_held;
}

// Whether the next op alone puts the result of an op over a whole tile where it is to be: a kStage,
// or, of a kDot, a write of a variable.
bool Stager::IsWrittenAtOnce(size_t place, const std::vector<size_t>& evaluations) const {
  if (place + 1 == places_.size()) return false;
  const Op& op = *places_[place].op;
  const Op& next = *places_[place + 1].op;
  if (next.operands.empty() || next.operands[0] != op.result) return false;
  if (next.opcode == Opcode::kStage) return true;
  return op.opcode == Opcode::kDot && evaluations == std::vector<size_t>{place + 1} &&
         (next.opcode == Opcode::kWriteVar || next.opcode == Opcode::kDeclareVar);
}

// Whether the elements of `value`, which `op` uses, are found by their place in memory.
bool Stager::NeedsMemory(const Op& op, ValueId value) const {
  const Op& operand = *definitions_[value];
  if (op.opcode == Opcode::kDot) {
    return (value == op.operands[0] || value == op.operands[1]) && operand.opcode != Opcode::kStage;
  }
  const bool is_in_order = op.opcode != Opcode::kPrint &&
                           (op.opcode != Opcode::kReshape ||
                            ir::LongSides(operand.type.shape) == ir::LongSides(op.type.shape));
  return !is_in_order && operand.opcode != Opcode::kReadVar && operand.opcode != Opcode::kStage;
}

// Whether `op` asks for an element of its operand once for each of several elements.
bool Stager::Repeats(const Op& op) const {
  return op.opcode == Opcode::kBroadcast &&
         definitions_[op.operands[0]]->type.elements() < op.type.elements();
}

bool Stager::IsDear(size_t definition, const std::vector<size_t>& evaluations,
                    bool is_repeated) const {
  const Op& op = *places_[definition].op;
  // In memory already, or no work itself: what it arranges is looked at.
  if (op.opcode == Opcode::kReadVar || op.opcode == Opcode::kReshape) return false;
  const int cost = cost_[op.result];
  if (evaluations.size() > 1 && cost >= kDearTwice) return true;
  if (is_repeated && cost >= kDearInLoop) return true;
  const size_t depth = places_[definition].loops.size();
  return cost >= kDearInLoop &&
         std::any_of(evaluations.begin(), evaluations.end(),
                     [&](size_t evaluation) { return places_[evaluation].loops.size() > depth; });
}

bool Stager::IsLoadedTwice(const Op& op, const std::vector<size_t>& evaluations) const {
  return in_registers_ && op.opcode == Opcode::kLoad && evaluations.size() > 1 &&
         op.type.elements() <= kRegisterElements * function_.threads &&
         std::any_of(evaluations.begin(), evaluations.end(), [this](size_t evaluation) {
           return ir::IsReduction(places_[evaluation].op->opcode);
         });
}

// Whether what `read` reads may have changed by the time of `evaluation`.
bool Stager::IsDisturbed(size_t read, size_t evaluation) const {
  const Op& op = *places_[read].op;
  const std::vector<size_t>& writes =
      op.opcode == Opcode::kLoad ? stores_[op.index] : var_writes_[op.index];
  const auto has_write_between = [&writes](size_t before, size_t behind) {
    const auto write = std::upper_bound(writes.begin(), writes.end(), before);
    return write != writes.end() && *write < behind;
  };
  if (has_write_between(read, evaluation)) return true;
  // Around again: any write inside a loop that the read is not in comes before some evaluation.
  const std::vector<size_t>& loops = places_[evaluation].loops;
  for (size_t i = places_[read].loops.size(); i < loops.size(); ++i) {
    if (has_write_between(loops[i], places_[loops[i]].end)) return true;
  }
  return std::binary_search(writes.begin(), writes.end(), evaluation) &&
         !ir::AreSameElements(definitions_, *places_[evaluation].op, op);  // a variable: whole
}

// Puts a kStage behind each held value and turns its uses to that.
class Inserter {
 public:
  Inserter(ir::Function* function, const std::vector<bool>& is_held)
      : function_(function), is_held_(is_held), renamed_(is_held.size()) {
    for (size_t i = 0; i < renamed_.size(); ++i) renamed_[i] = static_cast<ValueId>(i);
  }

  ir::Block Rewrite(ir::Block block) {
    ir::Block result;
    result.reserve(block.size());
    for (Op& op : block) {
      for (ValueId& operand : op.operands) Rename(&operand);
      for (ir::Subscript& subscript : op.subscripts) Rename(&subscript.position);
      for (ir::Block& region : op.regions) region = Rewrite(std::move(region));
      result.push_back(std::move(op));
      const ValueId value = result.back().result;
      if (value == ir::kNoValue || !is_held_[value]) continue;
      Op stage{.opcode = Opcode::kStage, .type = result.back().type};
      stage.result = function_->value_count++;
      stage.operands = {value};
      stage.line = result.back().line;
      stage.column = result.back().column;
      renamed_[value] = stage.result;
      result.push_back(std::move(stage));
    }
    return result;
  }

 private:
  void Rename(ValueId* value) const {
    if (*value != ir::kNoValue) *value = renamed_[*value];
  }

  ir::Function* const function_;
  const std::vector<bool>& is_held_;
  std::vector<ValueId> renamed_;
};

ir::Function Staged(ir::Function function, bool in_registers) {
  const std::vector<bool> is_held = Stager(function, in_registers).Decide();
  ir::Block body = std::move(function.body);
  function.body = Inserter(&function, is_held).Rewrite(std::move(body));
  return function;
}

}  // namespace

bool IsTileStatement(const ir::Function& function, const Op& op) {
  switch (op.opcode) {
    case Opcode::kStore:
    case Opcode::kStage:
      return !op.type.is_scalar();
    case Opcode::kDeclareVar:
    case Opcode::kWriteVar:
      return !function.vars[op.index].type.is_scalar();
    default:
      if (ir::IsAtomic(op.opcode)) return op.result == ir::kNoValue && !op.type.is_scalar();
      return ir::IsReduction(op.opcode) && op.type.is_scalar();
  }
}

ir::Function Stage(ir::Function function) { return Staged(std::move(function), false); }

ir::Function StageInRegisters(ir::Function function) { return Staged(std::move(function), true); }

}  // namespace phobos::compiler::passes
