// SPDX-License-Identifier: Apache-2.0
//
// Whether a function of the tile IR is well formed: every operand defined before it is used and in
// sight, every type and shape as its opcode asks, control flow where it may stand. Run after sema
// and after every pass. Pure, any thread.
#ifndef PHOBOS_COMPILER_IR_VERIFIER_H_
#define PHOBOS_COMPILER_IR_VERIFIER_H_

#include "absl/status/status.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::ir {

// OK, or Internal naming the op (as printed) and the rule it breaks: always a fault of the
// compiler, never of the user.
absl::Status Verify(const Function& function);

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_VERIFIER_H_
