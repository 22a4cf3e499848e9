// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/kernel/machine_code.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

namespace phobos::compiler::codegen {
namespace {

// LLVM reports what it cannot do here, and then goes on with a part of the output.
class ErrorCollector : public llvm::DiagnosticHandler {
 public:
  explicit ErrorCollector(std::string* errors) : errors_(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() != llvm::DS_Error) return true;
    llvm::raw_string_ostream stream(*errors_);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    stream << "; ";
    return true;
  }

 private:
  std::string* const errors_;
};

// Register allocation takes time by the square of a function's blocks: some 8 seconds at this many.
constexpr size_t kMostBlocks = 10000;

absl::Status CheckSize(const llvm::Module& module) {
  for (const llvm::Function& function : module) {
    if (function.size() <= kMostBlocks) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        "the kernel is too large: it becomes ", function.size(), " pieces of code, and ",
        kMostBlocks, " can be compiled; unroll less, or write repeated statements as a loop"));
  }
  return absl::OkStatus();
}

// Asked by LLVM before each pass that a target adds by itself.
class PassGate : public llvm::OptPassGate {
 public:
  explicit PassGate(llvm::ArrayRef<llvm::StringLiteral> skipped) : skipped_(skipped) {}
  bool isEnabled() const override { return true; }
  bool shouldRunPass(const llvm::StringRef pass, llvm::StringRef /*what*/) override {
    return !llvm::is_contained(skipped_, pass);
  }

 private:
  const llvm::ArrayRef<llvm::StringLiteral> skipped_;
};

// Few passes on purpose: the emitter makes the code it wants, and more passes made it no faster,
// only slower to compile.
void Optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(
      llvm::SROAPass(llvm::SROAOptions::PreserveCFG));  // scalar variables into registers
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass(llvm::InstCombineOptions().setVerifyFixpoint(false)));
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) passes.run(function, functions);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const std::string& triple,
                                                                 const std::string& cpu,
                                                                 const std::string& features) {
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) {
    return absl::InternalError(absl::StrCat("llvm::TargetRegistry::lookupTarget: ", error));
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // only operations that carry the flag
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, cpu, features, options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (machine == nullptr) {
    return absl::InternalError(absl::StrCat("llvm::Target::createTargetMachine: none for ", cpu));
  }
  return machine;
}

absl::StatusOr<std::string> MakeMachineCode(llvm::Module& module, llvm::TargetMachine& machine,
                                            llvm::CodeGenFileType type,
                                            llvm::ArrayRef<llvm::StringLiteral> skipped_passes) {
  std::string errors;
  llvm::raw_string_ostream error_stream(errors);
  if (llvm::verifyModule(module, &error_stream)) {
    return absl::InternalError(absl::StrCat("llvm::verifyModule: ", error_stream.str()));
  }
  module.getContext().setDiagnosticHandler(std::make_unique<ErrorCollector>(&errors));
  RETURN_IF_ERROR(CheckSize(module));
  Optimize(module, machine);
  PassGate gate(skipped_passes);
  module.getContext().setOptPassGate(gate);
  llvm::SmallVector<char, 0> code;
  llvm::raw_svector_ostream stream(code);
  llvm::legacy::PassManager emitter;
  if (machine.addPassesToEmitFile(emitter, stream, /*DwoOut=*/nullptr, type,
                                  /*DisableVerify=*/true)) {
    return absl::InternalError("llvm::TargetMachine::addPassesToEmitFile: no such kind of file");
  }
  emitter.run(module);
  module.getContext().setOptPassGate(llvm::getGlobalPassGate());  // `gate` ends before the context
  if (!errors.empty()) return absl::InternalError(absl::StrCat("LLVM: ", errors));
  return std::string(code.data(), code.size());
}

absl::Status RunGuarded(const std::string& what, llvm::function_ref<void()> work) {
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext net;
  if (net.RunSafely(work)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("LLVM or lld crashed (code ", net.RetCode, ") while compiling ", what));
}

void EndWithoutMemoryBy(void (*end)()) {
  llvm::install_bad_alloc_error_handler(
      [](void* by, const char* /*reason*/, bool /*wants_report*/) {
        reinterpret_cast<void (*)()>(by)();
      },
      reinterpret_cast<void*>(end));
}

}  // namespace phobos::compiler::codegen
