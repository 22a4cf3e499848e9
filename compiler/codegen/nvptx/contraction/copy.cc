// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/contraction/copy.h"

#include <algorithm>
#include <optional>

#include "compiler/codegen/kernel/body.h"
#include "compiler/codegen/nvptx/plan/contraction/product.h"
#include "compiler/codegen/nvptx/tile/access.h"
#include "compiler/codegen/nvptx/tile/held.h"
#include "compiler/codegen/nvptx/tile/turns.h"
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

}  // namespace

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
    StartTurn(loop, b_.CreateAdd(lo, b_.CreateMul(turn, step)));
  });
}

// Starts the copies of the next turn, whose index is `index`, if there is such a turn.
void CopyEmitter::StartTurn(const ir::Op& loop, llvm::Value* index) {
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
  env_.Branch(
      b_.CreateICmpSGT(left, env_.Int(0)),
      [&] {
        for (const ir::Op* stage : pipeline.stages) {
          env_.held_tiles[stage->result] =
              BufferOf(env_.plan.copies.copies.at(stage), pipeline, written);
          Start(*stage);
        }
      },
      [] {});
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
  b_.CreateStore(b_.CreateSub(left, env_.Int(1)), state.left);
  Advance(state.written, pipeline.buffers);
  for (size_t i = 0; i < kept.size(); ++i) env_.scalars[pipeline.scalars[i]->result] = kept[i];
  for (size_t i = 0; i < shown.size(); ++i) env_.held_tiles[pipeline.stages[i]->result] = shown[i];
  loop_index = this_index;
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
    Start(stage);
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
    if (!copy.is_awaited) AwaitAll();
    return;
  }
  const Pipeline& pipeline = env_.plan.copies.pipelines.at(copy.loop);
  if (pipeline.product != nullptr || pipeline.stages.front() != &stage) return;
  AwaitTurn(*copy.loop);
  StartAhead(*copy.loop);
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

void CopyEmitter::StartAhead(const ir::Op& loop) {
  const Pipeline& pipeline = env_.plan.copies.pipelines.at(&loop);
  llvm::Value* step = env_.scalars[loop.operands[2]];
  llvm::Value* ahead = b_.CreateMul(step, env_.Int(pipeline.buffers - 1));
  StartTurn(loop, b_.CreateAdd(env_.loop_indices[loop.index], ahead));
}

void CopyEmitter::Start(const ir::Op& stage) {
  const ir::Op& load = *env_.plan.copies.copies.at(&stage).load;
  Access access(env_, load);
  const auto lanes = static_cast<unsigned>(ElementsOfGranule(load.type));
  llvm::Value* misalignment = access.Misalignment(lanes);
  llvm::Value* is_aligned = misalignment == nullptr ? nullptr : b_.CreateIsNull(misalignment);
  EmitEitherWay(
      env_, env_.And(access.inside(), is_aligned), [&] { StartInside(stage, access); },
      [&] { StartClipped(stage, &access, is_aligned); });
}

// The place of a tile's granule by its number.
Place CopyEmitter::GranuleAt(const ir::Type& type, llvm::Value* number) const {
  const int64_t elements = ElementsOfGranule(type);
  Place place;
  place.indices.resize(type.shape.size());
  place.lanes = static_cast<unsigned>(elements);
  place.lane_side = static_cast<int>(type.shape.size()) - 1;
  for (size_t side = type.shape.size(); side-- > 0;) {
    const bool is_last = side + 1 == type.shape.size();
    llvm::Value* count = env_.Int32(is_last ? type.shape[side] / elements : type.shape[side]);
    llvm::Value* index = side == 0 ? number : b_.CreateURem(number, count);
    if (side > 0) number = b_.CreateUDiv(number, count);
    place.indices[side] = is_last ? b_.CreateNUWMul(index, env_.Int32(elements)) : index;
  }
  return place;
}

void CopyEmitter::StartInside(const ir::Op& stage, const Access& access) const {
  const HeldTile held(env_, stage);
  const int64_t granules = stage.type.elements() / ElementsOfGranule(stage.type);
  const int64_t threads = env_.function.threads;
  auto copy = [&](llvm::Value* number) {
    Place place = GranuleAt(stage.type, number);
    place.is_inside = true;
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16, {},
                       {held.AddressAt(place), access.AddressAt(place)});
  };
  auto number_of = [&](llvm::Value* turn) {
    return b_.CreateAdd(b_.CreateMul(turn, env_.Int32(threads), "", true, true), env_.thread, "",
                        true, true);
  };
  const int64_t whole = granules / threads;
  if (const int64_t rows = RowsATurn(stage.type, threads); rows > 0 && whole <= kMostUnrolled) {
    Place first = GranuleAt(stage.type, env_.thread);
    first.is_inside = true;
    llvm::Value* to = held.AddressAt(first);
    llvm::Value* from = access.AddressAt(first);
    const int row_side = static_cast<int>(stage.type.shape.size()) - 2;
    llvm::Value* distance = b_.CreateMul(access.BytesAlong(row_side), env_.Int(rows));
    for (int64_t turn = 0; turn < whole; ++turn) {
      b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16, {}, {to, from});
      to = b_.CreateConstGEP1_64(b_.getInt8Ty(), to,
                                 static_cast<uint64_t>(threads * Swizzle::kGranuleBytes));
      from = b_.CreateGEP(b_.getInt8Ty(), from, distance);
    }
  } else if (whole <= kMostUnrolled) {
    for (int64_t turn = 0; turn < whole; ++turn) copy(number_of(env_.Int32(turn)));
  } else {
    env_.Loop(env_.Int32(0), env_.Int32(whole), 1,
              [&](llvm::Value* turn) { copy(number_of(turn)); });
  }
  if (granules % threads == 0) return;
  env_.Branch(
      b_.CreateICmpULT(env_.thread, env_.Int32(granules % threads)),
      [&] { copy(number_of(env_.Int32(whole))); }, [] {});
}

// Granule by granule, of which only what is inside is read and the rest becomes zeros; or, where
// granules of the tensor are not aligned, element by element, by the threads themselves.
void CopyEmitter::StartClipped(const ir::Op& stage, Access* access, llvm::Value* is_aligned) const {
  const HeldTile held(env_, stage);
  const int64_t elements = ElementsOfGranule(stage.type);
  const auto lanes = static_cast<unsigned>(elements);
  const int64_t granules = stage.type.elements() / elements;
  access->PrepareRanges();
  is_aligned = env_.And(is_aligned, access->StartsAtVector(lanes));
  env_.Loop(env_.thread, env_.Int32(granules), env_.function.threads, [&](llvm::Value* number) {
    const Place place = GranuleAt(stage.type, number);
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
