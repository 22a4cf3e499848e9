// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/codegen/compiled/emulated.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <deque>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/codegen/conversion.h"
#include "compiler/codegen/host/object/link.h"
#include "compiler/codegen/host/object/machine.h"
#include "compiler/codegen/kernel/environment.h"
#include "compiler/codegen/nvptx/contraction/copy.h"
#include "compiler/codegen/nvptx/kernel.h"
#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/stage.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace phobos::compiler::testing {
namespace {

constexpr size_t kStackBytes = 1 << 20;  // holds all that a chip's registers would
constexpr int kChipNumber = 80;
constexpr char kChipSymbol[] = "phobos_test_chip";
constexpr char kEntrySymbol[] = "phobos_test_entry";
constexpr size_t kWarp = 32;
// A thread's part of what a matrix instruction takes.
constexpr size_t kMostWords = 10;

enum class MatrixForm : int32_t { kF16, kShallowF16, kBF16, kTf32, kS8, kU8 };

// Where in the chip its functions are.
struct ChipOffsets {
  size_t wait, exchange, copy, commit, await, load_matrices, multiply;
};

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

// Calls the function pointer at `offset` of the chip.
llvm::Value* CallChip(llvm::IRBuilder<>& b, llvm::GlobalVariable* chip, size_t offset,
                      llvm::Type* result, llvm::ArrayRef<llvm::Value*> arguments) {
  llvm::Value* callee =
      b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getInt8Ty(), chip, offset));
  std::vector<llvm::Type*> types;
  for (llvm::Value* argument : arguments) types.push_back(argument->getType());
  return b.CreateCall(llvm::FunctionType::get(result, types, false), callee, arguments);
}

// What a call gives, from words in memory.
llvm::Value* ResultFrom(llvm::IRBuilder<>& b, llvm::Type* type, llvm::Value* words) {
  auto* parts = llvm::cast<llvm::StructType>(type);
  llvm::Value* result = llvm::PoisonValue::get(parts);
  for (unsigned i = 0; i < parts->getNumElements(); ++i) {
    llvm::Value* address = b.CreateConstGEP1_64(b.getInt32Ty(), words, i);
    result = b.CreateInsertValue(result, b.CreateLoad(parts->getElementType(i), address), i);
  }
  return result;
}

llvm::Value* Words(llvm::IntrinsicInst* call) {
  llvm::IRBuilder<> at_entry(&*call->getFunction()->getEntryBlock().begin());
  return at_entry.CreateAlloca(llvm::ArrayType::get(at_entry.getInt32Ty(), kMostWords));
}

struct MatrixLoad {
  int count;
  bool is_transposed;
};
std::optional<MatrixLoad> MatrixLoadOf(llvm::Intrinsic::ID id) {
  switch (id) {
    case llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16:
      return MatrixLoad{2, false};
    case llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16:
      return MatrixLoad{4, false};
    case llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16:
      return MatrixLoad{2, true};
    case llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16:
      return MatrixLoad{4, true};
    default:
      return std::nullopt;
  }
}

std::optional<MatrixForm> MatrixFormOf(llvm::Intrinsic::ID id) {
  switch (id) {
    case llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32:
      return MatrixForm::kF16;
    case llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_f32_f32:
      return MatrixForm::kShallowF16;
    case llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16:
      return MatrixForm::kBF16;
    case llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32:
      return MatrixForm::kTf32;
    case llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_s8:
      return MatrixForm::kS8;
    case llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_u8:
      return MatrixForm::kU8;
    default:
      return std::nullopt;
  }
}

// A copy, a matrix load or a matrix product; false: it is none.
bool ReplaceMatrixPart(llvm::IntrinsicInst* call, llvm::GlobalVariable* chip,
                       const ChipOffsets& offsets) {
  llvm::IRBuilder<> b(call);
  llvm::Type* none = b.getVoidTy();
  auto generic = [&](unsigned i) {
    return b.CreateAddrSpaceCast(call->getArgOperand(i), b.getPtrTy());
  };
  const llvm::Intrinsic::ID id = call->getIntrinsicID();
  if (id == llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16) {
    CallChip(b, chip, offsets.copy, none, {generic(0), generic(1), b.getInt32(16)});
  } else if (id == llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s) {
    CallChip(b, chip, offsets.copy, none, {generic(0), generic(1), call->getArgOperand(2)});
  } else if (id == llvm::Intrinsic::nvvm_cp_async_commit_group) {
    CallChip(b, chip, offsets.commit, none, {});
  } else if (id == llvm::Intrinsic::nvvm_cp_async_wait_group) {
    CallChip(b, chip, offsets.await, none, {call->getArgOperand(0)});
  } else if (id == llvm::Intrinsic::nvvm_cp_async_wait_all) {
    CallChip(b, chip, offsets.commit, none, {});
    CallChip(b, chip, offsets.await, none, {b.getInt32(0)});
  } else if (const auto load = MatrixLoadOf(id)) {
    llvm::Value* words = Words(call);
    CallChip(b, chip, offsets.load_matrices, none,
             {generic(0), b.getInt32(static_cast<uint32_t>(load->count)),
              b.getInt32(load->is_transposed), words});
    call->replaceAllUsesWith(ResultFrom(b, call->getType(), words));
  } else if (const auto form = MatrixFormOf(id)) {
    llvm::Value* operands = Words(call);
    llvm::Value* sums = Words(call);
    for (unsigned i = 0; i < call->arg_size(); ++i) {
      b.CreateStore(call->getArgOperand(i), b.CreateConstGEP1_64(b.getInt32Ty(), operands, i));
    }
    CallChip(b, chip, offsets.multiply, none,
             {b.getInt32(static_cast<uint32_t>(*form)), operands, sums});
    call->replaceAllUsesWith(ResultFrom(b, call->getType(), sums));
  } else {
    return false;
  }
  return true;
}

// The copies that are done on a condition, which have no intrinsic.
void ReplaceCopiesIf(llvm::Module& module, llvm::GlobalVariable* chip, const ChipOffsets& offsets) {
  std::vector<llvm::CallInst*> calls;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
        if (call == nullptr || !call->isInlineAsm()) continue;
        const auto* text = llvm::cast<llvm::InlineAsm>(call->getCalledOperand());
        if (text->getAsmString() == nvptx::kCopyIf) calls.push_back(call);
      }
    }
  }
  for (llvm::CallInst* call : calls) {
    llvm::IRBuilder<> b(llvm::SplitBlockAndInsertIfThen(call->getArgOperand(0), call, false));
    auto generic = [&](unsigned i) {
      return b.CreateAddrSpaceCast(call->getArgOperand(i), b.getPtrTy());
    };
    CallChip(b, chip, offsets.copy, b.getVoidTy(), {generic(1), generic(2), b.getInt32(16)});
    call->eraseFromParent();
  }
}

// Turns the chip's instructions into accesses of `chip` and calls through it.
void ReplaceIntrinsics(llvm::Module& module, llvm::GlobalVariable* chip,
                       const ChipOffsets& offsets) {
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
          b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getInt8Ty(), chip, offsets.wait));
      b.CreateCall(llvm::FunctionType::get(b.getVoidTy(), false), wait);
    } else if (call->getIntrinsicID() == llvm::Intrinsic::nvvm_shfl_sync_bfly_i32) {
      llvm::Type* i32 = b.getInt32Ty();
      llvm::Value* exchange =
          b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getInt8Ty(), chip, offsets.exchange));
      call->replaceAllUsesWith(b.CreateCall(llvm::FunctionType::get(i32, {i32, i32}, false),
                                            exchange,
                                            {call->getArgOperand(1), call->getArgOperand(2)}));
    } else if (call->getIntrinsicID() == llvm::Intrinsic::nvvm_ff2f16x2_rn ||
               call->getIntrinsicID() == llvm::Intrinsic::nvvm_ff2bf16x2_rn) {
      const bool is_half = call->getIntrinsicID() == llvm::Intrinsic::nvvm_ff2f16x2_rn;
      llvm::Value* both = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getInt16Ty(), 2));
      for (unsigned i = 0; i < 2; ++i) {
        both = b.CreateInsertElement(
            both,
            codegen::NarrowFromF32(b, call->getArgOperand(1 - i),
                                   is_half ? ir::DType::kF16 : ir::DType::kBF16),
            i);
      }
      call->replaceAllUsesWith(b.CreateBitCast(both, call->getType()));
    } else if (!ReplaceMatrixPart(call, chip, offsets)) {
      continue;
    }
    call->eraseFromParent();
  }
}

// Defines the memory that a launch gives.
void GiveSharedMemory(llvm::Module& module, int64_t bytes) {
  llvm::GlobalVariable* shared = module.getNamedGlobal("shared");
  if (shared == nullptr || !shared->isDeclaration()) return;
  auto* type = llvm::ArrayType::get(llvm::Type::getInt8Ty(module.getContext()),
                                    static_cast<uint64_t>(bytes));
  auto* given = new llvm::GlobalVariable(
      module, type, false, llvm::GlobalValue::InternalLinkage, llvm::Constant::getNullValue(type),
      "given", nullptr, llvm::GlobalValue::NotThreadLocal, shared->getAddressSpace());
  given->setAlignment(shared->getAlign());
  shared->replaceAllUsesWith(given);
  shared->eraseFromParent();
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
  std::vector<std::array<uint32_t, kMostWords>> given[2];
  std::vector<int64_t> exchanges;
  // Copies that each thread has started and not waited for, and where its groups of them end.
  struct Copy {
    void* to;
    const void* from;
    int32_t bytes;
  };
  struct Started {
    std::deque<Copy> copies;
    std::deque<size_t> groups;  // copies of each, the oldest first
    size_t ungrouped = 0;
  };
  std::vector<Started> started;
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

// What each thread of this one's warp gives, once all have given.
const std::array<uint32_t, kMostWords>* Gather(const uint32_t* words, size_t count) {
  const size_t thread = running->current;
  auto& given = running->given[running->exchanges[thread]++ % 2];
  std::copy(words, words + count, given[thread].begin());
  Stop(Block::State::kExchanges);
  return given.data() + thread / kWarp * kWarp;
}

int32_t Exchange(int32_t value, int32_t distance) {
  const auto word = static_cast<uint32_t>(value);
  const size_t lane = running->current % kWarp;
  return static_cast<int32_t>(Gather(&word, 1)[lane ^ static_cast<size_t>(distance)][0]);
}

constexpr size_t kGranule = 16;

void StartCopy(void* to, const void* from, int32_t bytes) {
  memset(to, 0xff, kGranule);
  running->started[running->current].copies.push_back({to, from, bytes});
  ++running->started[running->current].ungrouped;
}

void CommitCopies() {
  Block::Started& started = running->started[running->current];
  started.groups.push_back(started.ungrouped);
  started.ungrouped = 0;
}

void AwaitCopies(int32_t groups) {
  Block::Started& started = running->started[running->current];
  while (started.groups.size() > static_cast<size_t>(groups)) {
    for (; started.groups.front() > 0; --started.groups.front()) {
      const Block::Copy& copy = started.copies.front();
      memset(copy.to, 0, kGranule);
      memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes));
      started.copies.pop_front();
    }
    started.groups.pop_front();
  }
}

void LoadMatrices(const void* row, int32_t count, int32_t is_transposed, uint32_t* words) {
  const size_t lane = running->current % kWarp;
  uint32_t halves[2];
  memcpy(halves, &row, sizeof(row));
  const auto* given = Gather(halves, 2);
  for (int32_t matrix = 0; matrix < count; ++matrix) {
    uint16_t elements[2];
    for (size_t i = 0; i < 2; ++i) {
      size_t at_row = lane / 4;
      size_t column = lane % 4 * 2 + i;
      if (is_transposed != 0) std::swap(at_row, column);
      const uint16_t* from = nullptr;
      memcpy(&from, given[static_cast<size_t>(matrix) * 8 + at_row].data(), sizeof(from));
      elements[i] = from[column];
    }
    words[matrix] = elements[0] | static_cast<uint32_t>(elements[1]) << 16;
  }
}

float FromBits(uint32_t bits) {
  float number;
  memcpy(&number, &bits, sizeof(number));
  return number;
}

// Element `k` of what a thread has of a row or column: of word k / depth of those `words` has.
double ElementOf(MatrixForm form, uint32_t word, size_t i) {
  switch (form) {
    case MatrixForm::kF16:
    case MatrixForm::kShallowF16:
      return static_cast<double>(ToReal(ir::DType::kF16, word >> (16 * i) & 0xffff));
    case MatrixForm::kBF16:
      return FromBits(word >> (16 * i) << 16);
    case MatrixForm::kTf32:
      return FromBits(word & ~uint32_t{0x1fff});
    case MatrixForm::kS8:
      return static_cast<int8_t>(word >> (8 * i));
    case MatrixForm::kU8:
      return static_cast<uint8_t>(word >> (8 * i));
  }
  return 0;
}

void Multiply(int32_t number, const uint32_t* operands, uint32_t* sums) {
  const auto form = static_cast<MatrixForm>(number);
  const size_t lane = running->current % kWarp;
  const size_t halves = form == MatrixForm::kShallowF16 ? 1 : 2;  // along k
  const size_t in_word = form == MatrixForm::kTf32                            ? 1
                         : form == MatrixForm::kS8 || form == MatrixForm::kU8 ? 4
                                                                              : 2;
  const auto* given = Gather(operands, 3 * halves);
  const bool is_integer = in_word == 4;
  for (size_t i = 0; i < 4; ++i) {
    const size_t row = lane / 4 + i / 2 * 8;
    const size_t column = lane % 4 * 2 + i % 2;
    const uint32_t start = operands[3 * halves + i];
    double sum = is_integer ? 0 : FromBits(start);
    for (size_t half = 0; half < halves; ++half) {
      for (size_t k = 0; k < 4 * in_word; ++k) {
        const uint32_t a = given[row % 8 * 4 + k / in_word][half * 2 + row / 8];
        const uint32_t b = given[column * 4 + k / in_word][2 * halves + half];
        sum += ElementOf(form, a, k % in_word) * ElementOf(form, b, k % in_word);
      }
    }
    const auto rounded = static_cast<float>(sum);
    memcpy(&sums[i], &rounded, sizeof(rounded));
    if (is_integer) sums[i] = start + static_cast<uint32_t>(static_cast<int64_t>(sum));
  }
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
  const ir::Function staged = nvptx::Ordered(passes::StageInRegisters(function), kChipNumber);
  RETURN_IF_ERROR(ir::Verify(staged));
  nvptx::Plan plan = nvptx::PlanFor(staged, kChipNumber);
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
  GiveSharedMemory(module, plan.shared_bytes);
  ReplaceCopiesIf(
      module, chip,
      {offsetof(Chip, wait), offsetof(Chip, exchange), offsetof(Chip, copy), offsetof(Chip, commit),
       offsetof(Chip, await), offsetof(Chip, load_matrices), offsetof(Chip, multiply)});
  ReplaceIntrinsics(
      module, chip,
      {offsetof(Chip, wait), offsetof(Chip, exchange), offsetof(Chip, copy), offsetof(Chip, commit),
       offsetof(Chip, await), offsetof(Chip, load_matrices), offsetof(Chip, multiply)});
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
  for (auto& given : block.given) given.resize(count);
  block.started.resize(count);
  block.exchanges.resize(count);
  block.entry = entry_;
  block.slots = slots;
  running = &block;
  chip_->wait = Wait;
  chip_->exchange = Exchange;
  chip_->copy = StartCopy;
  chip_->commit = CommitCopies;
  chip_->await = AwaitCopies;
  chip_->load_matrices = LoadMatrices;
  chip_->multiply = Multiply;
  for (size_t i = 0; i < count; ++i) {
    ucontext_t& thread = block.threads[i];
    getcontext(&thread);
    thread.uc_stack.ss_sp = stacks_.get() + i * kStackBytes;
    thread.uc_stack.ss_size = kStackBytes;
    thread.uc_link = &block.caller;
    makecontext(&thread, RunThread, 0);
  }
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
