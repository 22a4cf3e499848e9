// SPDX-License-Identifier: Apache-2.0
//
// Which loads stream: they read what no other block and no later turn of a loop needs, in a kernel
// that reads much and writes little. What they read should not push out of the chip's caches what
// others left there: that would have to be written back first, at the cost of the reads. Where a
// kernel writes as much as it reads, its own writes do that anyway, and nothing is gained. Pure,
// any thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_STREAMS_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_STREAMS_H_

#include <set>

#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

// kLoads of tiles. It is a guess about speed: values do not depend on it.
std::set<const ir::Op*> FindStreams(const ir::Function& function);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_STREAMS_H_
