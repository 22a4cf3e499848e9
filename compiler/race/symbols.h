// SPDX-License-Identifier: Apache-2.0
//
// Integer scalars of a function as linear forms over atoms: block ids, their quotients and
// remainders, iteration numbers of loops, numbers that are one for the whole launch, and what
// nothing is known of. Forms are over unbounded integers; arithmetic wraps, so that a result that
// is of fewer than 64 bits, or that may leave them in a launch that is allowed, is an atom. The
// latter is still known modulo 2^64. One thread at a time.
#ifndef PHOBOS_COMPILER_RACE_SYMBOLS_H_
#define PHOBOS_COMPILER_RACE_SYMBOLS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/linear.h"
#include "compiler/race/interval.h"

namespace phobos::compiler::race {

struct Atom {
  enum class Kind {
    kBlock,      // ctx.block of `axis`
    kQuotient,   // atom `of` // divisor; with kRemainder it says what `of` is, when the divisor is
                 // positive
    kRemainder,  // atom `of` % divisor
    kIteration,  // 0, 1, ... of a loop
    kStrided,    // ctx.block of `axis`, and every grid-th number from there: in a loop
    kUniform,    // one number for the launch
    kUnknown,    // anything, different from block to block and time to time
  };
  Kind kind = Kind::kUnknown;
  Interval range;
  int32_t axis = 0;
  int32_t of = 0;
  ir::Linear divisor;         // launch-uniform
  std::string_view why = "";  // kUnknown: what it comes from, for messages
  // What the atom differs from by a multiple of 2^64, over atoms that have no such sum themselves.
  std::optional<ir::Linear> sum;

  static Atom Of(Kind kind, Interval range) {
    Atom atom;
    atom.kind = kind;
    atom.range = range;
    return atom;
  }

  // Whether it has a value of its own in each block.
  bool is_axis() const {
    return kind == Kind::kBlock || kind == Kind::kQuotient || kind == Kind::kRemainder;
  }
  // Whether two blocks' values of it are told apart by their difference.
  bool has_difference() const { return is_axis() || kind == Kind::kStrided; }
};

// lo <= form <= hi, whatever the launch.
struct Fact {
  ir::Linear form;
  Interval bounds;
};

class Symbols {
 public:
  explicit Symbols(const ir::Function& function);

  // Takes in an op. Call in the order of execution; a loop's op before its body.
  void Define(const ir::Op& op);

  // Takes in what holds at every launch, about uniform atoms.
  void Assume(const Fact& fact);

  // The form of an i64 scalar; null for other values.
  const ir::Linear* FormOf(ir::ValueId value) const;
  // The op that made the value, or null before it was defined.
  const ir::Op* OpOf(ir::ValueId value) const { return ops_[value]; }

  // The index of a loop that was defined; its kStrided atom, or -1.
  const ir::Linear& LoopIndex(int32_t loop) const { return loop_index_[loop]; }
  int32_t StridedAtom(int32_t loop) const { return strided_[loop]; }
  Interval RangeOf(const ir::Linear& form) const;
  // Whether an atom of the form has a sum.
  bool Wraps(const ir::Linear& form) const;
  // The form with sums in place of such atoms. Differs from it by a multiple of 2^64, in its
  // numbers too.
  ir::Linear Expand(const ir::Linear& form) const;

  const std::vector<Atom>& atoms() const { return atoms_; }
  // Facts about uniform atoms.
  const std::vector<Fact>& facts() const { return facts_; }
  // The atom of a block id, made when it is not there yet; of the number of blocks on an axis, and
  // of an extent, or -1.
  int32_t BlockAtom(int32_t axis);
  int32_t GridAtom(int32_t axis) const { return grid_atoms_[axis]; }
  int32_t ExtentAtom(int32_t extent) const { return extent_atoms_[extent]; }

 private:
  // A scalar by what computes it: equal keys, equal values wherever both are in sight.
  using Key = std::tuple<ir::Opcode, ir::DType, int32_t, int32_t, int32_t, int64_t>;
  struct Number {
    bool uniform = false;
    std::optional<ir::Linear> form;  // i64 scalars
    std::string_view why;            // what makes it unknown, if anything does
  };

  int32_t NumberOf(const ir::Op& op);
  Number Analyze(const ir::Op& op);
  std::string_view WhyUnknown(const ir::Op& op) const;
  std::optional<ir::Linear> LinearOf(const ir::Op& op) const;
  std::optional<ir::Linear> CeilDivisionOf(const ir::Op& op);
  std::optional<ir::Linear> DivisionOf(const ir::Op& op);
  ir::Linear Fresh(Atom atom);
  ir::Linear FreshUniform(Interval range) { return Fresh(Atom::Of(Atom::Kind::kUniform, range)); }
  const ir::Linear* OperandForm(const ir::Op& op, size_t i) const;
  bool MayWrap(const ir::Linear& form) const;
  // For an atom in place of `form`, which may wrap.
  std::optional<ir::Linear> SumOf(const ir::Linear& form) const;
  Interval RangeOfResult(const ir::Op& op) const;
  int64_t MostTurns(const ir::Linear& lo, ir::ValueId end, int64_t step, int* budget) const;
  void EnterLoop(const ir::Op& loop);
  void EnterStridedLoop(const ir::Op& loop);
  std::optional<ir::Linear> StridedOf(const ir::Op& op) const;
  bool IsConstant(ir::ValueId value, int64_t constant) const;

  std::vector<const ir::Op*> ops_;  // by ValueId
  std::vector<int32_t> numbers_;    // by ValueId; -1: none
  std::vector<Number> by_number_;
  absl::flat_hash_map<Key, int32_t> known_;
  std::vector<Atom> atoms_;
  std::vector<Fact> facts_;
  std::vector<ir::Linear> loop_index_;  // by loop id
  std::vector<int32_t> strided_;        // by loop id: the kStrided atom, or -1
  int32_t block_atoms_[3] = {-1, -1, -1};
  int32_t grid_atoms_[3] = {-1, -1, -1};
  std::vector<int32_t> extent_atoms_;
};

}  // namespace phobos::compiler::race

#endif  // PHOBOS_COMPILER_RACE_SYMBOLS_H_
