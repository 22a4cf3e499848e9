// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/object/machine.h"

#include <utility>

#include "absl/base/call_once.h"
#include "compiler/codegen/host/object/loops.h"
#include "compiler/codegen/kernel/machine_code.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Support/TargetSelect.h"

namespace phobos::compiler::host {
namespace {

// A quarter of the time that a kernel takes to compile.
constexpr llvm::StringLiteral kSkippedPasses[] = {
    // PrepareLoops does what is worth its time.
    "Canonicalize Freeze Instructions in Loops",
    "Loop Strength Reduction",
    // Moves integers into mask registers. Takes time by the square of a function's length.
    "X86 Domain Reassignment Pass",
};

void InitializeX86() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

bool HasHalf(const llvm::Module& module) {
  for (const llvm::Function& function : module) {
    for (const llvm::BasicBlock& block : function) {
      for (const llvm::Instruction& instruction : block) {
        if (instruction.getType()->getScalarType()->isHalfTy()) return true;
      }
    }
  }
  return false;
}

// Where LLVM knows that halves are no NaN, it makes their minimum and maximum, on a chip that has
// no arithmetic on halves, calls of fminf and fmaxf: a kernel is linked with no library that has
// them.
void DefineMinimumAndMaximum(llvm::Module& module) {
  llvm::IRBuilder<> b(module.getContext());
  llvm::Type* type = b.getFloatTy();
  for (const auto& [name, less] : {std::pair("fminf", true), {"fmaxf", false}}) {
    auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false),
                                            llvm::Function::ExternalLinkage, name, module);
    function->setVisibility(llvm::Function::HiddenVisibility);
    b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function));
    llvm::Value* x = function->getArg(0);
    llvm::Value* y = function->getArg(1);
    b.CreateRet(b.CreateSelect(less ? b.CreateFCmpOLT(x, y) : b.CreateFCmpOGT(x, y), x, y));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const std::string& cpu) {
  InitializeX86();
  return codegen::MakeMachine("x86_64-unknown-linux-gnu", cpu, /*features=*/"");
}

absl::StatusOr<std::string> MakeObject(llvm::Module& module, llvm::TargetMachine& machine) {
  if (HasHalf(module)) DefineMinimumAndMaximum(module);
  PrepareLoops(module);
  return codegen::MakeMachineCode(module, machine, llvm::CodeGenFileType::ObjectFile,
                                  kSkippedPasses);
}

}  // namespace phobos::compiler::host
