// SPDX-License-Identifier: Apache-2.0
//
// The names that a body has made so far, block in block, function in function. Knows nothing of
// parameters, extents and constants of the kernel. One thread at a time.
#ifndef PHOBOS_COMPILER_SEMA_VALUE_SCOPES_H_
#define PHOBOS_COMPILER_SEMA_VALUE_SCOPES_H_

#include <deque>
#include <string_view>
#include <vector>

#include "compiler/sema/value/value.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler::sema {

struct Binding {
  enum class Kind { kLet, kVariable, kLoopIndex, kArgument };
  std::string_view name;  // of the syntax tree
  Kind kind = Kind::kLet;
  Value value;        // all but kVariable; of a kLoopIndex see Range::place in operand.h
  ir::VarId var = 0;  // kVariable; of a kLoopIndex the loop id
  Span span;          // where it was made
};

class Scopes {
 public:
  void EnterBlock() { blocks_.push_back(bindings_.size()); }
  void LeaveBlock();

  // A ph.fn sees none of its caller's names. Balanced like blocks.
  void EnterFunction();
  void LeaveFunction();

  // REQUIRES: inside a block. The caller has refused a name that is in sight.
  void Add(Binding binding) { bindings_.push_back(std::move(binding)); }

  // The binding in sight, or null. Valid until its block is left.
  const Binding* Find(std::string_view name) const;

  // All names in sight, for suggestions.
  void AppendNames(std::vector<std::string_view>* names) const;

 private:
  std::deque<Binding> bindings_;   // a deque: Find's pointers stay valid while others are added
  std::vector<size_t> blocks_;     // bindings_.size() at the start of each block
  std::vector<size_t> functions_;  // likewise of each function
};

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_VALUE_SCOPES_H_
