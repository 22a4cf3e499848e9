// SPDX-License-Identifier: Apache-2.0
#include "compiler/race/race.h"

#include "absl/strings/str_join.h"
#include "base/concat.h"
#include "compiler/race/accesses.h"
#include "compiler/race/disjoint.h"
#include "compiler/race/symbols.h"
#include "compiler/race/witness.h"

namespace phobos::compiler::race {
namespace {

// A function with more to compare than this is left undecided, so that no source makes the check
// slow.
constexpr size_t kMaxPairs = 4096;
constexpr size_t kMaxWork = 200000;  // pairs * atoms
// Pairs that could not be proved and whose hints are followed.
constexpr size_t kMaxHintedPairs = 4;

std::string Place(const ir::Function& function, int32_t line) {
  return Concat(function.file_name, ":", line);
}

std::string BlockText(const std::array<int64_t, 3>& block) {
  return Concat("(", absl::StrJoin(block, ", "), ")");
}

// "BLOCK=256, N=1024, grid (2, 1, 1)"
std::string LaunchText(const ir::Function& function, const Witness& witness) {
  std::string text;
  for (const auto& [name, value] : function.settings) Append(&text, name, "=", value, ", ");
  for (size_t i = 0; i < function.extents.size(); ++i) {
    Append(&text, function.extents[i].name, "=", witness.launch_extents[i], ", ");
  }
  for (size_t i = 0; i < function.params.size(); ++i) {
    if (!witness.launch_scalars[i].has_value()) continue;
    Append(&text, function.params[i].name, "=", *witness.launch_scalars[i], ", ");
  }
  Append(&text, "grid ", BlockText(witness.grid));
  return text;
}

std::string WitnessText(const ir::Function& function, const Witness& witness) {
  const std::string element =
      Concat(function.params[witness.param].name, "[", absl::StrJoin(witness.element, ", "), "]");
  return Concat("block ", BlockText(witness.blocks[0]), witness.writes[0] ? " writes " : " reads ",
                element, " (", Place(function, witness.lines[0]), ") and block ",
                BlockText(witness.blocks[1]), witness.writes[1] ? " writes" : " reads", " it (",
                Place(function, witness.lines[1]), "), with ", LaunchText(function, witness));
}

// What a position depends on that stands in the way of a proof, or empty.
std::string_view WhyUnknown(const Symbols& symbols, const Access& access) {
  for (size_t d = 0; d < access.positions.size(); ++d) {
    if (access.lengths[d] == 0) {
      return "a tile of places, which is not followed; a slice, as A[start:+LENGTH], is";
    }
    for (const auto& [atom, coefficient] : access.positions[d].terms) {
      const Atom& one = symbols.atoms()[atom];
      if (one.kind == Atom::Kind::kUnknown) return one.why;
    }
  }
  return "";
}

// "the store to x", with what it does as a word.
std::string_view Word(const Access& access) {
  if (ir::IsAtomic(access.op->opcode)) return "atomic";
  return access.is_write() ? "store" : "load";
}

std::string UnprovenText(const ir::Function& function, const Symbols& symbols, const Access& store,
                         const Access& other) {
  const std::string name = function.params[store.param()].name;
  std::string text = Concat(Place(function, store.op->line), ": the ", Word(store), " to ", name,
                            " is not proved to keep clear of ");
  if (&store == &other) {
    Append(&text, "itself in another block");
  } else {
    Append(&text, "the ", Word(other), " on line ", other.op->line, " in another block");
  }
  std::string_view why = WhyUnknown(symbols, store);
  if (why.empty()) why = WhyUnknown(symbols, other);
  if (!why.empty()) return Concat(text, ": its position depends on ", why);
  return Concat(text, ": their distance depends on extents, scalars or the ends of loops");
}

}  // namespace

Report Check(const ir::Function& function) {
  Symbols symbols(function);
  const std::vector<Access> accesses = CollectAccesses(function, &symbols);
  for (int32_t axis = 0; axis < 3; ++axis) {
    if ((function.grid_dims_used >> axis & 1) != 0) symbols.BlockAtom(axis);
  }
  Report report;
  std::vector<Hint> hints;
  std::set<int32_t> undecided_params;
  size_t pairs = 0;
  size_t undecided = 0;
  for (const Access& store : accesses) {
    if (!store.is_write()) continue;
    for (const Access& other : accesses) {
      // Of two writes, one order is enough.
      const bool counts = store.param() == other.param() &&
                          (!other.is_write() || &other <= &store) && Conflict(*store.op, *other.op);
      if (!counts) continue;
      if (++pairs > kMaxPairs || pairs * symbols.atoms().size() > kMaxWork) {
        report.detail = Concat(Place(function, store.op->line),
                               ": the kernel has too many loads and stores to be decided");
        return report;
      }
      std::vector<Hint> found;
      if (AreDisjoint(function, symbols, store, other, &found)) continue;
      undecided_params.insert(store.param());
      if (undecided++ == 0) report.detail = UnprovenText(function, symbols, store, other);
      if (undecided <= kMaxHintedPairs) hints.insert(hints.end(), found.begin(), found.end());
    }
  }
  for (const Access& access : accesses) {
    if (!undecided_params.contains(access.param())) report.proved_params.insert(access.param());
  }
  if (undecided == 0) {
    report.verdict = Verdict::kRaceFree;
    return report;
  }
  report.witness = FindWitness(function, accesses, hints);
  if (report.witness.has_value()) {
    report.verdict = Verdict::kRace;
    report.detail = WitnessText(function, *report.witness);
  }
  return report;
}

}  // namespace phobos::compiler::race
