// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/kernel.h"

#include <algorithm>
#include <vector>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/kernel/body.h"
#include "compiler/codegen/kernel/held_memory.h"
#include "compiler/codegen/nvptx/contraction/copy.h"
#include "compiler/codegen/nvptx/contraction/fragments.h"
#include "compiler/codegen/nvptx/contraction/product.h"
#include "compiler/codegen/nvptx/reduction/reduction.h"
#include "compiler/codegen/nvptx/reduction/scan.h"
#include "compiler/codegen/nvptx/tile/access.h"
#include "compiler/codegen/nvptx/tile/environment.h"
#include "compiler/codegen/nvptx/tile/statement.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace phobos::compiler::nvptx {
namespace {

constexpr int64_t kMostGridX = 2147483647;
constexpr int64_t kMostGridYZ = 65535;
// Of shared memory with what is multiplied: where the banks begin.
constexpr uint64_t kOperandAlignment = 128;

// Tiles and memory of a body, as one thread of the block does them.
class ThreadMemory : public codegen::MemoryEmitter {
 public:
  explicit ThreadMemory(Environment& environment) : env_(environment), copies_(environment) {}

  void BeforeFor(const ir::Op& op, llvm::Value* lo, llvm::Value* turns) override {
    copies_.BeforeFor(op, lo, turns);
    const auto pipeline = env_.plan.copies.pipelines.find(&op);
    const bool is_ahead = pipeline != env_.plan.copies.pipelines.end();
    if (is_ahead && pipeline->second.product != nullptr) {
      ReadFirstStep(env_, env_.plan.statements.at(pipeline->second.product), copies_);
    }
    const auto found = env_.plan.kept.read_before.find(&op);
    if (found == env_.plan.kept.read_before.end()) return;
    if (!is_ahead) env_.Meet();
    for (const ir::Op* product : found->second) {
      const Statement& statement = env_.plan.statements.at(product);
      ReadRowsBefore(env_, *statement.whole, *statement.fragments);
    }
  }

  void EmitTileStatement(const ir::Op& op) override {
    if (env_.plan.copies.AheadOf(op) != nullptr) return copies_.EmitStage(op);
    const Statement& statement = env_.plan.statements.at(&op);
    if (op.opcode == ir::Opcode::kStage) env_.held_tiles[op.result] = AddressOf(statement);
    if (op.opcode == ir::Opcode::kDeclareVar) env_.variables[op.index] = AddressOf(statement);
    if (env_.plan.awaits_copies.count(&op) > 0) copies_.AwaitAll();
    Wait(op);
    if (env_.plan.copies.copies.count(&op) > 0) return copies_.EmitStage(op);
    const ir::Op* whole = statement.whole;
    if (whole != nullptr && whole->opcode == ir::Opcode::kDot) {
      EmitProduct(env_, statement, copies_);
    } else if (whole != nullptr && ir::IsReduction(whole->opcode)) {
      EmitReduction(env_, statement);
    } else if (whole != nullptr && whole->opcode == ir::Opcode::kCumulativeSum) {
      EmitScan(env_, statement);
    } else {
      EmitStatement(env_, statement);
    }
  }
  llvm::Value* LoadScalar(const ir::Op& op) override {
    Wait(op);
    Access access(env_, op);
    access.PrepareRanges();
    return access.Load(Place(), /*is_tested=*/false, {}, Optional(op.operands[1]),
                       Optional(op.operands[0]))[0];
  }
  llvm::Value* ReduceToScalar(const ir::Op& op) override {
    Wait(op);
    return EmitReduction(env_, env_.plan.statements.at(&op));
  }
  void StoreScalar(const ir::Op& op) override {
    Wait(op);
    llvm::Value* is_first = env_.builder.CreateIsNull(env_.thread);
    Access access(env_, op);
    env_.Branch(
        env_.And(is_first, access.IsInside(Place())),
        [&] {
          access.Store(Place(), {}, Optional(op.operands[1]), {env_.scalars[op.operands[0]]});
        },
        [] {});
  }
  llvm::Value* AtomicScalar(const ir::Op& op) override {
    Wait(op);
    llvm::IRBuilder<>& b = env_.builder;
    Access access(env_, op);
    access.PrepareRanges();
    llvm::SmallVector<Fragment, 2> operands;
    for (ir::ValueId operand : op.operands) operands.push_back({env_.scalars[operand]});
    llvm::Value* is_first = b.CreateIsNull(env_.thread);
    if (op.result == ir::kNoValue) {
      env_.Branch(
          is_first, [&] { access.Atomic(Place(), {}, operands); }, [] {});
      return nullptr;
    }
    // The first thread tells the others.
    llvm::Value* told = SharedAddress(env_.plan.shared.offsets.at(&op));
    llvm::Type* type = codegen::MemoryType(b.getContext(), op.type.dtype);
    const bool is_bool = op.type.dtype == ir::DType::kBool;
    env_.Meet();  // all have read what was told before
    auto tell = [&] {
      llvm::Value* before = access.Atomic(Place(), {}, operands)[0];
      b.CreateStore(is_bool ? b.CreateZExt(before, type) : before, told);
    };
    env_.Branch(is_first, tell, [] {});
    env_.Meet();
    llvm::Value* before = b.CreateLoad(type, told);
    return is_bool ? b.CreateIsNotNull(before) : before;
  }

 private:
  void Wait(const ir::Op& op) const {
    if (env_.plan.waits.count(&op) > 0) env_.Meet();
  }
  llvm::Value* SharedAddress(int64_t offset) const {
    return env_.builder.CreateConstGEP1_64(env_.builder.getInt8Ty(), env_.shared,
                                           static_cast<uint64_t>(offset));
  }
  llvm::Value* AddressOf(const Statement& statement) const {
    const auto shared = env_.plan.shared.offsets.find(statement.op);
    llvm::IRBuilder<>& b = env_.builder;
    if (shared != env_.plan.shared.offsets.end()) return SharedAddress(shared->second);
    const ir::Type& type = codegen::StoredType(env_.function, *statement.op);
    const auto elements = static_cast<uint64_t>(env_.plan.HeldElements(statement));
    if (env_.plan.kept.operands.count(statement.op) > 0) {
      return env_.Slot(llvm::ArrayType::get(b.getInt32Ty(), elements / 2));
    }
    llvm::Type* element = codegen::MemoryType(b.getContext(), type.dtype);
    return env_.Slot(llvm::ArrayType::get(element, elements));
  }
  Fragment Optional(ir::ValueId value) const {
    return value == ir::kNoValue ? Fragment() : Fragment{env_.scalars[value]};
  }

  Environment& env_;
  CopyEmitter copies_;
};

class KernelEmitter {
 public:
  KernelEmitter(const ir::Function& function, const Plan& plan, llvm::Module& module)
      : function_(function),
        builder_(module.getContext()),
        env_(function, builder_, plan),
        plan_(plan),
        module_(module) {}

  void Emit();

 private:
  llvm::Function* MakeEntry();
  void Annotate(llvm::Function* entry, const char* name, int64_t value);
  void AddLines(llvm::Function* entry);
  llvm::Value* ReadRegister(llvm::Intrinsic::ID id, int64_t least, int64_t most);
  void ReadLaunch(llvm::Function* entry);
  llvm::GlobalVariable* MakeShared();

  const ir::Function& function_;
  llvm::IRBuilder<> builder_;
  Environment env_;
  const Plan& plan_;
  llvm::Module& module_;
};

void KernelEmitter::Emit() {
  llvm::Function* entry = MakeEntry();
  builder_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", entry));
  AddLines(entry);
  ReadLaunch(entry);
  env_.shared = MakeShared();
  ThreadMemory memory(env_);
  codegen::BodyEmitter body(env_, memory);
  llvm::BasicBlock* end = env_.NewBlock("end");
  body.Emit(end);
  builder_.SetInsertPoint(end);
  builder_.CreateRetVoid();
}

llvm::Function* KernelEmitter::MakeEntry() {
  std::vector<llvm::Type*> types;
  for (const ir::Param& param : function_.params) {
    types.push_back(param.is_tensor ? static_cast<llvm::Type*>(builder_.getPtrTy(kGlobalSpace))
                                    : builder_.getInt64Ty());
  }
  types.resize(types.size() + function_.extents.size(), builder_.getInt64Ty());
  llvm::Function* entry = llvm::Function::Create(
      llvm::FunctionType::get(builder_.getVoidTy(), types, /*isVarArg=*/false),
      llvm::Function::ExternalLinkage, codegen::EntryName(function_), module_);
  entry->addFnAttr(llvm::Attribute::NoUnwind);
  for (size_t i = 0; i < function_.params.size(); ++i) {
    const ir::Param& param = function_.params[i];
    if (!param.is_tensor) continue;
    // A tensor that is written overlaps no other one. But where threads wait for each other, LLVM
    // must not think that nobody else writes it.
    if (!param.is_written || !plan_.threads_meet) {
      entry->addParamAttr(static_cast<unsigned>(i), llvm::Attribute::NoAlias);
    }
  }
  Annotate(entry, "kernel", 1);
  Annotate(entry, "maxntidx", function_.threads);
  if (function_.min_blocks > 0) Annotate(entry, "minctasm", function_.min_blocks);
  return entry;
}

void KernelEmitter::Annotate(llvm::Function* entry, const char* name, int64_t value) {
  llvm::LLVMContext& context = module_.getContext();
  module_.getOrInsertNamedMetadata("nvvm.annotations")
      ->addOperand(llvm::MDNode::get(
          context,
          {llvm::ValueAsMetadata::get(entry), llvm::MDString::get(context, name),
           llvm::ConstantAsMetadata::get(builder_.getInt32(static_cast<uint32_t>(value)))}));
}

// The file and line of each instruction, for profilers and the chip's error reports.
void KernelEmitter::AddLines(llvm::Function* entry) {
  llvm::DIBuilder lines(module_);
  llvm::DIFile* file =
      lines.createFile(function_.file_name.empty() ? "unnamed" : function_.file_name, "");
  lines.createCompileUnit(llvm::dwarf::DW_LANG_Python, file, "phobos-compile",
                          /*isOptimized=*/true, "", 0, "",
                          llvm::DICompileUnit::DebugDirectivesOnly);
  llvm::DISubroutineType* type = lines.createSubroutineType(lines.getOrCreateTypeArray({}));
  llvm::DISubprogram* scope =
      lines.createFunction(file, function_.name, entry->getName(), file, 0, type, 0,
                           llvm::DINode::FlagZero, llvm::DISubprogram::SPFlagDefinition);
  entry->setSubprogram(scope);
  lines.finalize();
  module_.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  env_.debug_scope = scope;
}

llvm::Value* KernelEmitter::ReadRegister(llvm::Intrinsic::ID id, int64_t least, int64_t most) {
  llvm::CallInst* read = builder_.CreateIntrinsic(id, {}, {});
  read->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, static_cast<uint64_t>(least)),
                                            llvm::APInt(32, static_cast<uint64_t>(most) + 1)));
  return read;
}

void KernelEmitter::ReadLaunch(llvm::Function* entry) {
  auto slot = [&](size_t i) -> llvm::Value* { return entry->getArg(static_cast<unsigned>(i)); };
  env_.ReadSlots(slot, slot);
  env_.thread = ReadRegister(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, 0, function_.threads - 1);
  constexpr llvm::Intrinsic::ID kBlock[] = {llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x,
                                            llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y,
                                            llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z};
  constexpr llvm::Intrinsic::ID kGrid[] = {llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x,
                                           llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_y,
                                           llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_z};
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t most = axis == 0 ? kMostGridX : kMostGridYZ;
    llvm::Type* i64 = builder_.getInt64Ty();
    env_.block_id[axis] = builder_.CreateZExt(ReadRegister(kBlock[axis], 0, most - 1), i64);
    env_.grid[axis] = builder_.CreateZExt(ReadRegister(kGrid[axis], 1, most), i64);
  }
}

llvm::GlobalVariable* KernelEmitter::MakeShared() {
  if (plan_.shared_bytes == 0) return nullptr;
  const bool is_static = plan_.static_shared_bytes() > 0;
  auto* type = llvm::ArrayType::get(builder_.getInt8Ty(),
                                    static_cast<uint64_t>(plan_.static_shared_bytes()));
  auto* shared = new llvm::GlobalVariable(
      module_, type, /*isConstant=*/false,
      is_static ? llvm::GlobalValue::InternalLinkage : llvm::GlobalValue::ExternalLinkage,
      is_static ? llvm::PoisonValue::get(type) : nullptr, "shared", nullptr,
      llvm::GlobalValue::NotThreadLocal, kSharedSpace);
  shared->setAlignment(llvm::Align(plan_.copies.operands.empty() ? 16 : kOperandAlignment));
  return shared;
}

}  // namespace

void EmitKernel(const ir::Function& function, const Plan& plan, llvm::Module& module) {
  KernelEmitter(function, plan, module).Emit();
}

}  // namespace phobos::compiler::nvptx
