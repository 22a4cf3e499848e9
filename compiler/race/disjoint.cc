// SPDX-License-Identifier: Apache-2.0
#include "compiler/race/disjoint.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/race/system.h"

namespace phobos::compiler::race {
namespace {

using ir::Linear;

// The variables of one pair of accesses: each atom that differs between blocks or times has one for
// the first access and one for the second, and where it has one value a block, one for their
// difference; a uniform atom has one for both.
class Pair {
 public:
  Pair(const ir::Function& function, const Symbols& symbols, const Access& first,
       const Access& second)
      : function_(function), symbols_(symbols), first_(first), second_(second) {
    MakeVariables();
    // The equations first: they decide most pairs alone.
    for (size_t d = 0; d < first.positions.size(); ++d) MeetInDimension(d);
    for (const Fact& a : first.guards) {
      for (const Fact& b : second.guards) SubtractEqualities(a, b);
    }
    Define();
    for (const Fact& fact : symbols.facts()) AddFact(fact, kFirst);
    for (const Fact& fact : first.guards) AddFact(fact, kFirst);
    for (const Fact& fact : second.guards) AddFact(fact, kSecond);
    StayInside(first, kFirst);
    StayInside(second, kSecond);
  }

  bool Disjoint(std::vector<Hint>* hints) {
    if (!system_.Settle()) return true;
    bool disjoint = true;
    for (int32_t axis = 0; axis < 3; ++axis) {
      if ((function_.grid_dims_used >> axis & 1) == 0) continue;
      disjoint &= NeverDiffer(BlockAtom(axis), hints);
    }
    return disjoint;
  }

 private:
  enum Side { kFirst = 0, kSecond = 1 };
  struct Variables {
    int of[2] = {-1, -1};
    int difference = -1;  // of[kFirst] - of[kSecond], for an axis
  };

  void MakeVariables() {
    for (const Atom& atom : symbols_.atoms()) {
      Variables variables;
      variables.of[kFirst] = system_.AddVariable(atom.range);
      variables.of[kSecond] = atom.kind == Atom::Kind::kUniform ? variables.of[kFirst]
                                                                : system_.AddVariable(atom.range);
      if (atom.has_difference())
        variables.difference = system_.AddVariable(DifferenceOf(atom.range));
      variables_.push_back(variables);
    }
  }

  static Interval DifferenceOf(Interval range) {
    if (!range.has_lo() || !range.has_hi()) return {};
    const __int128 width = static_cast<__int128>(range.hi) - range.lo;
    return {LowerBound(-width), UpperBound(width)};
  }

  int32_t BlockAtom(int32_t axis) const {
    for (size_t i = 0; i < symbols_.atoms().size(); ++i) {
      const Atom& atom = symbols_.atoms()[i];
      if (atom.kind == Atom::Kind::kBlock && atom.axis == axis) return static_cast<int32_t>(i);
    }
    return -1;
  }

  System::Terms TermsOf(const Linear& form, Side side) const {
    System::Terms terms;
    for (const auto& [atom, coefficient] : form.terms) {
      terms.emplace_back(variables_[atom].of[side], coefficient);
    }
    return terms;
  }

  // a - b, where a is of the first side and b of the second. Written with differences where it can
  // be, for those are what the proof is about.
  System::Terms DifferenceTerms(const Linear& a, const Linear& b) const {
    System::Terms terms;
    for (const auto& [atom, coefficient] : a.terms) {
      const Variables& variables = variables_[atom];
      if (variables.difference >= 0) {
        terms.emplace_back(variables.difference, coefficient);
        terms.emplace_back(variables.of[kSecond], coefficient);
      } else {
        terms.emplace_back(variables.of[kFirst], coefficient);
      }
    }
    for (const auto& [atom, coefficient] : b.terms) {
      // The smallest number stays itself, which is right modulo 2^64; exact forms do not have it.
      const int64_t negated = static_cast<int64_t>(-static_cast<uint64_t>(coefficient));
      terms.emplace_back(variables_[atom].of[kSecond], negated);
    }
    return terms;
  }

  // a - b lies in `bounds`.
  void AddDifference(const Linear& a, const Linear& b, Interval bounds) {
    const __int128 shift = static_cast<__int128>(a.constant) - b.constant;
    system_.AddConstraint(DifferenceTerms(a, b),
                          {LowerBound(bounds.lo - shift), UpperBound(bounds.hi - shift)});
    if (!symbols_.Wraps(a) && !symbols_.Wraps(b)) return;
    const Linear all_of_a = symbols_.Expand(a);
    const Linear all_of_b = symbols_.Expand(b);
    const uint64_t constant =
        static_cast<uint64_t>(all_of_a.constant) - static_cast<uint64_t>(all_of_b.constant);
    system_.AddCongruence(DifferenceTerms(all_of_a, all_of_b), static_cast<int64_t>(constant),
                          bounds);
  }

  // position + offset is the same on both sides, where 0 <= offset < length.
  void MeetInDimension(size_t d) {
    const int64_t first = first_.lengths[d];
    const int64_t second = second_.lengths[d];
    if (first == 0 || second == 0) return;
    AddDifference(first_.positions[d], second_.positions[d], {-(first - 1), second - 1});
  }

  // Two equalities that hold, one on each side, hold for their difference, in which what is uniform
  // cancels.
  void SubtractEqualities(const Fact& a, const Fact& b) {
    if (a.bounds == Interval::Exactly(0) && b.bounds == Interval::Exactly(0)) {
      AddDifference(a.form, b.form, Interval::Exactly(0));
    }
  }

  void AddFact(const Fact& fact, Side side) {
    AddShifted(TermsOf(fact.form, side), fact.form.constant, fact.bounds);
    if (!symbols_.Wraps(fact.form)) return;
    const Linear all = symbols_.Expand(fact.form);
    system_.AddCongruence(TermsOf(all, side), all.constant, fact.bounds);
  }

  // terms + constant lies in `bounds`.
  void AddShifted(System::Terms terms, int64_t constant, Interval bounds) {
    Interval shifted;
    if (bounds.has_lo()) shifted.lo = LowerBound(static_cast<__int128>(bounds.lo) - constant);
    if (bounds.has_hi()) shifted.hi = UpperBound(static_cast<__int128>(bounds.hi) - constant);
    system_.AddConstraint(std::move(terms), shifted);
  }

  // What differences, quotients and remainders are; that a block lies in its grid.
  void Define() {
    for (size_t i = 0; i < symbols_.atoms().size(); ++i) {
      const Atom& atom = symbols_.atoms()[i];
      const Variables& v = variables_[i];
      if (!atom.has_difference()) continue;
      system_.AddConstraint({{v.difference, 1}, {v.of[kFirst], -1}, {v.of[kSecond], 1}},
                            Interval::Exactly(0));
      if (atom.kind == Atom::Kind::kBlock) {
        if (const int32_t grid = symbols_.GridAtom(atom.axis); grid >= 0) {
          for (Side side : {kFirst, kSecond}) {
            system_.AddConstraint({{v.of[side], 1}, {variables_[grid].of[side], -1}},
                                  Interval::AtMost(-1));
          }
        }
      }
      if (atom.kind == Atom::Kind::kQuotient) DefineQuotient(atom, v);
    }
  }

  // With a positive constant divisor: 0 <= of - divisor * quotient < divisor, which is the
  // remainder.
  void DefineQuotient(const Atom& atom, const Variables& quotient) {
    if (!atom.divisor.is_constant() || atom.divisor.constant <= 0) return;
    const int64_t divisor = atom.divisor.constant;
    const int32_t rest = Sibling(atom);
    const Variables& of = variables_[atom.of];
    for (Side side : {kFirst, kSecond}) {
      System::Terms terms = {{of.of[side], 1}, {quotient.of[side], -divisor}};
      Interval bounds = {0, divisor - 1};
      if (rest >= 0) {
        terms.emplace_back(variables_[rest].of[side], -1);
        bounds = Interval::Exactly(0);
      }
      system_.AddConstraint(std::move(terms), bounds);
    }
  }

  // The remainder that goes with a quotient, or -1.
  int32_t Sibling(const Atom& quotient) const {
    for (size_t i = 0; i < symbols_.atoms().size(); ++i) {
      const Atom& atom = symbols_.atoms()[i];
      if (atom.kind == Atom::Kind::kRemainder && atom.of == quotient.of &&
          atom.divisor == quotient.divisor) {
        return static_cast<int32_t>(i);
      }
    }
    return -1;
  }

  // Elements outside the tensor are not touched: -length < position < extent, and the extent is at
  // least 1.
  void StayInside(const Access& access, Side side) {
    const ir::Param& param = function_.params[access.param()];
    for (size_t d = 0; d < param.dims.size(); ++d) {
      const int32_t extent = param.dims[d].extent;
      const int32_t atom = extent >= 0 ? symbols_.ExtentAtom(extent) : -1;
      if (atom >= 0) {
        system_.AddConstraint({{variables_[atom].of[side], 1}}, Interval::AtLeast(1));
      }
      if (access.lengths[d] == 0) continue;
      const Linear& position = access.positions[d];
      AddFact({position, Interval::AtLeast(-(access.lengths[d] - 1))}, side);
      if (extent < 0) {
        AddFact({position, Interval::AtMost(param.dims[d].literal - 1)}, side);
      } else if (atom >= 0) {
        std::optional<Linear> beyond = ir::Subtract(position, Linear::Atom(atom));
        if (beyond.has_value()) AddFact({*std::move(beyond), Interval::AtMost(-1)}, side);
      }
    }
  }

  // Whether the atom must have one value on both sides. A pair of quotient and remainder says as
  // much as the atom itself.
  bool NeverDiffer(int32_t atom, std::vector<Hint>* hints) {
    if (atom < 0) return false;
    if (CannotBe(variables_[atom].difference, Interval::AtLeast(1), hints) &&
        CannotBe(variables_[atom].difference, Interval::AtMost(-1), hints)) {
      return true;
    }
    if (StridesNeverDiffer(symbols_.atoms()[atom])) return true;
    for (const Atom& quotient : symbols_.atoms()) {
      if (quotient.kind != Atom::Kind::kQuotient || quotient.of != atom) continue;
      const int32_t rest = Sibling(quotient);
      if (rest < 0 || !IsPositive(quotient.divisor)) continue;
      const int32_t index = static_cast<int32_t>(&quotient - symbols_.atoms().data());
      if (NeverDiffer(index, nullptr) && NeverDiffer(rest, nullptr)) return true;
    }
    return false;
  }

  // Blocks of different numbers never come to the same one by strides of the grid. Counts where
  // both accesses are in the loop: elsewhere the atom says nothing of a block.
  bool StridesNeverDiffer(const Atom& block) {
    if (block.kind != Atom::Kind::kBlock) return false;
    for (int32_t i : first_.strided) {
      if (symbols_.atoms()[i].axis != block.axis) continue;
      if (std::count(second_.strided.begin(), second_.strided.end(), i) == 0) continue;
      if (CannotBe(variables_[i].difference, Interval::AtLeast(1), nullptr) &&
          CannotBe(variables_[i].difference, Interval::AtMost(-1), nullptr)) {
        return true;
      }
    }
    return false;
  }

  bool CannotBe(int variable, Interval range, std::vector<Hint>* hints) {
    std::vector<Interval> before = system_.ranges();
    system_.Restrict(variable, range);
    const bool cannot = !system_.Narrow();
    if (!cannot && hints != nullptr) hints->push_back(HintHere());
    system_.SetRanges(std::move(before));
    return cannot;
  }

  bool IsPositive(const Linear& form) {
    if (form.is_constant()) return form.constant > 0;
    // Not positive is form <= 0.
    System trial = system_;
    trial.AddConstraint(TermsOf(form, kFirst),
                        Interval::AtMost(UpperBound(-static_cast<__int128>(form.constant))));
    return !trial.Narrow();
  }

  Hint HintHere() const {
    Hint hint;
    for (int32_t axis = 0; axis < 3; ++axis) {
      const int32_t atom = BlockAtom(axis);
      if (atom < 0) continue;
      hint.first[axis] = system_.ranges()[variables_[atom].of[kFirst]].lo;
      hint.second[axis] = system_.ranges()[variables_[atom].of[kSecond]].lo;
    }
    return hint;
  }

  const ir::Function& function_;
  const Symbols& symbols_;
  const Access& first_;
  const Access& second_;
  System system_;
  std::vector<Variables> variables_;  // by atom
};

}  // namespace

bool AreDisjoint(const ir::Function& function, const Symbols& symbols, const Access& first,
                 const Access& second, std::vector<Hint>* hints) {
  return Pair(function, symbols, first, second).Disjoint(hints);
}

}  // namespace phobos::compiler::race
