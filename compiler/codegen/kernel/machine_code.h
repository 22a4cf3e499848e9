// SPDX-License-Identifier: Apache-2.0
//
// From a module of LLVM IR to an object file or assembly text: the short list of IR passes and
// LLVM's code generator, the same for every chip. One thread a module; several threads at once.
#ifndef PHOBOS_COMPILER_CODEGEN_KERNEL_MACHINE_CODE_H_
#define PHOBOS_COMPILER_CODEGEN_KERNEL_MACHINE_CODE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Target/TargetMachine.h"

namespace phobos::compiler::codegen {

// A machine of a target that is initialized already; it contracts only operations that say they may
// be. `cpu` and `features` are LLVM's names.
absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const std::string& triple,
                                                                 const std::string& cpu,
                                                                 const std::string& features);

// Runs the passes over `module` and makes the file. Of the passes that the target adds by itself,
// those with these names are left out where LLVM can do without. Internal: the module is malformed
// (with the verifier's words), or LLVM said that it could not do something. ResourceExhausted: a
// function would take LLVM too long.
absl::StatusOr<std::string> MakeMachineCode(llvm::Module& module, llvm::TargetMachine& machine,
                                            llvm::CodeGenFileType type,
                                            llvm::ArrayRef<llvm::StringLiteral> skipped_passes);

// Runs `work`, whose LLVM may end the process on what it takes for its own fault: Internal then,
// which names `what`, and the process goes on.
absl::Status RunGuarded(const std::string& what, llvm::function_ref<void()> work);

// Has `end` called where LLVM gets no memory, which would else look like a crash. `end` ends the
// process; several threads may call it. REQUIRES: called once, before any other thread is there.
void EndWithoutMemoryBy(void (*end)());

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_KERNEL_MACHINE_CODE_H_
