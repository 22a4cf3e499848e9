// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/contraction/copy.h"

#include <algorithm>
#include <optional>

#include "compiler/codegen/kernel/body.h"
#include "compiler/codegen/nvptx/plan/contraction/product.h"
#include "compiler/codegen/nvptx/tile/access.h"
#include "compiler/codegen/nvptx/tile/held.h"
#include "compiler/codegen/nvptx/tile/turns.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace phobos::compiler::nvptx {
namespace {

// Granules of a thread that are copied in straight code; more are copied in a loop.
constexpr int64_t kMostUnrolled = 16;

int64_t ElementsOfGranule(const ir::Type& type) {
  return Swizzle::kGranuleBytes / ir::ByteSize(type.dtype);
}

// Rows that the threads copy at a time, a granule each, if their granules of one turn stand as
// those of another do, so many rows further; 0: they do not.
int64_t RowsATurn(const ir::Type& type, int64_t threads) {
  const size_t rank = type.shape.size();
  const int64_t in_row = type.shape.back() / ElementsOfGranule(type);
  if (rank < 2 || type.shape[rank - 2] * type.shape[rank - 1] != type.elements()) return 0;
  const std::optional<Swizzle> swizzle = SwizzleOf(type);
  if (threads % in_row != 0 || !swizzle.has_value()) return 0;
  const int64_t rows = threads / in_row;
  return rows % (swizzle->rows * swizzle->width) == 0 ? rows : 0;
}

// The place of a tile's granule by its number.
Place GranuleAt(llvm::IRBuilder<>& b, const ir::Type& type, llvm::Value* number) {
  const int64_t elements = ElementsOfGranule(type);
  Place place;
  place.indices.resize(type.shape.size());
  place.lanes = static_cast<unsigned>(elements);
  place.lane_side = static_cast<int>(type.shape.size()) - 1;
  for (size_t side = type.shape.size(); side-- > 0;) {
    const bool is_last = side + 1 == type.shape.size();
    llvm::Value* count =
        b.getInt32(static_cast<uint32_t>(is_last ? type.shape[side] / elements : type.shape[side]));
    llvm::Value* index = side == 0 ? number : b.CreateURem(number, count);
    if (side > 0) number = b.CreateUDiv(number, count);
    place.indices[side] =
        is_last ? b.CreateNUWMul(index, b.getInt32(static_cast<uint32_t>(elements))) : index;
  }
  return place;
}

}  // namespace

TileCopy::TileCopy(Environment& environment, const ir::Op& stage, const Access& access,
                   llvm::Value* condition)
    : env_(environment),
      type_(stage.type),
      held_(environment, stage),
      access_(access),
      condition_(condition),
      granules_(stage.type.elements() / ElementsOfGranule(stage.type)) {
  const int64_t threads = env_.function.threads;
  turns_ = (granules_ + threads - 1) / threads;
  is_looped_ = turns_ > kMostUnrolled;
  rows_a_turn_ = RowsATurn(type_, threads);
  if (is_looped_) turns_ = 1;
}

void TileCopy::StartNext() {
  const int64_t threads = env_.function.threads;
  if (is_looped_) {
    env_.Branch(
        condition_,
        [&] {
          env_.Loop(env_.thread, env_.Int32(granules_), threads,
                    [&](llvm::Value* number) { Start(GranuleOf(number), nullptr); });
        },
        [] {});
    ++turn_;
    return;
  }
  const bool is_whole = (turn_ + 1) * threads <= granules_;
  if (turn_ > 0 && is_whole && rows_a_turn_ > 0) {
    last_.to =
        env_.builder.CreateConstGEP1_64(env_.builder.getInt8Ty(), last_.to,
                                        static_cast<uint64_t>(threads * Swizzle::kGranuleBytes));
    last_.from = env_.builder.CreateGEP(env_.builder.getInt8Ty(), last_.from, distance_);
  } else {
    last_ =
        GranuleOf(env_.builder.CreateAdd(env_.thread, env_.Int32(turn_ * threads), "", true, true));
  }
  if (turn_ == 0 && rows_a_turn_ > 0) {
    const int row_side = static_cast<int>(type_.shape.size()) - 2;
    distance_ = env_.builder.CreateMul(access_.BytesAlong(row_side), env_.Int(rows_a_turn_));
  }
  llvm::Value* exists =
      is_whole ? nullptr : env_.builder.CreateICmpULT(env_.thread, env_.Int32(granules_ % threads));
  Start(last_, env_.And(condition_, exists));
  ++turn_;
}

TileCopy::Granule TileCopy::GranuleOf(llvm::Value* number) const {
  Place place = GranuleAt(env_.builder, type_, number);
  place.is_inside = true;
  return {held_.AddressAt(place), access_.AddressAt(place)};
}

void TileCopy::Start(const Granule& granule, llvm::Value* condition) const {
  llvm::IRBuilder<>& b = env_.builder;
  if (condition == nullptr) {
    b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16, {},
                      {granule.to, granule.from});
    return;
  }
  auto* type = llvm::FunctionType::get(
      b.getVoidTy(), {b.getInt1Ty(), granule.to->getType(), granule.from->getType()}, false);
  auto* instruction =
      llvm::InlineAsm::get(type, kCopyIf, "b,l,l,~{memory}", /*hasSideEffects=*/true);
  b.CreateCall(type, instruction, {condition, granule.to, granule.from});
}

void CopyEmitter::BeforeFor(const ir::Op& loop, llvm::Value* lo, llvm::Value* turns) {
  const auto found = env_.plan.copies.pipelines.find(&loop);
  if (found == env_.plan.copies.pipelines.end()) return;
  const Pipeline& pipeline = found->second;
  State& state = states_[&loop];
  if (state.read == nullptr) {
    state = {env_.Slot(b_.getInt32Ty()), env_.Slot(b_.getInt32Ty()), env_.Slot(b_.getInt64Ty())};
  }
  b_.CreateStore(env_.Int32(0), state.read);
  b_.CreateStore(env_.Int32(0), state.written);
  b_.CreateStore(turns, state.left);
  // What was in the buffers' memory may still be read by others.
  env_.Meet();
  llvm::Value* step = env_.scalars[loop.operands[2]];
  env_.Loop(env_.Int(0), env_.Int(pipeline.buffers - 1), 1, [&](llvm::Value* turn) {
    StartAll(BeginTurnAt(loop, b_.CreateAdd(lo, b_.CreateMul(turn, step))));
    EndAhead(loop);
  });
}

// Of the next turn that is not started, whose index is `index`, if there is such a turn.
std::vector<TileCopy> CopyEmitter::BeginTurnAt(const ir::Op& loop, llvm::Value* index) {
  const Pipeline& pipeline = env_.plan.copies.pipelines.at(&loop);
  const State& state = states_.at(&loop);
  llvm::Value*& loop_index = env_.loop_indices[loop.index];
  llvm::Value* const this_index = loop_index;
  loop_index = index;
  std::vector<llvm::Value*> kept;
  for (const ir::Op* scalar : pipeline.scalars) kept.push_back(env_.scalars[scalar->result]);
  std::vector<llvm::Value*> shown;
  for (const ir::Op* stage : pipeline.stages) shown.push_back(env_.held_tiles[stage->result]);
  for (const ir::Op* scalar : pipeline.scalars) {
    env_.scalars[scalar->result] = EmitPureScalar(env_, *scalar);
  }
  llvm::Value* left = b_.CreateLoad(b_.getInt64Ty(), state.left);
  llvm::Value* written = b_.CreateLoad(b_.getInt32Ty(), state.written);
  for (const ir::Op* stage : pipeline.stages) {
    env_.held_tiles[stage->result] = BufferOf(env_.plan.copies.copies.at(stage), pipeline, written);
  }
  std::vector<TileCopy> copies = Begin(pipeline.stages, b_.CreateICmpSGT(left, env_.Int(0)));
  for (size_t i = 0; i < kept.size(); ++i) env_.scalars[pipeline.scalars[i]->result] = kept[i];
  for (size_t i = 0; i < shown.size(); ++i) env_.held_tiles[pipeline.stages[i]->result] = shown[i];
  loop_index = this_index;
  return copies;
}

void CopyEmitter::EndAhead(const ir::Op& loop) const {
  const State& state = states_.at(&loop);
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
  llvm::Value* left = b_.CreateLoad(b_.getInt64Ty(), state.left);
  b_.CreateStore(b_.CreateSub(left, env_.Int(1)), state.left);
  Advance(state.written, env_.plan.copies.pipelines.at(&loop).buffers);
}

void CopyEmitter::Advance(llvm::AllocaInst* number, int64_t count) const {
  llvm::Value* next =
      b_.CreateAdd(b_.CreateLoad(b_.getInt32Ty(), number), env_.Int32(1), "", true, true);
  llvm::Value* is_last = b_.CreateICmpEQ(next, env_.Int32(count));
  b_.CreateStore(b_.CreateSelect(is_last, env_.Int32(0), next), number);
}

llvm::Value* CopyEmitter::BufferOf(const Copy& copy, const Pipeline& pipeline,
                                   llvm::Value* number) const {
  llvm::Value* start =
      b_.CreateConstGEP1_64(b_.getInt8Ty(), env_.shared,
                            static_cast<uint64_t>(env_.plan.rings + pipeline.offset + copy.offset));
  llvm::Value* offset = b_.CreateMul(number, env_.Int32(pipeline.buffer_bytes), "", true, true);
  return b_.CreateGEP(b_.getInt8Ty(), start, b_.CreateZExt(offset, b_.getInt64Ty()));
}

void CopyEmitter::AwaitAll() const {
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_all, {}, {});
}

void CopyEmitter::EmitStage(const ir::Op& stage) {
  const Copy& copy = env_.plan.copies.copies.at(&stage);
  if (copy.loop == nullptr) {
    StartAll(Begin({&stage}, nullptr));
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
    if (!copy.is_awaited) AwaitAll();
    return;
  }
  const Pipeline& pipeline = env_.plan.copies.pipelines.at(copy.loop);
  if (pipeline.product != nullptr || pipeline.stages.front() != &stage) return;
  AwaitTurn(*copy.loop);
  StartAll(BeginAhead(*copy.loop));
  EndAhead(*copy.loop);
  BeginTurn(*copy.loop);
}

// Once all have met, all of the turn's tiles are there, and nobody reads those of the turn before
// any more, whose buffers are filled next.
void CopyEmitter::AwaitTurn(const ir::Op& loop) const {
  const Pipeline& pipeline = env_.plan.copies.pipelines.at(&loop);
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {},
                     {env_.Int32(pipeline.buffers - 2)});
  env_.Meet();
}

void CopyEmitter::BeginTurn(const ir::Op& loop) const {
  ShowNext(loop);
  Advance(states_.at(&loop).read, env_.plan.copies.pipelines.at(&loop).buffers);
}

void CopyEmitter::ShowNext(const ir::Op& loop) const {
  const Pipeline& pipeline = env_.plan.copies.pipelines.at(&loop);
  llvm::Value* read = b_.CreateLoad(b_.getInt32Ty(), states_.at(&loop).read);
  for (const ir::Op* stage : pipeline.stages) {
    env_.held_tiles[stage->result] = BufferOf(env_.plan.copies.copies.at(stage), pipeline, read);
  }
}

std::vector<TileCopy> CopyEmitter::BeginAhead(const ir::Op& loop) {
  const Pipeline& pipeline = env_.plan.copies.pipelines.at(&loop);
  llvm::Value* step = env_.scalars[loop.operands[2]];
  llvm::Value* ahead = b_.CreateMul(step, env_.Int(pipeline.buffers - 1));
  return BeginTurnAt(loop, b_.CreateAdd(env_.loop_indices[loop.index], ahead));
}

// Where `condition` (null: always): tiles that are wholly inside their tensors are still to be
// copied, without a test on the way; all others are on their way behind this.
std::vector<TileCopy> CopyEmitter::Begin(const std::vector<const ir::Op*>& stages,
                                         llvm::Value* condition) {
  std::vector<Source> sources;
  llvm::Value* all_inside = nullptr;
  for (const ir::Op* stage : stages) {
    const ir::Op& load = *env_.plan.copies.copies.at(stage).load;
    Source& source = sources.emplace_back(Source{stage, Access(env_, load)});
    const auto lanes = static_cast<unsigned>(ElementsOfGranule(load.type));
    if (llvm::Value* misalignment = source.access.Misalignment(lanes); misalignment != nullptr) {
      source.is_aligned = b_.CreateIsNull(misalignment);
    }
    source.inside = env_.And(source.access.inside(), source.is_aligned);
    all_inside = env_.And(all_inside, source.inside);
  }
  if (all_inside != nullptr) {
    env_.Branch(
        env_.And(condition, b_.CreateNot(all_inside)),
        [&] {
          for (Source& source : sources) {
            if (source.inside == nullptr) continue;
            env_.Branch(
                source.inside, [] {}, [&] { StartClipped(&source); });
          }
        },
        [] {});
  }
  std::vector<TileCopy> copies;
  for (const Source& source : sources) {
    copies.emplace_back(env_, *source.stage, source.access, env_.And(condition, source.inside));
  }
  return copies;
}

void CopyEmitter::StartAll(std::vector<TileCopy> copies) {
  for (TileCopy& copy : copies) {
    while (copy.left() > 0) copy.StartNext();
  }
}

// Granule by granule, of which only what is inside is read and the rest becomes zeros; or, where
// granules of the tensor are not aligned, element by element, by the threads themselves.
void CopyEmitter::StartClipped(Source* source) const {
  const ir::Op& stage = *source->stage;
  Access* const access = &source->access;
  const HeldTile held(env_, stage);
  const int64_t elements = ElementsOfGranule(stage.type);
  const auto lanes = static_cast<unsigned>(elements);
  const int64_t granules = stage.type.elements() / elements;
  access->PrepareRanges();
  llvm::Value* is_aligned = env_.And(source->is_aligned, access->StartsAtVector(lanes));
  env_.Loop(env_.thread, env_.Int32(granules), env_.function.threads, [&](llvm::Value* number) {
    const Place place = GranuleAt(b_, stage.type, number);
    auto copy = [&] {
      llvm::Value* inside = access->InsideFrom(place, lanes);
      llvm::Value* bytes =
          b_.CreateMul(inside, env_.Int32(ir::ByteSize(stage.type.dtype)), "", true, true);
      // Nothing is read from where nothing is inside; still the address should be a tensor's.
      llvm::Value* address =
          b_.CreateSelect(b_.CreateIsNotNull(bytes), access->AddressAt(place),
                          env_.tensors[env_.plan.copies.copies.at(&stage).load->index].address);
      b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s, {},
                         {held.AddressAt(place), address, bytes});
    };
    auto load = [&] {
      Place single = place;
      single.lanes = 1;
      single.lane_side = Place::kNoSide;
      env_.Loop(env_.Int32(0), env_.Int32(elements), 1, [&](llvm::Value* lane) {
        single.indices.back() = b_.CreateAdd(place.indices.back(), lane, "", true, true);
        held.Store(single, access->Load(single, /*is_tested=*/false, {}, {}, {}));
      });
    };
    env_.Branch(is_aligned, copy, load);
  });
}

}  // namespace phobos::compiler::nvptx
