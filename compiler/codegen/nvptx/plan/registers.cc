// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/registers.h"

#include <algorithm>
#include <optional>

#include "compiler/codegen/kernel/held_memory.h"
#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/ir/equality.h"
#include "compiler/ir/shape.h"

namespace phobos::compiler::nvptx {
namespace {

using ir::Op;
using ir::Opcode;

// Registers of a thread for an operand that is read before a loop.
constexpr int64_t kMostWordsBefore = 32;

// The side of a tile that has no other long one; 0: it has.
int64_t OnlySide(const ir::Type& type) {
  const std::vector<int64_t> sides = ir::LongSides(type.shape);
  return sides.size() == 1 ? sides[0] : 0;
}

// Whether a statement leaves a tile for others.
bool Holds(const Op& op) {
  return op.opcode == Opcode::kStage || op.opcode == Opcode::kDeclareVar ||
         op.opcode == Opcode::kWriteVar;
}

class Keeper {
 public:
  Keeper(const ir::Function& function, const Copies& copies,
         std::map<const Op*, Statement>* statements)
      : function_(function),
        copies_(copies),
        definitions_(ir::DefinitionsOf(function)),
        statements_(*statements) {}

  Kept Find() {
    FindRows();
    FindOperands();
    FindReadBefore(function_.body);
    return std::move(kept_);
  }

 private:
  // Tiles whose one long side has a certain length.
  struct Rows {
    std::optional<Layout> layout;
    bool fits = true;
  };

  void FindRows();
  bool MakesRows(const Statement& statement) const;
  bool IsOverRows(const Statement& statement) const;
  void SetRows(int64_t length, const Layout& layout);
  void FindOperands();
  bool TakesSums(const Statement& product) const;
  void FindReadBefore(const ir::Block& block);

  const ir::Function& function_;
  const Copies& copies_;
  const std::vector<const Op*> definitions_;
  std::map<const Op*, Statement>& statements_;
  Kept kept_;
};

// A reduction along the rows of blocks after which each thread has the results of its own rows.
bool Keeper::MakesRows(const Statement& statement) const {
  const Op& op = *statement.op;
  return statement.whole != nullptr && ir::IsReduction(statement.whole->opcode) &&
         op.opcode == Opcode::kStage && statement.layout.is_in_blocks() &&
         !statement.reduction.is_apart && statement.reduction.left() == 1;
}

// One that computes a tile from others, element by element.
bool Keeper::IsOverRows(const Statement& statement) const {
  return statement.whole == nullptr && Holds(*statement.op) &&
         !ir::IsAtomic(codegen::DoneBy(definitions_, *statement.op).opcode);
}

// All tiles of a length are kept with their rows or none is.
void Keeper::FindRows() {
  std::map<int64_t, Rows> found;
  for (const auto& [op, statement] : statements_) {
    if (!Holds(*op)) continue;
    Rows& rows = found[OnlySide(codegen::StoredType(function_, *op))];
    if (!MakesRows(statement)) {
      rows.fits &= IsOverRows(statement);
      continue;
    }
    const Layout layout = RowsOf(statement.layout);
    rows.fits &= !rows.layout.has_value() || *rows.layout == layout;
    rows.layout = layout;
  }
  for (const auto& [op, statement] : statements_) {
    for (const HeldRead& read : statement.held) {
      Rows& rows = found[OnlySide(read.op->type)];
      const bool is_same = OnlySide(statement.type) > 0 && IsOverRows(statement);
      const bool is_block = statement.layout.is_in_blocks() && rows.layout.has_value() &&
                            !statement.reduction.is_apart &&
                            RowsOf(statement.layout) == *rows.layout;
      rows.fits &= read.is_row && (is_same || is_block);
    }
  }
  for (const auto& [length, rows] : found) {
    if (length > 0 && rows.fits && rows.layout.has_value()) SetRows(length, *rows.layout);
  }
}

void Keeper::SetRows(int64_t length, const Layout& layout) {
  for (auto& [op, statement] : statements_) {
    if (!Holds(*op)) continue;
    if (OnlySide(codegen::StoredType(function_, *op)) != length) continue;
    if (statement.whole == nullptr) statement.layout = layout;
    if (op->opcode == Opcode::kStage) {
      kept_.row_values.insert(op->result);
    } else {
      kept_.row_variables.insert(op->index);
    }
  }
}

// Whether a thread's elements of a product's left operand, dealt out as a product's sums of the
// same sides would be, are what the instruction wants of it.
bool Keeper::TakesSums(const Statement& product) const {
  if (!product.fragments.has_value() || product.fragments->warp_columns != 1) return false;
  const Op& operand = *definitions_[product.whole->operands[0]];
  const Statement& made = statements_.at(&operand);
  if (copies_.copies.count(&operand) > 0 || !IsOverRows(made)) return false;
  if (ir::ByteSize(operand.type.dtype) != 2) return false;
  if (operand.type.shape.size() != product.type.shape.size()) return false;
  FragmentDealing sums = *product.fragments;
  sums.columns = operand.type.shape.back() / kFragmentColumns;
  return made.layout == FragmentLayout(sums);
}

void Keeper::FindOperands() {
  std::map<const Op*, bool> fits;  // by the kStage of a left operand
  for (const auto& [op, statement] : statements_) {
    for (const HeldRead& read : statement.held) {
      const bool is_left = statement.whole != nullptr && statement.whole->opcode == Opcode::kDot &&
                           read.op->result == statement.whole->operands[0] &&
                           read.op->result != statement.whole->operands[1] && read.is_moved;
      const bool takes = is_left && TakesSums(statement);
      const auto [found, is_new] = fits.try_emplace(read.op, takes);
      if (!is_new) found->second &= takes;
    }
  }
  for (const auto& [op, is_kept] : fits) {
    if (is_kept) kept_.operands.insert(op);
  }
}

void Keeper::FindReadBefore(const ir::Block& block) {
  for (const Op& op : block) {
    for (const ir::Block& region : op.regions) FindReadBefore(region);
    if (op.opcode != Opcode::kFor) continue;
    const ir::Block& body = op.regions[0];
    for (const Op& inner : body) {
      const auto found = statements_.find(&inner);
      if (found == statements_.end() || !found->second.fragments.has_value()) continue;
      const Op& operand = *definitions_[found->second.whole->operands[0]];
      const bool is_inside = std::any_of(body.begin(), body.end(),
                                         [&](const Op& other) { return &other == &operand; });
      const int64_t words = found->second.fragments->rows * kFragmentRows *
                            operand.type.shape.back() * ir::ByteSize(operand.type.dtype) /
                            (kWarp * 4);
      if (is_inside || words > kMostWordsBefore || kept_.operands.count(&operand) > 0) continue;
      kept_.read_before[&op].push_back(&inner);
    }
  }
}

}  // namespace

Kept FindKept(const ir::Function& function, const Copies& copies,
              std::map<const Op*, Statement>* statements) {
  return Keeper(function, copies, statements).Find();
}

}  // namespace phobos::compiler::nvptx
