// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/host.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/codegen/host/kernel.h"
#include "compiler/codegen/host/object/link.h"
#include "compiler/codegen/host/object/machine.h"
#include "compiler/codegen/kernel/environment.h"
#include "compiler/codegen/kernel/machine_code.h"
#include "compiler/passes/pipeline.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace phobos::compiler::host {
namespace {

// Raised with every change of the code that is made for some function.
constexpr int kCodeVersion = 9;

absl::StatusOr<Artifact> CompileUnguarded(const ir::Function& function, const Chip& chip) {
  ASSIGN_OR_RETURN(const std::unique_ptr<llvm::TargetMachine> machine, MakeMachine(chip.name));
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);  // nobody reads them, and every pass makes some
  llvm::Module module("kernel", context);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple().str());
  Artifact artifact;
  artifact.entry = codegen::EntryName(function);
  artifact.scratch_bytes = EmitKernel(function, chip, module);
  ASSIGN_OR_RETURN(const std::string object, MakeObject(module, *machine));
  ASSIGN_OR_RETURN(artifact.shared_object, LinkSharedObject(object));
  return artifact;
}

}  // namespace

absl::StatusOr<Artifact> Compile(const ir::Function& function, const Chip& chip) {
  ASSIGN_OR_RETURN(const ir::Function final, passes::Run(function));
  absl::StatusOr<Artifact> result = absl::InternalError("");
  RETURN_IF_ERROR(codegen::RunGuarded(absl::StrCat("kernel ", function.name),
                                      [&] { result = CompileUnguarded(final, chip); }));
  return result;
}

std::string Fingerprint() {
  return absl::StrCat("llvm ", LLVM_VERSION_STRING, ", host code ", kCodeVersion);
}

}  // namespace phobos::compiler::host
