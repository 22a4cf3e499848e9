// SPDX-License-Identifier: Apache-2.0
//
// A condition as the stack program that a launch evaluates (ConditionOp in manifest.proto). Pure,
// any thread.
#ifndef PHOBOS_COMPILER_MANIFEST_CONDITION_PROGRAM_H_
#define PHOBOS_COMPILER_MANIFEST_CONDITION_PROGRAM_H_

#include <vector>

#include "compiler/sema/kernel.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"

namespace phobos::compiler {

// Module constants are in it by value; autotuned constants, extents, scalars and the grid by name.
// REQUIRES: `condition` is one of kernel.conditions and not over constants alone.
std::vector<v1::ConditionOp> ConditionProgram(const sema::Kernel& kernel,
                                              const sema::Condition& condition);

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_MANIFEST_CONDITION_PROGRAM_H_
