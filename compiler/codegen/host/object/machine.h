// SPDX-License-Identifier: Apache-2.0
//
// The host chip's machine in LLVM, and object code for it. One thread a module; several threads at
// once.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_OBJECT_MACHINE_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_OBJECT_MACHINE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace phobos::compiler::host {

// A machine for position independent x86-64 Linux code of a CPU or level as LLVM names
// them; it contracts only operations that say they may be.
absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const std::string& cpu);

// An ELF object of the module, by codegen::MakeMachineCode.
absl::StatusOr<std::string> MakeObject(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_OBJECT_MACHINE_H_
