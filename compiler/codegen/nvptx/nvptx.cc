// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/nvptx.h"

#include <iterator>
#include <memory>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "compiler/codegen/kernel/environment.h"
#include "compiler/codegen/kernel/machine_code.h"
#include "compiler/codegen/nvptx/kernel.h"
#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/streaming.h"
#include "compiler/passes/pipeline.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

namespace phobos::compiler::nvptx {
namespace {

// Raised with every change of the code that is made for some function.
constexpr int kCodeVersion = 15;

constexpr int64_t kThreadsABlock = 1024;

struct ChipRow {
  int number;
  const char* ptx;  // the first version that knows the chip and its matrix instructions
  int64_t threads_a_multiprocessor;
  int64_t blocks_a_multiprocessor;
  int64_t shared_bytes_a_block;
};

constexpr ChipRow kChips[] = {
    {75, "ptx65", 1024, 16, 64 << 10},  {80, "ptx70", 2048, 32, 163 << 10},
    {86, "ptx71", 1536, 16, 99 << 10},  {89, "ptx78", 1536, 24, 99 << 10},
    {90, "ptx78", 2048, 32, 227 << 10},
};

// Together a sixth of the time that a kernel takes to compile. The first looks for sums that
// addresses have in common: those of a tile differ by constants, which other passes see. The next
// two have been done, or say what the emitter has said. The others polish machine code, which ptxas
// does again.
constexpr llvm::StringLiteral kSkippedPasses[] = {
    "Nary reassociation",     "SROA",
    "Infer address spaces",   "Early Machine Loop Invariant Code Motion",
    "Peephole Optimizations", "Optimize machine instruction PHIs",
    "Early Tail Duplication", "Control Flow Optimizer"};

void InitializeNvptx() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

// The first line of an artifact: what a person looking at it wants to know.
std::string Title(const ir::Function& function) {
  std::string title = absl::StrCat("// phobos-tuner: ", function.name);
  for (const auto& [name, value] : function.settings)
    absl::StrAppend(&title, " ", name, "=", value);
  return title + "\n";
}

absl::Status CheckLimits(const ir::Function& function, const Plan& plan, const Chip& chip) {
  if (function.threads > kThreadsABlock) {
    return absl::ResourceExhaustedError(absl::StrCat(function.threads, " threads in a block; ",
                                                     chip.name, " has at most ", kThreadsABlock));
  }
  if (plan.shared_bytes > chip.shared_bytes_a_block) {
    return absl::ResourceExhaustedError(
        absl::StrCat("tiles that threads exchange need ", plan.shared_bytes,
                     " bytes of shared memory; a block has ", chip.shared_bytes_a_block, " on ",
                     chip.name, ". Smaller tiles or fewer stages need less"));
  }
  const int64_t threads = function.min_blocks * function.threads;
  if (threads > chip.threads_a_multiprocessor ||
      function.min_blocks > chip.blocks_a_multiprocessor) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "min_blocks=", function.min_blocks, " of ", function.threads, " threads ask for ", threads,
        " threads at a time; a multiprocessor of ", chip.name, " has ",
        chip.threads_a_multiprocessor, " in ", chip.blocks_a_multiprocessor,
        " blocks. Fewer threads or a smaller min_blocks fit"));
  }
  return absl::OkStatus();
}

absl::Status RefusePrints(const ir::Function& function, const ir::Block& block, const Chip& chip) {
  for (const ir::Op& op : block) {
    if (op.opcode == ir::Opcode::kPrint) {
      return absl::ResourceExhaustedError(absl::StrCat(
          function.file_name, ":", op.line, ":", op.column,
          ": ph.print prints on the host chip, not on ", chip.name,
          "; call the kernel with NumPy arrays to see what it prints, or take it out"));
    }
    for (const ir::Block& region : op.regions) {
      RETURN_IF_ERROR(RefusePrints(function, region, chip));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakePtx(const ir::Function& function, const Plan& plan,
                                    const Chip& chip) {
  InitializeNvptx();
  ASSIGN_OR_RETURN(
      const std::unique_ptr<llvm::TargetMachine> machine,
      codegen::MakeMachine("nvptx64-nvidia-cuda", chip.name, absl::StrCat("+", chip.ptx)));
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);  // nobody reads them, and every pass makes some
  llvm::Module module("kernel", context);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple().str());
  EmitKernel(function, plan, module);
  MakeStreamingLoads(module);
  ASSIGN_OR_RETURN(const std::string ptx,
                   codegen::MakeMachineCode(module, *machine, llvm::CodeGenFileType::AssemblyFile,
                                            kSkippedPasses));
  return absl::StrCat(Title(function), ptx);
}

}  // namespace

absl::StatusOr<Chip> ResolveChip(std::string_view name) {
  std::string names;
  for (const ChipRow& row : kChips)
    absl::StrAppend(&names, names.empty() ? "sm_" : ", sm_", row.number);
  int number = 0;
  const ChipRow* last = nullptr;
  if (name.substr(0, 3) == "sm_" &&
      absl::SimpleAtoi(absl::string_view(name.data() + 3, name.size() - 3), &number)) {
    for (const ChipRow& row : kChips) last = row.number <= number ? &row : last;
  }
  if (last == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("unknown GPU \"", std::string(name),
                                                   "\"; there is code for ", names,
                                                   " and what runs the code of one of these"));
  }
  return Chip{absl::StrCat("sm_", last->number), last->ptx,    last->threads_a_multiprocessor,
              last->blocks_a_multiprocessor,     last->number, last->shared_bytes_a_block};
}

absl::StatusOr<Artifact> Compile(const ir::Function& function, const Chip& chip) {
  RETURN_IF_ERROR(RefusePrints(function, function.body, chip));
  ASSIGN_OR_RETURN(const ir::Function staged, passes::Run(function, passes::PassesForThreads()));
  const Plan plan = PlanFor(staged, chip.number);
  RETURN_IF_ERROR(CheckLimits(staged, plan, chip));
  absl::StatusOr<std::string> ptx = absl::InternalError("");
  RETURN_IF_ERROR(codegen::RunGuarded(absl::StrCat("kernel ", function.name),
                                      [&] { ptx = MakePtx(staged, plan, chip); }));
  if (!ptx.ok()) return ptx.status();
  return Artifact{*std::move(ptx), codegen::EntryName(function), function.threads,
                  plan.shared_bytes, plan.dynamic_shared_bytes()};
}

std::string Fingerprint() { return absl::StrCat("nvptx code ", kCodeVersion); }

}  // namespace phobos::compiler::nvptx
