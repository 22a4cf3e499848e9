// SPDX-License-Identifier: Apache-2.0
//
// What a function's body does with names: which tensors it reads and writes, which functions it
// calls, which names of the file it needs, through all calls. Settings play no part: what some
// variant may do counts. Private to sema/. One thread.
#ifndef PHOBOS_COMPILER_SEMA_DECLARATION_USAGE_H_
#define PHOBOS_COMPILER_SEMA_DECLARATION_USAGE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler::sema {

// What happens to the elements of a tensor parameter.
struct ParamUse {
  bool is_read = false;    // also by an atomic
  bool is_stored = false;  // written by a store
  bool is_atomic = false;  // written by an atomic
};

struct Usage {
  std::vector<ParamUse> params;  // of the function, in order
  int32_t block_dims = 0;        // ph.ctx.block: bit 0 x, 1 y, 2 z
  // Names that the body and the functions it calls use and do not bind, with the place of the first
  // use; without the names of the functions called.
  std::map<std::string, Span> free_names;
  std::map<std::string, Span> free_targets;  // those among them that are assigned to
  std::set<std::string> called_names;        // as functions that the file does not have
  std::set<std::string> bound_names;         // by statements of this function: for suggestions
  std::map<std::string, const ast::Function*> functions;  // called, through all calls
};

// Errors: Source::Error for recursion and for a call of a kernel.
absl::StatusOr<Usage> UsageOf(const Source& source, const ast::Module& module,
                              const ast::Function& function);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_DECLARATION_USAGE_H_
