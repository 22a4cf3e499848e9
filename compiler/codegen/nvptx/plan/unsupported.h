// SPDX-License-Identifier: Apache-2.0
//
// What of the tile IR this back end cannot do yet. Pure, any thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_UNSUPPORTED_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_UNSUPPORTED_H_

#include <optional>
#include <string>

#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

struct Unsupported {
  std::string what;  // for a message, in the words of the language
  const ir::Op* op;  // of the function
};

// The first such op of the function, if there is any.
std::optional<Unsupported> FindUnsupported(const ir::Function& function);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_UNSUPPORTED_H_
