// SPDX-License-Identifier: Apache-2.0
//
// Scans: sums of all elements so far along a side, in the order that the opcode tells. One thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_REDUCTION_SCAN_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_REDUCTION_SCAN_H_

#include "compiler/codegen/host/tile/environment.h"
#include "compiler/ir/ir.h"
#include "llvm/IR/Value.h"

namespace phobos::compiler::host {

// Emits a kCumulativeSum, stored at `held`.
void EmitScan(const Environment& environment, const ir::Op& op, llvm::Value* held);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_REDUCTION_SCAN_H_
