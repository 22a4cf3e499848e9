// SPDX-License-Identifier: Apache-2.0
#include "compiler/race/accesses.h"

#include <optional>

namespace phobos::compiler::race {
namespace {

using ir::Linear;
using ir::Opcode;

// Parts of one condition, or of one end of a loop, that are looked at.
constexpr int kMaxParts = 64;

// The comparison that holds where `opcode` does not. Integers only, so there is always one.
Opcode Opposite(Opcode opcode) {
  switch (opcode) {
    case Opcode::kEqual:
      return Opcode::kNotEqual;
    case Opcode::kNotEqual:
      return Opcode::kEqual;
    case Opcode::kLess:
      return Opcode::kGreaterEqual;
    case Opcode::kLessEqual:
      return Opcode::kGreater;
    case Opcode::kGreater:
      return Opcode::kLessEqual;
    default:
      return Opcode::kLess;
  }
}

// Whether nothing after the block's last op is reached from it.
bool Ends(const ir::Block& block) {
  if (block.empty()) return false;
  const Opcode last = block.back().opcode;
  return last == Opcode::kReturn || last == Opcode::kBreak || last == Opcode::kContinue;
}

class Collector {
 public:
  Collector(const ir::Function& function, Symbols* symbols)
      : function_(function), symbols_(*symbols) {}

  std::vector<Access> Run() {
    Visit(function_.body);
    return std::move(accesses_);
  }

 private:
  void Visit(const ir::Block& block) {
    const size_t outer = guards_.size();
    for (const ir::Op& op : block) {
      symbols_.Define(op);
      if (ir::IsAccess(op.opcode) && function_.params[op.index].is_written) Add(op);
      switch (op.opcode) {
        case Opcode::kIf:
          VisitIf(op);
          break;
        case Opcode::kFor:
          VisitFor(op);
          break;
        case Opcode::kWhile:
          Visit(op.regions[0]);
          VisitUnder(op.regions[1], op.regions[0].back().operands[0], true);
          break;
        case Opcode::kAssume:
          Assume(op.operands[0]);
          break;
        default:
          break;
      }
    }
    guards_.resize(outer);
  }

  void Assume(ir::ValueId condition) {
    std::vector<Fact> facts;
    Hold(condition, true, &facts);
    for (const Fact& fact : facts) symbols_.Assume(fact);
  }

  void VisitUnder(const ir::Block& block, ir::ValueId condition, bool holds) {
    const size_t outer = guards_.size();
    Hold(condition, holds, &guards_);
    Visit(block);
    guards_.resize(outer);
  }

  void VisitIf(const ir::Op& op) {
    VisitUnder(op.regions[0], op.operands[0], true);
    VisitUnder(op.regions[1], op.operands[0], false);
    // What follows in this block is reached only past an arm that does not leave it.
    if (Ends(op.regions[0])) Hold(op.operands[0], false, &guards_);
    if (Ends(op.regions[1])) Hold(op.operands[0], true, &guards_);
  }

  void VisitFor(const ir::Op& op) {
    const size_t outer = guards_.size();
    const int64_t step = std::get<int64_t>(symbols_.OpOf(op.operands[2])->constant);
    int budget = kMaxParts;
    StayBelow(symbols_.LoopIndex(op.index), op.operands[1], step, &budget);
    const int32_t strided = symbols_.StridedAtom(op.index);
    if (strided >= 0) strided_.push_back(strided);
    Visit(op.regions[0]);
    if (strided >= 0) strided_.pop_back();
    guards_.resize(outer);
  }

  // The index of a loop lies before the end; before a minimum, it lies before both its sides.
  void StayBelow(const Linear& index, ir::ValueId end, int64_t step, int* budget) {
    if (--*budget < 0) return;
    const ir::Op& op = *symbols_.OpOf(end);
    if (op.opcode == (step > 0 ? Opcode::kMinimum : Opcode::kMaximum)) {
      for (ir::ValueId side : op.operands) StayBelow(index, side, step, budget);
      return;
    }
    std::optional<Linear> left = ir::Subtract(index, *symbols_.FormOf(end));
    if (!left.has_value()) return;
    guards_.push_back({*std::move(left), step > 0 ? Interval::AtMost(-1) : Interval::AtLeast(1)});
  }

  // Adds what `condition` being `holds` says of integers. What it cannot express is left out.
  void Hold(ir::ValueId condition, bool holds, std::vector<Fact>* facts) {
    int budget = kMaxParts;
    HoldPart(condition, holds, facts, &budget);
  }

  void HoldPart(ir::ValueId condition, bool holds, std::vector<Fact>* facts, int* budget) {
    if (--*budget < 0) return;
    const ir::Op& op = *symbols_.OpOf(condition);
    switch (op.opcode) {
      case Opcode::kNot:
        if (op.type.dtype == ir::DType::kBool) HoldPart(op.operands[0], !holds, facts, budget);
        return;
      case Opcode::kAnd:
      case Opcode::kOr:
        if (holds != (op.opcode == Opcode::kAnd)) return;
        for (ir::ValueId side : op.operands) HoldPart(side, holds, facts, budget);
        return;
      case Opcode::kBroadcast:
      case Opcode::kReshape:
      case Opcode::kTranspose:
        HoldPart(op.operands[0], holds, facts, budget);
        return;
      default:
        if (op.opcode >= Opcode::kEqual && op.opcode <= Opcode::kGreaterEqual) {
          HoldComparison(op, holds ? op.opcode : Opposite(op.opcode), facts);
        }
    }
  }

  void HoldComparison(const ir::Op& op, Opcode comparison, std::vector<Fact>* facts) {
    const Linear* left = symbols_.FormOf(op.operands[0]);
    const Linear* right = symbols_.FormOf(op.operands[1]);
    if (left == nullptr || right == nullptr) return;
    std::optional<Linear> difference = ir::Subtract(*left, *right);
    if (!difference.has_value()) return;
    Interval bounds;
    switch (comparison) {
      case Opcode::kEqual:
        bounds = Interval::Exactly(0);
        break;
      case Opcode::kLess:
        bounds = Interval::AtMost(-1);
        break;
      case Opcode::kLessEqual:
        bounds = Interval::AtMost(0);
        break;
      case Opcode::kGreater:
        bounds = Interval::AtLeast(1);
        break;
      case Opcode::kGreaterEqual:
        bounds = Interval::AtLeast(0);
        break;
      default: {  // kNotEqual narrows only at the end of a range
        const Interval range = symbols_.RangeOf(*difference);
        if (range.lo == 0) bounds = Interval::AtLeast(1);
        if (range.hi == 0) bounds = Interval::AtMost(-1);
      }
    }
    facts->push_back({*std::move(difference), bounds});
  }

  void Add(const ir::Op& op) {
    Access access;
    access.op = &op;
    for (const ir::Subscript& subscript : op.subscripts) {
      const Linear* form = symbols_.FormOf(subscript.position);
      access.positions.push_back(form != nullptr ? *form : Linear());
      access.lengths.push_back(subscript.kind == ir::Subscript::Kind::kGather ? 0
                                                                              : subscript.length);
    }
    const size_t outer = guards_.size();
    const ir::ValueId mask = ir::MaskOf(op);
    if (mask != ir::kNoValue) Hold(mask, true, &guards_);
    access.guards = guards_;
    access.strided = strided_;
    guards_.resize(outer);
    accesses_.push_back(std::move(access));
  }

  const ir::Function& function_;
  Symbols& symbols_;
  std::vector<Fact> guards_;
  std::vector<int32_t> strided_;
  std::vector<Access> accesses_;
};

}  // namespace

std::vector<Access> CollectAccesses(const ir::Function& function, Symbols* symbols) {
  return Collector(function, symbols).Run();
}

}  // namespace phobos::compiler::race
