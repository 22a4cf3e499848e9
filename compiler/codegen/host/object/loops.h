// SPDX-License-Identifier: Apache-2.0
//
// The innermost loops of a module, made ready for LLVM's code generator: a far cheaper stand-in for
// loop invariant code motion and strength reduction, for loops as statements over tiles have them.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_OBJECT_LOOPS_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_OBJECT_LOOPS_H_

#include "llvm/IR/Module.h"

namespace phobos::compiler::host {

// In each loop of one block that is entered from one place: scalars and addresses that are the same
// in each turn are computed before the loop; an address is one of those, plus what the turn adds,
// plus a constant; and what is compared at the turn's end is the next index.
void PrepareLoops(llvm::Module& module);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_OBJECT_LOOPS_H_
