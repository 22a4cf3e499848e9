// SPDX-License-Identifier: Apache-2.0
//
// What is found by looking over a function: who makes and uses its values, and what is provably the
// same without knowing the launch. Pure, any thread.
#ifndef PHOBOS_COMPILER_IR_EQUALITY_H_
#define PHOBOS_COMPILER_IR_EQUALITY_H_

#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::ir {

// The op that makes each value, by ValueId. The function must outlive the result.
std::vector<const Op*> DefinitionsOf(const Function& function);

// How often each value is used, by ValueId: as an operand or as a position.
std::vector<int> UsesOf(const Function& function);

// Whether two scalars are the same expression of what does not change inside a block of the grid,
// loop indices taken as they are at one moment.
bool AreEqualScalars(const std::vector<const Op*>& definitions, ValueId a, ValueId b);

// Whether element i of the one access is element i of the other, at one moment. Gathers never
// are. REQUIRES: both are of one tensor.
bool AreSameElements(const std::vector<const Op*>& definitions, const Op& a, const Op& b);

// Whether the two have the same values for one dimension, of whatever tensor it is.
bool AreSameSubscripts(const Subscript& a, const Subscript& b);

// Whether the two are one function: the same signature and options, the same ops under the same
// numbers. What only messages and the sizes of tables need may differ: file_name, the places of
// ops, value_count and loop_count. A NaN is the same as a NaN.
bool AreSame(const Function& a, const Function& b);

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_EQUALITY_H_
