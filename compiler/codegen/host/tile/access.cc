// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/tile/access.h"

#include <algorithm>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/kernel/atomic.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/MDBuilder.h"

namespace phobos::compiler::host {
namespace {

// <0, 1, 2, ...> of i64.
llvm::Constant* LaneNumbers(llvm::LLVMContext& context, unsigned lanes) {
  llvm::SmallVector<uint64_t, 64> numbers(lanes);
  for (unsigned i = 0; i < lanes; ++i) numbers[i] = i;
  return llvm::ConstantDataVector::get(context, numbers);
}

llvm::Constant* FirstLanes(llvm::LLVMContext& context, unsigned lanes, unsigned valid) {
  llvm::SmallVector<llvm::Constant*, 64> mask(lanes);
  for (unsigned i = 0; i < lanes; ++i) mask[i] = llvm::ConstantInt::getBool(context, i < valid);
  return llvm::ConstantVector::get(mask);
}

// The same, but not known to be constant. Of a mask that is one in some lanes and not in others,
// and wider than the chip's vectors, LLVM 19 takes the part that is constant for undefined, and
// accesses all of its lanes.
llvm::Value* FirstLanesUnseen(llvm::IRBuilder<>& b, unsigned lanes, unsigned valid) {
  llvm::Type* i32 = b.getInt32Ty();
  auto* same = llvm::InlineAsm::get(llvm::FunctionType::get(i32, {i32}, /*isVarArg=*/false), "",
                                    "=r,0", /*hasSideEffects=*/false);
  llvm::CallInst* count = b.CreateCall(same, {b.getInt32(valid)});
  count->setDoesNotAccessMemory();
  count->setDoesNotThrow();
  llvm::Value* numbers =
      b.CreateTrunc(LaneNumbers(b.getContext(), lanes), llvm::FixedVectorType::get(i32, lanes));
  return b.CreateICmpULT(numbers, b.CreateVectorSplat(lanes, count));
}

}  // namespace

Access::Access(const Environment& environment, const ir::Op& op)
    : env_(environment),
      op_(op),
      memory_type_(codegen::MemoryType(environment.builder.getContext(), op.type.dtype)) {
  llvm::IRBuilder<>& b = env_.builder;
  const codegen::Tensor& tensor = env_.tensors[op.index];
  const size_t slices =
      std::count_if(op.subscripts.begin(), op.subscripts.end(),
                    [](const ir::Subscript& s) { return s.kind == ir::Subscript::Kind::kSlice; });
  gather_side_count_ = static_cast<int>(op.type.shape.size() - slices);
  bool has_gather = false;
  int side = 0;
  llvm::Value* offset = nullptr;
  llvm::Value* slices_inside = nullptr;
  for (size_t d = 0; d < op.subscripts.size(); ++d) {
    const ir::Subscript& subscript = op.subscripts[d];
    Axis axis;
    axis.bound = tensor.sides[d];
    axis.stride = tensor.strides[d];
    axis.has_unit_stride = d + 1 == op.subscripts.size();
    if (subscript.kind == ir::Subscript::Kind::kGather) {
      axis.is_gather = true;
      if (!has_gather) {
        gather_side_ = side;
        side += gather_side_count_;
      }
      has_gather = true;
      axes_.push_back(axis);
      continue;
    }
    axis.position = env_.scalars[subscript.position];
    llvm::Value* part = b.CreateMul(axis.position, axis.stride);
    offset = offset == nullptr ? part : b.CreateAdd(offset, part);
    if (subscript.kind == ir::Subscript::Kind::kElement) {
      // A side is never negative, so one unsigned comparison tests both ends.
      fixed_ = env_.And(fixed_, b.CreateICmpULT(axis.position, axis.bound));
      continue;
    }
    axis.side = side++;
    axis.length = subscript.length;
    llvm::Value* last = b.CreateSub(axis.bound, env_.Int(axis.length));
    slices_inside = env_.And(slices_inside, b.CreateICmpSGE(axis.position, env_.Int(0)));
    slices_inside = env_.And(slices_inside, b.CreateICmpSLE(axis.position, last));
    axes_.push_back(axis);
  }
  base_ = offset == nullptr ? tensor.address : ElementAddress(tensor.address, offset);
  inside_ = env_.And(fixed_, slices_inside);
  if (inside_ == nullptr) inside_ = b.getTrue();
}

void Access::PrepareRanges() {
  llvm::IRBuilder<>& b = env_.builder;
  for (Axis& axis : axes_) {
    if (axis.is_gather || axis.range.first != nullptr) continue;
    // Both differences are taken only where they cannot overflow.
    llvm::Value* length = env_.Int(axis.length);
    llvm::Value* starts_inside = b.CreateICmpSGE(axis.position, env_.Int(0));
    llvm::Value* ends_before = b.CreateICmpSLE(axis.position, env_.Int(-axis.length));
    axis.range.first =
        b.CreateSelect(starts_inside, env_.Int(0),
                       b.CreateSelect(ends_before, length, b.CreateNeg(axis.position)));
    llvm::Value* starts_behind = b.CreateICmpSGE(axis.position, axis.bound);
    llvm::Value* ends_inside = b.CreateICmpSLE(axis.position, b.CreateSub(axis.bound, length));
    axis.range.end =
        b.CreateSelect(starts_behind, env_.Int(0),
                       b.CreateSelect(ends_inside, length, b.CreateSub(axis.bound, axis.position)));
  }
}

Access::Reach Access::ReachAlong(int side) const {
  llvm::IRBuilder<>& b = env_.builder;
  Reach reach;
  reach.is_inside = fixed_;
  for (const Axis& axis : axes_) {
    llvm::Value* starts_inside = b.CreateICmpSGE(axis.position, env_.Int(0));
    reach.is_inside = env_.And(reach.is_inside, starts_inside);
    if (axis.side == side) {
      reach.elements = b.CreateSub(axis.bound, axis.position);
      continue;
    }
    llvm::Value* last = b.CreateSub(axis.bound, env_.Int(axis.length));
    reach.is_inside = env_.And(reach.is_inside, b.CreateICmpSLE(axis.position, last));
  }
  return reach;
}

Access::Range Access::RangeOf(int side) const {
  for (const Axis& axis : axes_) {
    if (!axis.is_gather && axis.side == side) return axis.range;
  }
  return Range();
}

bool Access::IsContiguousAlong(int side) const {
  return std::any_of(axes_.begin(), axes_.end(), [side](const Axis& axis) {
    return !axis.is_gather && axis.side == side && axis.has_unit_stride;
  });
}

llvm::Value* Access::AddressOf(const Chunk& chunk) const {
  return PlaceOf(chunk, {}, /*mask=*/nullptr).address;
}

llvm::Value* Access::ElementAddress(llvm::Value* base, llvm::Value* offset) const {
  return env_.builder.CreateGEP(memory_type_, base, offset);
}

// The lanes of a slice that lie inside: a vector along the lane side, else a scalar.
llvm::Value* Access::SliceMask(const Chunk& chunk, const Axis& axis) const {
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Value* index = chunk.indices[axis.side];
  llvm::Value* first = axis.range.first;
  llvm::Value* end = axis.range.end;
  if (axis.side == chunk.lane_side) {
    // Sides of tiles fit 32 bits, and half as wide lanes are half the work.
    llvm::Type* i32 = b.getInt32Ty();
    auto splat = [&](llvm::Value* v) {
      return b.CreateVectorSplat(chunk.lanes, b.CreateTrunc(v, i32));
    };
    llvm::Constant* numbers = LaneNumbers(b.getContext(), chunk.lanes);
    llvm::Value* narrow = b.CreateTrunc(numbers, llvm::FixedVectorType::get(i32, chunk.lanes));
    llvm::Value* lane = b.CreateAdd(splat(index), narrow);
    return b.CreateAnd(b.CreateICmpSGE(lane, splat(first)), b.CreateICmpSLT(lane, splat(end)));
  }
  return b.CreateAnd(b.CreateICmpSGE(index, first), b.CreateICmpSLT(index, end));
}

// `index` (scalar: of lane 0) times the stride, a vector of the width that the kernel's offsets
// have.
llvm::Value* Access::OffsetVector(const Chunk& chunk, const Axis& axis, llvm::Value* index) const {
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Type* type = b.getIntNTy(env_.function.index_bits == 32 ? 32 : 64);
  llvm::Type* vector = llvm::FixedVectorType::get(type, chunk.lanes);
  if (!index->getType()->isVectorTy()) {
    llvm::Value* start = b.CreateVectorSplat(chunk.lanes, b.CreateTrunc(index, type));
    index = b.CreateAdd(start, b.CreateTrunc(LaneNumbers(b.getContext(), chunk.lanes), vector));
  }
  index = b.CreateTrunc(index, vector);
  if (axis.has_unit_stride) return index;
  return b.CreateMul(index, b.CreateVectorSplat(chunk.lanes, b.CreateTrunc(axis.stride, type)));
}

Access::Place Access::PlaceOf(const Chunk& chunk, const Positions& gathered,
                              llvm::Value* mask) const {
  llvm::IRBuilder<>& b = env_.builder;
  Place place;
  llvm::Value* scalar_offset = nullptr;
  llvm::Value* scalar_mask = chunk.is_inside ? nullptr : fixed_;
  llvm::Value* vector_mask = nullptr;
  auto add_mask = [&](llvm::Value* part) {
    llvm::Value*& sum = part->getType()->isVectorTy() ? vector_mask : scalar_mask;
    sum = env_.And(sum, part);
  };
  auto add_offset = [&](llvm::Value* part) {
    llvm::Value*& sum = part->getType()->isVectorTy() ? place.offsets : scalar_offset;
    sum = sum == nullptr ? part : b.CreateAdd(sum, part);
  };
  size_t next_gather = 0;
  for (const Axis& axis : axes_) {
    llvm::Value* index = axis.is_gather ? gathered[next_gather++] : chunk.indices[axis.side];
    const bool is_vector =
        axis.is_gather ? index->getType()->isVectorTy() : axis.side == chunk.lane_side;
    if (axis.is_gather) {
      add_mask(b.CreateICmpULT(
          index, is_vector ? b.CreateVectorSplat(chunk.lanes, axis.bound) : axis.bound));
    } else if (!chunk.is_inside) {
      add_mask(SliceMask(chunk, axis));
    }
    if (is_vector && (axis.is_gather || !axis.has_unit_stride)) {
      if (!axis.is_gather && !chunk.is_inside) {
        // From a slice's start before the tensor, 32 bits may not reach what is inside.
        index = b.CreateAdd(index, axis.position);
        add_offset(b.CreateNeg(b.CreateMul(axis.position, axis.stride)));
      }
      add_offset(OffsetVector(chunk, axis, index));
    } else {
      add_offset(axis.has_unit_stride ? index : b.CreateMul(index, axis.stride));
    }
  }
  if (mask != nullptr) add_mask(mask);
  if (chunk.has_lanes()) {
    if (chunk.wanted != nullptr) add_mask(chunk.wanted);
    if (scalar_mask != nullptr) add_mask(b.CreateVectorSplat(chunk.lanes, scalar_mask));
    if (chunk.valid_lanes < chunk.lanes) {
      add_mask(vector_mask == nullptr ? FirstLanes(b.getContext(), chunk.lanes, chunk.valid_lanes)
                                      : FirstLanesUnseen(b, chunk.lanes, chunk.valid_lanes));
    }
  }
  place.mask = chunk.has_lanes() ? vector_mask : scalar_mask;
  place.address = scalar_offset == nullptr ? base_ : ElementAddress(base_, scalar_offset);
  return place;
}

// Whether the chip has a masked or scattered form of a vector access; else a loop over the lanes
// does it.
bool Access::HasVectorForm(const Place& place) const {
  if (place.offsets == nullptr && place.mask == nullptr) return true;
  const unsigned bits = memory_type_->getScalarSizeInBits();
  if (env_.has_avx512()) return place.offsets == nullptr || bits >= 32;
  return place.offsets == nullptr && bits >= 32;
}

llvm::Value* Access::Load(const Chunk& chunk, const Positions& gathered, llvm::Value* mask,
                          llvm::Value* fill) const {
  llvm::IRBuilder<>& b = env_.builder;
  const Place place = PlaceOf(chunk, gathered, mask);
  const llvm::Align align(memory_type_->getScalarSizeInBits() / 8);
  llvm::Type* type =
      chunk.has_lanes() ? llvm::FixedVectorType::get(memory_type_, chunk.lanes) : memory_type_;
  if (fill == nullptr) fill = llvm::Constant::getNullValue(type);
  if (fill->getType() != type) fill = b.CreateZExt(fill, type);  // bool
  llvm::Value* loaded = nullptr;
  if (!chunk.has_lanes()) {
    loaded = env_.Choose(
        place.mask, [&] { return b.CreateAlignedLoad(type, place.address, align); }, fill);
  } else if (!HasVectorForm(place)) {
    loaded = LoadLaneByLane(chunk, place, fill);
  } else if (place.offsets != nullptr) {
    llvm::Value* all =
        llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b.getInt1Ty(), chunk.lanes));
    loaded = b.CreateMaskedGather(type, ElementAddress(place.address, place.offsets), align,
                                  place.mask == nullptr ? all : place.mask, fill);
  } else if (place.mask != nullptr) {
    loaded = b.CreateMaskedLoad(type, place.address, align, place.mask, fill);
  } else {
    loaded = b.CreateAlignedLoad(type, place.address, align);
  }
  if (op_.type.dtype == ir::DType::kBool) loaded = b.CreateIsNotNull(loaded);
  return loaded;
}

// A bool is a byte there.
llvm::Value* Access::InMemory(llvm::Value* value) const {
  if (op_.type.dtype != ir::DType::kBool) return value;
  return env_.builder.CreateZExt(value, codegen::WithLanesOf(memory_type_, value->getType()));
}

void Access::Store(const Chunk& chunk, const Positions& gathered, llvm::Value* mask,
                   llvm::Value* value) const {
  llvm::IRBuilder<>& b = env_.builder;
  const Place place = PlaceOf(chunk, gathered, mask);
  const llvm::Align align(memory_type_->getScalarSizeInBits() / 8);
  value = InMemory(value);
  if (!chunk.has_lanes()) {
    env_.Branch(
        place.mask, [&] { b.CreateAlignedStore(value, place.address, align); }, [] {});
  } else if (!HasVectorForm(place)) {
    StoreLaneByLane(chunk, place, value);
  } else if (place.offsets != nullptr) {
    llvm::Value* all =
        llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b.getInt1Ty(), chunk.lanes));
    b.CreateMaskedScatter(value, ElementAddress(place.address, place.offsets), align,
                          place.mask == nullptr ? all : place.mask);
  } else if (place.mask != nullptr) {
    b.CreateMaskedStore(value, place.address, align, place.mask);
  } else {
    b.CreateAlignedStore(value, place.address, align);
  }
}

void Access::Stream(const Chunk& chunk, llvm::Value* value) const {
  llvm::IRBuilder<>& b = env_.builder;
  const uint64_t bytes = uint64_t{chunk.lanes} * memory_type_->getScalarSizeInBits() / 8;
  const llvm::Align align(std::min<uint64_t>(bytes, kLineBytes));
  llvm::StoreInst* store = b.CreateAlignedStore(InMemory(value), AddressOf(chunk), align);
  llvm::Metadata* one = llvm::ConstantAsMetadata::get(b.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b.getContext(), one));
}

void Access::ForEachLane(
    const Chunk& chunk, const Place& place,
    llvm::function_ref<void(llvm::Value* lane, llvm::Value* address)> body) const {
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Value* offsets = nullptr;
  llvm::Type* offset_type = nullptr;
  if (place.offsets != nullptr) {
    offset_type = place.offsets->getType()->getScalarType();
    offsets = env_.Buffer(offset_type, chunk.lanes);
    b.CreateStore(place.offsets, offsets);
  }
  llvm::Value* bits =
      b.getInt64(chunk.lanes == 64 ? ~uint64_t{0} : (uint64_t{1} << chunk.lanes) - 1);
  if (place.mask != nullptr) {
    bits = b.CreateZExt(b.CreateBitCast(place.mask, b.getIntNTy(chunk.lanes)), b.getInt64Ty());
  }
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::BasicBlock* inside = env_.NewBlock("lane");
  llvm::BasicBlock* after = env_.NewBlock("after_lanes");
  b.CreateCondBr(b.CreateIsNotNull(bits), inside, after);
  b.SetInsertPoint(inside);
  llvm::PHINode* left = b.CreatePHI(b.getInt64Ty(), 2);
  left->addIncoming(bits, before);
  llvm::Value* lane =
      b.CreateIntrinsic(llvm::Intrinsic::cttz, {b.getInt64Ty()}, {left, b.getTrue()});
  llvm::Value* offset = lane;
  if (offsets != nullptr) {
    offset = b.CreateLoad(offset_type, b.CreateGEP(offset_type, offsets, lane));
  }
  body(lane, ElementAddress(place.address, offset));
  llvm::Value* rest = b.CreateAnd(left, b.CreateSub(left, env_.Int(1)));
  left->addIncoming(rest, b.GetInsertBlock());
  b.CreateCondBr(b.CreateIsNotNull(rest), inside, after);
  b.SetInsertPoint(after);
}

llvm::Value* Access::LoadLaneByLane(const Chunk& chunk, const Place& place,
                                    llvm::Value* fill) const {
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Value* buffer = env_.Buffer(memory_type_, chunk.lanes);
  b.CreateStore(fill, buffer);
  ForEachLane(chunk, place, [&](llvm::Value* lane, llvm::Value* address) {
    b.CreateStore(b.CreateLoad(memory_type_, address), ElementAddress(buffer, lane));
  });
  return b.CreateLoad(llvm::FixedVectorType::get(memory_type_, chunk.lanes), buffer);
}

void Access::StoreLaneByLane(const Chunk& chunk, const Place& place, llvm::Value* value) const {
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Value* buffer = env_.Buffer(memory_type_, chunk.lanes);
  b.CreateStore(value, buffer);
  ForEachLane(chunk, place, [&](llvm::Value* lane, llvm::Value* address) {
    b.CreateStore(b.CreateLoad(memory_type_, ElementAddress(buffer, lane)), address);
  });
}

llvm::Value* Access::Atomic(const Chunk& chunk, const Positions& gathered,
                            llvm::ArrayRef<llvm::Value*> operands) const {
  llvm::IRBuilder<>& b = env_.builder;
  const Place place = PlaceOf(chunk, gathered, /*mask=*/nullptr);
  const bool has_result = op_.result != ir::kNoValue;
  llvm::SmallVector<llvm::Value*, 2> own(operands);
  for (llvm::Value*& operand : own) operand = InMemory(operand);
  llvm::Value* before = nullptr;
  if (!chunk.has_lanes()) {
    before = env_.Choose(
        place.mask, [&] { return codegen::EmitAtomicStep(env_, op_, place.address, own); },
        llvm::Constant::getNullValue(memory_type_));
  } else {
    llvm::Type* type = own[0]->getType();
    for (llvm::Value*& operand : own) {
      llvm::Value* buffer = env_.Buffer(memory_type_, chunk.lanes);
      b.CreateStore(operand, buffer);
      operand = buffer;
    }
    llvm::Value* results = has_result ? env_.Buffer(memory_type_, chunk.lanes) : nullptr;
    if (has_result) b.CreateStore(llvm::Constant::getNullValue(type), results);
    ForEachLane(chunk, place, [&](llvm::Value* lane, llvm::Value* address) {
      llvm::SmallVector<llvm::Value*, 2> lanes;
      for (llvm::Value* buffer : own) {
        lanes.push_back(b.CreateLoad(memory_type_, ElementAddress(buffer, lane)));
      }
      llvm::Value* one = codegen::EmitAtomicStep(env_, op_, address, lanes);
      if (has_result) b.CreateStore(one, ElementAddress(results, lane));
    });
    if (has_result) before = b.CreateLoad(type, results);
  }
  if (!has_result) return nullptr;
  return op_.type.dtype == ir::DType::kBool ? b.CreateIsNotNull(before) : before;
}

}  // namespace phobos::compiler::host
