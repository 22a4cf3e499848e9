// SPDX-License-Identifier: Apache-2.0
#include "compiler/race/symbols.h"

#include <algorithm>
#include <utility>

namespace phobos::compiler::race {
namespace {

using ir::DType;
using ir::Linear;
using ir::Opcode;

// Longer forms are not kept, so that no source makes them slow.
constexpr size_t kMaxTerms = 32;

// Sides of the minima that end one loop which are looked at.
constexpr int kMaxEnds = 64;

// What a launch may be, as client/launch/grid.h and client/cpp/plan/promises.h check it.
constexpr int64_t kMostBlocks[3] = {(int64_t{1} << 31) - 1, 65535, 65535};
constexpr int64_t kMostExtent = (int64_t{1} << 48) - 1;

bool IsI64(const ir::Op& op) { return op.type == ir::Type{DType::kI64, {}}; }

// Ops without operands that are one number for the launch.
bool IsUniformLeaf(Opcode opcode) {
  return opcode == Opcode::kConstant || opcode == Opcode::kGridSize || opcode == Opcode::kExtent ||
         opcode == Opcode::kScalarParam;
}

// Whether the op's value depends on its operands alone.
bool IsPure(Opcode opcode) {
  return IsUniformLeaf(opcode) || opcode == Opcode::kBlockId || opcode == Opcode::kLoopIndex ||
         ir::IsElementwise(opcode);
}

Interval RangeOfType(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  if (!ir::IsInteger(dtype) || ir::BitWidth(dtype) == 64) return {};
  const int bits = ir::BitWidth(dtype);
  if (!ir::IsSigned(dtype)) return {0, (int64_t{1} << bits) - 1};
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

// a * b, or anything where the product may wrap.
Interval Product(Interval a, Interval b) {
  if (!a.has_lo() || !a.has_hi() || !b.has_lo() || !b.has_hi()) return {};
  const auto times = [](int64_t x, int64_t y) { return static_cast<__int128>(x) * y; };
  const auto [lo, hi] =
      std::minmax({times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)});
  const Interval product = {LowerBound(lo), UpperBound(hi)};
  return product.has_lo() && product.has_hi() ? product : Interval();
}

// a // b, where by 0 gives 0. The ends of an open range are those of i64.
Interval Quotient(Interval a, Interval b) {
  if (b.lo == b.hi && b.lo > 0) {
    return {static_cast<int64_t>(FloorDivide(__int128{a.lo}, b.lo)),
            static_cast<int64_t>(FloorDivide(__int128{a.hi}, b.lo))};
  }
  // By a positive number no larger magnitude, and the sign stays.
  if (a.lo < 0) return {};
  return {b.lo >= 0 ? 0 : -a.hi, a.hi};
}

// a % b, where by 0 gives 0.
Interval Remainder(Interval a, Interval b) {
  if (!b.has_lo()) return {};
  Interval rest = {std::min<int64_t>(b.lo + 1, 0), std::max<int64_t>(b.hi - 1, 0)};
  if (a.lo >= 0 && b.lo >= 0) rest.hi = std::min(rest.hi, a.hi);
  return rest;
}

int64_t ExtraOf(const ir::Op& op) {
  if (op.opcode != Opcode::kConstant) return int64_t{op.index} + op.axis;
  if (const double* value = std::get_if<double>(&op.constant)) {
    int64_t bits = 0;
    static_assert(sizeof bits == sizeof *value);
    __builtin_memcpy(&bits, value, sizeof bits);
    return bits;
  }
  return std::get<int64_t>(op.constant);
}

}  // namespace

Symbols::Symbols(const ir::Function& function)
    : ops_(function.value_count),
      numbers_(function.value_count, -1),
      loop_index_(function.loop_count),
      strided_(function.loop_count, -1),
      extent_atoms_(function.extents.size(), -1) {}

void Symbols::Define(const ir::Op& op) {
  if (op.opcode == Opcode::kFor) EnterLoop(op);
  if (op.result == ir::kNoValue) return;
  ops_[op.result] = &op;
  if (op.type.is_scalar()) numbers_[op.result] = NumberOf(op);
}

// A bound of one number narrows what is computed from it; other facts count in each proof.
void Symbols::Assume(const Fact& fact) {
  if (fact.form.terms.size() == 1) {
    const auto [atom, coefficient] = fact.form.terms[0];
    const __int128 lo = static_cast<__int128>(fact.bounds.lo) - fact.form.constant;
    const __int128 hi = static_cast<__int128>(fact.bounds.hi) - fact.form.constant;
    Interval bounds = {fact.bounds.has_lo() ? LowerBound(lo) : Interval::kMinusInfinity,
                       fact.bounds.has_hi() ? UpperBound(hi) : Interval::kPlusInfinity};
    if (coefficient == -1) {
      bounds = {bounds.has_hi() ? -bounds.hi : Interval::kMinusInfinity,
                bounds.has_lo() ? -bounds.lo : Interval::kPlusInfinity};
    }
    const bool counts = coefficient == 1 || coefficient == -1;
    if (counts) atoms_[atom].range = Intersect(atoms_[atom].range, bounds);
  }
  facts_.push_back(fact);
}

const Linear* Symbols::FormOf(ir::ValueId value) const {
  const int32_t number = numbers_[value];
  if (number < 0 || !by_number_[number].form.has_value()) return nullptr;
  return &*by_number_[number].form;
}

const Linear* Symbols::OperandForm(const ir::Op& op, size_t i) const {
  return FormOf(op.operands[i]);
}

int32_t Symbols::NumberOf(const ir::Op& op) {
  int32_t operands[3] = {-1, -1, -1};
  bool has_numbers = IsPure(op.opcode);
  for (size_t i = 0; i < op.operands.size() && has_numbers; ++i) {
    if (op.operands[i] != ir::kNoValue) operands[i] = numbers_[op.operands[i]];
    has_numbers = operands[i] >= 0;
  }
  const Key key(op.opcode, op.type.dtype, operands[0], operands[1], operands[2], ExtraOf(op));
  if (has_numbers) {
    auto found = known_.find(key);
    if (found != known_.end()) return found->second;
  }
  by_number_.push_back(Analyze(op));
  const int32_t number = static_cast<int32_t>(by_number_.size()) - 1;
  if (has_numbers) known_.emplace(key, number);
  return number;
}

Symbols::Number Symbols::Analyze(const ir::Op& op) {
  Number number;
  number.uniform = IsUniformLeaf(op.opcode) || (IsPure(op.opcode) && !op.operands.empty());
  for (ir::ValueId operand : op.operands) {
    if (!number.uniform) break;
    number.uniform = numbers_[operand] >= 0 && by_number_[numbers_[operand]].uniform;
  }
  number.why = WhyUnknown(op);
  if (!IsI64(op)) return number;
  number.form = StridedOf(op);
  if (!number.form.has_value()) number.form = CeilDivisionOf(op);
  if (!number.form.has_value()) number.form = LinearOf(op);
  bool may_wrap = number.form.has_value() && MayWrap(*number.form);
  if (may_wrap && Wraps(*number.form)) {
    // A number of i64 that is this one modulo 2^64 is this one, if it can be one of i64 alone.
    Linear all = Expand(*number.form);
    may_wrap = MayWrap(all);
    if (!may_wrap) number.form = std::move(all);
  }
  if (!number.form.has_value()) number.form = DivisionOf(op);
  if (number.form.has_value() && !may_wrap && number.form->terms.size() <= kMaxTerms) return number;
  if (op.opcode == Opcode::kBlockId) {
    number.form = Linear::Atom(BlockAtom(op.axis));
  } else if (op.opcode == Opcode::kLoopIndex) {
    number.form = loop_index_[op.index];
  } else if (number.uniform) {
    Atom atom = Atom::Of(Atom::Kind::kUniform, RangeOfResult(op));
    if (may_wrap) atom.sum = SumOf(*number.form);
    number.form = Fresh(std::move(atom));
    const int32_t index = number.form->terms[0].first;
    if (op.opcode == Opcode::kExtent) extent_atoms_[op.index] = index;
    if (op.opcode == Opcode::kGridSize) grid_atoms_[op.axis] = index;
  } else {
    Atom atom = Atom::Of(Atom::Kind::kUnknown, RangeOfResult(op));
    if (may_wrap) atom.sum = SumOf(*number.form);
    atom.why = !number.why.empty() ? number.why
               : may_wrap          ? "arithmetic that may leave 64 bits"
                                   : "a value that is not linear in the block's index";
    number.form = Fresh(std::move(atom));
  }
  return number;
}

// a // b + (a % b != 0) of uniform a and a positive constant b, as ph.cdiv is lowered: at least 1
// where a is, which the sum of its parts does not show.
std::optional<Linear> Symbols::CeilDivisionOf(const ir::Op& op) {
  if (op.opcode != Opcode::kAdd) return std::nullopt;
  const ir::Op& quotient = *ops_[op.operands[0]];
  const ir::Op& cast = *ops_[op.operands[1]];
  if (quotient.opcode != Opcode::kFloorDiv || cast.opcode != Opcode::kCast) return std::nullopt;
  const ir::Op& has_rest = *ops_[cast.operands[0]];
  if (has_rest.opcode != Opcode::kNotEqual) return std::nullopt;
  const ir::Op& rest = *ops_[has_rest.operands[0]];
  const Linear* zero = OperandForm(has_rest, 1);
  const bool fits = rest.opcode == Opcode::kMod && zero != nullptr && *zero == Linear::Of(0) &&
                    numbers_[rest.operands[0]] == numbers_[quotient.operands[0]] &&
                    numbers_[rest.operands[1]] == numbers_[quotient.operands[1]];
  if (!fits || !by_number_[numbers_[quotient.operands[0]]].uniform) return std::nullopt;
  const Linear& a = *OperandForm(quotient, 0);
  const Linear& b = *OperandForm(quotient, 1);
  if (!b.is_constant() || b.constant <= 0) return std::nullopt;
  const Interval range = RangeOf(a);
  const Linear result = FreshUniform({static_cast<int64_t>(CeilDivide(range.lo, b.constant)),
                                      static_cast<int64_t>(CeilDivide(range.hi, b.constant))});
  if (std::optional<Linear> over = ir::Combine(result, b.constant, a, -1)) {
    facts_.push_back({*std::move(over), {0, b.constant - 1}});
  }
  return result;
}

std::string_view Symbols::WhyUnknown(const ir::Op& op) const {
  if (ir::IsAccess(op.opcode)) return "a value loaded from memory";
  if (op.opcode == Opcode::kReadVar) return "a variable";
  for (ir::ValueId operand : op.operands) {
    if (operand == ir::kNoValue || numbers_[operand] < 0) continue;
    const std::string_view why = by_number_[numbers_[operand]].why;
    if (!why.empty()) return why;
  }
  return "";
}

std::optional<Linear> Symbols::LinearOf(const ir::Op& op) const {
  switch (op.opcode) {
    case Opcode::kConstant:
      return Linear::Of(std::get<int64_t>(op.constant));
    case Opcode::kAdd:
      return ir::Add(*OperandForm(op, 0), *OperandForm(op, 1));
    case Opcode::kSub:
      return ir::Subtract(*OperandForm(op, 0), *OperandForm(op, 1));
    case Opcode::kNegate:
      return ir::Scale(*OperandForm(op, 0), -1);
    case Opcode::kMul:
      if (OperandForm(op, 1)->is_constant()) {
        return ir::Scale(*OperandForm(op, 0), OperandForm(op, 1)->constant);
      }
      if (OperandForm(op, 0)->is_constant()) {
        return ir::Scale(*OperandForm(op, 1), OperandForm(op, 0)->constant);
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// a // b and a % b: of an atom that has one value a block by a uniform number they are atoms of
// their own; of uniform numbers by a positive constant they are uniform, and known to within the
// constant.
std::optional<Linear> Symbols::DivisionOf(const ir::Op& op) {
  const bool is_quotient = op.opcode == Opcode::kFloorDiv;
  if (!is_quotient && op.opcode != Opcode::kMod) return std::nullopt;
  const Linear& a = *OperandForm(op, 0);
  const Linear& b = *OperandForm(op, 1);
  const bool uniform_divisor = by_number_[numbers_[op.operands[1]]].uniform;
  const bool is_atom = a.constant == 0 && a.terms.size() == 1 && a.terms[0].second == 1;
  if (uniform_divisor && is_atom && atoms_[a.terms[0].first].is_axis()) {
    for (size_t i = 0; i < atoms_.size(); ++i) {
      const Atom& atom = atoms_[i];
      const bool same_kind =
          atom.kind == (is_quotient ? Atom::Kind::kQuotient : Atom::Kind::kRemainder);
      if (same_kind && atom.of == a.terms[0].first && atom.divisor == b) {
        return Linear::Atom(static_cast<int32_t>(i));
      }
    }
    Atom atom =
        Atom::Of(is_quotient ? Atom::Kind::kQuotient : Atom::Kind::kRemainder, RangeOfResult(op));
    atom.of = a.terms[0].first;
    atom.divisor = b;
    return Fresh(std::move(atom));
  }
  const bool uniform = uniform_divisor && by_number_[numbers_[op.operands[0]]].uniform;
  if (!uniform || !is_quotient || !b.is_constant() || b.constant <= 0) return std::nullopt;
  const Linear quotient = FreshUniform(RangeOfResult(op));
  if (std::optional<Linear> rest = ir::Combine(a, 1, quotient, -b.constant)) {
    facts_.push_back({*std::move(rest), {0, b.constant - 1}});
  }
  return quotient;
}

Linear Symbols::Fresh(Atom atom) {
  atoms_.push_back(std::move(atom));
  return Linear::Atom(static_cast<int32_t>(atoms_.size()) - 1);
}

int32_t Symbols::BlockAtom(int32_t axis) {
  if (block_atoms_[axis] < 0) {
    Atom atom = Atom::Of(Atom::Kind::kBlock, {0, kMostBlocks[axis] - 1});
    atom.axis = axis;
    block_atoms_[axis] = Fresh(std::move(atom)).terms[0].first;
  }
  return block_atoms_[axis];
}

// How often a loop from `lo` turns at most. Before a minimum, it ends before both its sides.
int64_t Symbols::MostTurns(const Linear& lo, ir::ValueId end, int64_t step, int* budget) const {
  if (--*budget < 0) return Interval::kPlusInfinity;
  const ir::Op& op = *ops_[end];
  if (op.opcode == (step > 0 ? Opcode::kMinimum : Opcode::kMaximum)) {
    return std::min(MostTurns(lo, op.operands[0], step, budget),
                    MostTurns(lo, op.operands[1], step, budget));
  }
  const std::optional<Linear> distance =
      step > 0 ? ir::Subtract(*FormOf(end), lo) : ir::Subtract(lo, *FormOf(end));
  if (!distance.has_value()) return Interval::kPlusInfinity;
  int64_t most = RangeOf(*distance).hi;
  if (Wraps(*distance)) {
    // The distance is this one, or less by 2^64 and no turn is made.
    const Interval range = RangeOf(Expand(*distance));
    if (range.has_lo() && range.lo >= 0) most = std::min(most, range.hi);
  }
  if (most == Interval::kPlusInfinity) return most;
  const __int128 stride = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  return std::max<int64_t>(UpperBound(FloorDivide(most - __int128{1}, stride)), 0);
}

// The index is lo + step * iteration, which never wraps; that it stays below the end is a guard of
// the body (accesses.cc).
void Symbols::EnterLoop(const ir::Op& loop) {
  EnterStridedLoop(loop);
  const Linear& lo = *FormOf(loop.operands[0]);
  const int64_t step = std::get<int64_t>(ops_[loop.operands[2]]->constant);
  int budget = kMaxEnds;
  const int64_t most = MostTurns(lo, loop.operands[1], step, &budget);
  const Linear iteration = Fresh(Atom::Of(Atom::Kind::kIteration, {0, most}));
  std::optional<Linear> index = ir::Combine(lo, 1, iteration, step);
  if (!index.has_value()) {
    Atom atom = Atom::Of(Atom::Kind::kUnknown, {});
    atom.why = "a loop's index";
    index = Fresh(std::move(atom));
  }
  loop_index_[loop.index] = *std::move(index);
}

bool Symbols::IsConstant(ir::ValueId value, int64_t constant) const {
  const Linear* form = FormOf(value);
  return form != nullptr && *form == Linear::Of(constant);
}

// Turns 0, 1, ... before (block < end ? (end - block - 1) // grid + 1 : 0), as sema counts those of
// ph.range(ph.ctx.block.x, end, ph.ctx.grid.x): block + turn * grid stays below the end.
void Symbols::EnterStridedLoop(const ir::Op& loop) {
  const ir::Op& select = *ops_[loop.operands[1]];
  if (select.opcode != Opcode::kSelect || !IsConstant(loop.operands[0], 0) ||
      !IsConstant(loop.operands[2], 1) || !IsConstant(select.operands[2], 0)) {
    return;
  }
  const ir::Op& less = *ops_[select.operands[0]];
  const ir::Op& sum = *ops_[select.operands[1]];
  if (less.opcode != Opcode::kLess || sum.opcode != Opcode::kAdd) return;
  const ir::Op& quotient = *ops_[sum.operands[0]];
  if (quotient.opcode != Opcode::kFloorDiv || !IsConstant(sum.operands[1], 1)) return;
  const ir::Op& rest = *ops_[quotient.operands[0]];
  if (rest.opcode != Opcode::kSub || !IsConstant(rest.operands[1], 1)) return;
  const ir::Op& distance = *ops_[rest.operands[0]];
  const ir::Op& block = *ops_[less.operands[0]];
  const ir::Op& grid = *ops_[quotient.operands[1]];
  const bool fits = distance.opcode == Opcode::kSub &&
                    numbers_[distance.operands[0]] == numbers_[less.operands[1]] &&
                    numbers_[distance.operands[1]] == numbers_[less.operands[0]] &&
                    block.opcode == Opcode::kBlockId && grid.opcode == Opcode::kGridSize &&
                    block.axis == grid.axis && FormOf(less.operands[1]) != nullptr;
  if (!fits) return;
  const Interval end = RangeOf(*FormOf(less.operands[1]));
  Atom atom =
      Atom::Of(Atom::Kind::kStrided, {0, end.has_hi() ? std::max<int64_t>(end.hi - 1, 0) : end.hi});
  atom.axis = block.axis;
  strided_[loop.index] = Fresh(std::move(atom)).terms[0].first;
}

// block + turn * grid of such a loop.
std::optional<Linear> Symbols::StridedOf(const ir::Op& op) const {
  if (op.opcode != Opcode::kAdd) return std::nullopt;
  const ir::Op& block = *ops_[op.operands[0]];
  const ir::Op& product = *ops_[op.operands[1]];
  if (block.opcode != Opcode::kBlockId || product.opcode != Opcode::kMul) return std::nullopt;
  const ir::Op& turn = *ops_[product.operands[0]];
  const ir::Op& grid = *ops_[product.operands[1]];
  if (turn.opcode != Opcode::kLoopIndex || grid.opcode != Opcode::kGridSize) return std::nullopt;
  const int32_t atom = strided_[turn.index];
  const bool fits = atom >= 0 && block.axis == grid.axis && atoms_[atom].axis == block.axis;
  return fits ? std::optional<Linear>(Linear::Atom(atom)) : std::nullopt;
}

bool Symbols::Wraps(const Linear& form) const {
  return std::any_of(form.terms.begin(), form.terms.end(),
                     [this](const auto& term) { return atoms_[term.first].sum.has_value(); });
}

std::optional<Linear> Symbols::SumOf(const Linear& form) const {
  Linear sum = Expand(form);
  if (sum.terms.size() > kMaxTerms) return std::nullopt;
  return sum;
}

Linear Symbols::Expand(const Linear& form) const {
  std::vector<std::pair<int32_t, uint64_t>> parts;
  uint64_t constant = static_cast<uint64_t>(form.constant);
  for (const auto& [atom, coefficient] : form.terms) {
    const uint64_t factor = static_cast<uint64_t>(coefficient);
    const std::optional<Linear>& sum = atoms_[atom].sum;
    if (!sum.has_value()) {
      parts.emplace_back(atom, factor);
      continue;
    }
    constant += factor * static_cast<uint64_t>(sum->constant);
    for (const auto& [part, times] : sum->terms) {
      parts.emplace_back(part, factor * static_cast<uint64_t>(times));
    }
  }
  std::sort(parts.begin(), parts.end());
  Linear result = Linear::Of(static_cast<int64_t>(constant));
  for (size_t i = 0; i < parts.size();) {
    const int32_t atom = parts[i].first;
    uint64_t total = 0;
    for (; i < parts.size() && parts[i].first == atom; ++i) total += parts[i].second;
    if (total != 0) result.terms.emplace_back(atom, static_cast<int64_t>(total));
  }
  return result;
}

// Whether an op with this form as its unbounded result may have another one in i64. A constant is a
// number of i64, and so is an atom alone, but for how often a loop turns.
bool Symbols::MayWrap(const Linear& form) const {
  if (form.is_constant()) return false;
  const bool is_atom = form.constant == 0 && form.terms.size() == 1 && form.terms[0].second == 1;
  if (is_atom && atoms_[form.terms[0].first].kind != Atom::Kind::kIteration) return false;
  const Interval range = RangeOf(form);
  return !range.has_lo() || !range.has_hi();
}

Interval Symbols::RangeOf(const Linear& form) const {
  // Beyond this a sum might leave 128 bits.
  constexpr int64_t kMaxCoefficient = int64_t{1} << 48;
  bool open_lo = form.terms.size() > kMaxTerms;
  bool open_hi = open_lo;
  __int128 lo = form.constant;
  __int128 hi = form.constant;
  for (const auto& [atom, coefficient] : form.terms) {
    const Interval& range = atoms_[atom].range;
    const bool flips = coefficient < 0;
    const bool too_large = coefficient > kMaxCoefficient || coefficient < -kMaxCoefficient;
    open_lo |= too_large || (flips ? !range.has_hi() : !range.has_lo());
    open_hi |= too_large || (flips ? !range.has_lo() : !range.has_hi());
    if (!open_lo) lo += static_cast<__int128>(coefficient) * (flips ? range.hi : range.lo);
    if (!open_hi) hi += static_cast<__int128>(coefficient) * (flips ? range.lo : range.hi);
  }
  return {open_lo ? Interval::kMinusInfinity : LowerBound(lo),
          open_hi ? Interval::kPlusInfinity : UpperBound(hi)};
}

Interval Symbols::RangeOfResult(const ir::Op& op) const {
  const auto operand = [&](size_t i) {
    const Linear* form = OperandForm(op, i);
    return form != nullptr ? RangeOf(*form) : Interval();
  };
  switch (op.opcode) {
    case Opcode::kExtent:
      return {0, kMostExtent};
    case Opcode::kGridSize:
      return {1, kMostBlocks[op.axis]};
    case Opcode::kCast:
      return RangeOfType(ops_[op.operands[0]]->type.dtype);
    case Opcode::kMinimum: {
      const Interval a = operand(0);
      const Interval b = operand(1);
      return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    }
    case Opcode::kMaximum: {
      const Interval a = operand(0);
      const Interval b = operand(1);
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    }
    case Opcode::kFloorDiv:
      return Quotient(operand(0), operand(1));
    case Opcode::kMod:
      return Remainder(operand(0), operand(1));
    case Opcode::kMul:
      return Product(operand(0), operand(1));
    default:
      return {};
  }
}

}  // namespace phobos::compiler::race
