// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/codegen/emulated.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/codegen/host/object/link.h"
#include "compiler/codegen/host/object/machine.h"
#include "compiler/codegen/kernel/environment.h"
#include "compiler/codegen/nvptx/kernel.h"
#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/stage.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

namespace phobos::compiler::testing {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr char kChipSymbol[] = "phobos_test_chip";
constexpr char kEntrySymbol[] = "phobos_test_entry";

// Index into Chip::registers, or -1.
int RegisterOf(llvm::Intrinsic::ID id) {
  constexpr llvm::Intrinsic::ID kRegisters[] = {
      llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x,    llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x,
      llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y,  llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z,
      llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_y,
      llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_z};
  for (size_t i = 0; i < std::size(kRegisters); ++i) {
    if (kRegisters[i] == id) return static_cast<int>(i);
  }
  return -1;
}

// Turns the chip's instructions into accesses of `chip` and calls through it.
void ReplaceIntrinsics(llvm::Module& module, llvm::GlobalVariable* chip, size_t wait_offset,
                       size_t exchange_offset) {
  std::vector<llvm::IntrinsicInst*> calls;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) calls.push_back(call);
      }
    }
  }
  for (llvm::IntrinsicInst* call : calls) {
    llvm::IRBuilder<> b(call);
    if (const int number = RegisterOf(call->getIntrinsicID()); number >= 0) {
      call->replaceAllUsesWith(
          b.CreateLoad(b.getInt32Ty(), b.CreateConstGEP1_64(b.getInt32Ty(), chip, number)));
    } else if (call->getIntrinsicID() == llvm::Intrinsic::nvvm_barrier0) {
      llvm::Value* wait =
          b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getInt8Ty(), chip, wait_offset));
      b.CreateCall(llvm::FunctionType::get(b.getVoidTy(), false), wait);
    } else if (call->getIntrinsicID() == llvm::Intrinsic::nvvm_shfl_sync_bfly_i32) {
      llvm::Type* i32 = b.getInt32Ty();
      llvm::Value* exchange =
          b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getInt8Ty(), chip, exchange_offset));
      call->replaceAllUsesWith(b.CreateCall(llvm::FunctionType::get(i32, {i32, i32}, false),
                                            exchange,
                                            {call->getArgOperand(1), call->getArgOperand(2)}));
    } else {
      continue;
    }
    call->eraseFromParent();
  }
}

// void entry(const uint64_t* slots): calls the kernel with the slots as its parameters.
void AddEntry(llvm::Module& module, llvm::Function* kernel) {
  llvm::IRBuilder<> b(module.getContext());
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false);
  auto* entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kEntrySymbol, module);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", entry));
  std::vector<llvm::Value*> arguments;
  for (llvm::Argument& parameter : kernel->args()) {
    llvm::Value* slot =
        b.CreateConstGEP1_64(b.getInt64Ty(), entry->getArg(0), parameter.getArgNo());
    arguments.push_back(b.CreateLoad(parameter.getType(), slot));
  }
  b.CreateCall(kernel, arguments);
  b.CreateRetVoid();
}

// The threads of a block, each with a stack of its own, and whose turn it is.
struct Block {
  enum class State { kRuns, kExchanges, kWaits, kEnded };
  ucontext_t caller;
  std::vector<ucontext_t> threads;
  std::vector<State> states;
  // What each thread gives in its last exchange and in the one before, which some may not have read
  // yet; how many it has done.
  std::vector<int32_t> given[2];
  std::vector<int64_t> exchanges;
  size_t current = 0;
  void (*entry)(const uint64_t*) = nullptr;
  const uint64_t* slots = nullptr;
};
Block* running = nullptr;  // makecontext and the code's barrier carry no argument

void RunThread() {
  running->entry(running->slots);
  running->states[running->current] = Block::State::kEnded;
}

void Stop(Block::State state) {
  running->states[running->current] = state;
  swapcontext(&running->threads[running->current], &running->caller);
}

void Wait() { Stop(Block::State::kWaits); }

int32_t Exchange(int32_t value, int32_t distance) {
  const size_t thread = running->current;
  std::vector<int32_t>& given = running->given[running->exchanges[thread]++ % 2];
  given[thread] = value;
  Stop(Block::State::kExchanges);
  return given[thread ^ static_cast<size_t>(distance)];
}

}  // namespace

Emulated::Emulated(ir::Function function, ir::Function ordered, void* library, Chip* chip,
                   Entry entry)
    : function_(std::move(function)),
      ordered_(std::move(ordered)),
      library_(library),
      chip_(chip),
      entry_(entry),
      stacks_(new char[static_cast<size_t>(function_.threads) * kStackBytes]) {}

Emulated::~Emulated() { dlclose(library_); }

absl::StatusOr<std::unique_ptr<Emulated>> Emulated::Make(ir::Function function, int32_t threads,
                                                         Barriers barriers) {
  RETURN_IF_ERROR(ir::Verify(function));
  function.threads = threads;
  const ir::Function staged = nvptx::Ordered(passes::StageInRegisters(function));
  RETURN_IF_ERROR(ir::Verify(staged));
  nvptx::Plan plan = nvptx::PlanFor(staged);
  if (barriers == Barriers::kNone) plan.waits.clear();
  llvm::LLVMContext context;
  llvm::Module module("emulated", context);
  ASSIGN_OR_RETURN(const auto machine, host::MakeMachine("x86-64-v3"));
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple().str());
  nvptx::EmitKernel(staged, plan, module);
  llvm::StripDebugInfo(module);
  auto* chip_type = llvm::ArrayType::get(llvm::Type::getInt64Ty(context), sizeof(Chip) / 8);
  auto* chip =
      new llvm::GlobalVariable(module, chip_type, false, llvm::GlobalValue::ExternalLinkage,
                               llvm::Constant::getNullValue(chip_type), kChipSymbol);
  ReplaceIntrinsics(module, chip, offsetof(Chip, wait), offsetof(Chip, exchange));
  AddEntry(module, module.getFunction(codegen::EntryName(staged)));
  ASSIGN_OR_RETURN(const std::string object, host::MakeObject(module, *machine));
  ASSIGN_OR_RETURN(const std::string shared_object, host::LinkSharedObject(object));
  static std::atomic<int> next{0};
  const std::string path =
      absl::StrCat(getenv("TEST_TMPDIR"), "/emulated_", getpid(), "_", next++, ".so");
  std::ofstream(path, std::ios::binary) << shared_object;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(path.c_str());
  if (library == nullptr) return absl::InternalError(absl::StrCat("dlopen: ", dlerror()));
  return std::unique_ptr<Emulated>(
      new Emulated(function, staged, library, static_cast<Chip*>(dlsym(library, kChipSymbol)),
                   reinterpret_cast<Entry>(dlsym(library, kEntrySymbol))));
}

absl::StatusOr<std::vector<Argument>> Emulated::Run(const Launch& launch, Against against) const {
  std::vector<Argument> results[2];
  for (const bool is_falling : {false, true}) {
    auto run = [&](const uint64_t* slots) -> absl::Status {
      const auto& grid = launch.grid;
      for (int axis = 0; axis < 3; ++axis) {
        chip_->registers[4 + axis] = static_cast<int32_t>(grid[axis]);
      }
      for (int64_t block = 0; block < grid[0] * grid[1] * grid[2]; ++block) {
        chip_->registers[1] = static_cast<int32_t>(block % grid[0]);
        chip_->registers[2] = static_cast<int32_t>(block / grid[0] % grid[1]);
        chip_->registers[3] = static_cast<int32_t>(block / grid[0] / grid[1]);
        RETURN_IF_ERROR(RunBlock(slots, is_falling));
      }
      return absl::OkStatus();
    };
    ASSIGN_OR_RETURN(results[is_falling], RunGuarded(function_, launch, against, run));
  }
  for (size_t p = 0; p < results[0].size(); ++p) {
    if (results[0][p].elements == results[1][p].elements) continue;
    return absl::InternalError(absl::StrCat("the order of the threads changes ",
                                            function_.params[p].name, ": a barrier is missing"));
  }
  return results[0];
}

absl::Status Emulated::RunRaw(const uint64_t* slots) const {
  for (int axis = 0; axis < 3; ++axis) {
    chip_->registers[1 + axis] = 0;
    chip_->registers[4 + axis] = 1;
  }
  return RunBlock(slots, /*is_falling=*/false);
}

absl::Status Emulated::RunBlock(const uint64_t* slots, bool is_falling) const {
  const auto count = static_cast<size_t>(function_.threads);
  Block block;
  block.threads.resize(count);
  block.states.resize(count);
  for (std::vector<int32_t>& given : block.given) given.resize(count);
  block.exchanges.resize(count);
  block.entry = entry_;
  block.slots = slots;
  running = &block;
  chip_->wait = Wait;
  chip_->exchange = Exchange;
  for (size_t i = 0; i < count; ++i) {
    ucontext_t& thread = block.threads[i];
    getcontext(&thread);
    thread.uc_stack.ss_sp = stacks_.get() + i * kStackBytes;
    thread.uc_stack.ss_size = kStackBytes;
    thread.uc_link = &block.caller;
    makecontext(&thread, RunThread, 0);
  }
  constexpr size_t kWarp = 32;
  for (bool has_ended = false; !has_ended;) {
    for (size_t first = 0; first < count; first += kWarp) {
      const size_t warp = is_falling ? count - kWarp - first : first;
      const auto begin = block.states.begin() + static_cast<ptrdiff_t>(warp);
      do {
        for (size_t i = 0; i < kWarp; ++i) {
          block.current = warp + (is_falling ? kWarp - 1 - i : i);
          chip_->registers[0] = static_cast<int32_t>(block.current);
          swapcontext(&block.caller, &block.threads[block.current]);
        }
        if (std::count(begin, begin + kWarp, *begin) != kWarp) {
          return absl::InternalError("threads of a warp part where they exchange or wait");
        }
      } while (*begin == Block::State::kExchanges);
    }
    const auto ended = static_cast<size_t>(
        std::count(block.states.begin(), block.states.end(), Block::State::kEnded));
    has_ended = ended == count;
    if (ended > 0 && ended < count) {
      return absl::InternalError(
          absl::StrCat(ended, " of ", count, " threads ended where the others wait"));
    }
  }
  return absl::OkStatus();
}

}  // namespace phobos::compiler::testing
