// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/object/machine.h"

#include "absl/base/call_once.h"
#include "compiler/codegen/kernel/machine_code.h"
#include "llvm/Support/TargetSelect.h"

namespace phobos::compiler::host {
namespace {

void InitializeX86() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const std::string& cpu) {
  InitializeX86();
  return codegen::MakeMachine("x86_64-unknown-linux-gnu", cpu, /*features=*/"");
}

absl::StatusOr<std::string> MakeObject(llvm::Module& module, llvm::TargetMachine& machine) {
  return codegen::MakeMachineCode(module, machine, llvm::CodeGenFileType::ObjectFile);
}

}  // namespace phobos::compiler::host
