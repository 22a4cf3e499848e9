// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/tile/access.h"

#include <algorithm>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/kernel/atomic.h"
#include "compiler/codegen/nvptx/tile/words.h"
#include "compiler/ir/equality.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::nvptx {
namespace {

using ir::Subscript;

// What a load reads at once that streams; narrower ones need what is beside it in the caches.
constexpr uint64_t kStreamBytes = 16;

}  // namespace

Access::Access(Environment& environment, const ir::Op& op)
    : env_(environment),
      op_(op),
      param_(environment.function.params[op.index]),
      tensor_(environment.tensors[op.index]),
      memory_type_(codegen::MemoryType(environment.builder.getContext(), op.type.dtype)),
      offset_type_(environment.builder.getIntNTy(environment.function.index_bits == 32 ? 32 : 64)) {
  const size_t slices =
      std::count_if(op.subscripts.begin(), op.subscripts.end(),
                    [](const Subscript& s) { return s.kind == Subscript::Kind::kSlice; });
  gather_side_count_ = static_cast<int>(op.type.shape.size() - slices);
  bool has_gather = false;
  int side = 0;
  llvm::Value* offset = nullptr;
  for (size_t d = 0; d < op.subscripts.size(); ++d) {
    if (op.subscripts[d].kind != Subscript::Kind::kGather) {
      AddPosition(d, &side, &offset);
      continue;
    }
    axes_.push_back({.dimension = d, .is_gather = true, .bound = tensor_.sides[d]});
    if (!has_gather) {
      gather_side_ = side;
      side += gather_side_count_;
    }
    has_gather = true;
  }
  base_ = offset == nullptr ? tensor_.address
                            : env_.builder.CreateGEP(memory_type_, tensor_.address, offset);
  inside_ = env_.And(fixed_, inside_);
}

// Of a slice or an element: what it adds to the offset, and its test.
void Access::AddPosition(size_t dimension, int* side, llvm::Value** offset) {
  llvm::IRBuilder<>& b = env_.builder;
  const Subscript& subscript = op_.subscripts[dimension];
  llvm::Value* position = env_.scalars[subscript.position];
  llvm::Value* bound = tensor_.sides[dimension];
  llvm::Value* part = b.CreateMul(position, tensor_.strides[dimension]);
  *offset = *offset == nullptr ? part : b.CreateAdd(*offset, part);
  if (subscript.kind == Subscript::Kind::kElement) {
    // A side is never negative, so one unsigned comparison tests both ends.
    fixed_ = env_.And(fixed_, b.CreateICmpULT(position, bound));
    return;
  }
  axes_.push_back({.dimension = dimension,
                   .side = (*side)++,
                   .length = subscript.length,
                   .position = position,
                   .bound = bound});
  llvm::Value* last = b.CreateSub(bound, env_.Int(subscript.length));
  inside_ = env_.And(inside_, b.CreateICmpSGE(position, env_.Int(0)));
  inside_ = env_.And(inside_, b.CreateICmpSLE(position, last));
}

bool Access::IsContiguousAlong(int side) const {
  return std::any_of(axes_.begin(), axes_.end(), [&](const Axis& axis) {
    return !axis.is_gather && axis.side == side && HasUnitStride(axis);
  });
}

llvm::Value* Access::Misalignment(unsigned lanes) const {
  if (lanes == 1 || op_.subscripts.back().kind != Subscript::Kind::kSlice) return nullptr;
  // Gathered rows lie at any multiple of the sides behind them.
  const int element = llvm::countr_zero(static_cast<unsigned>(ir::ByteSize(op_.type.dtype)));
  const int wanted = element + llvm::countr_zero(lanes);
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Value* bits = nullptr;
  auto add = [&](llvm::Value* part) { bits = bits == nullptr ? part : b.CreateOr(bits, part); };
  // The least power of two in the rows' distance, and in the first element's offset.
  int offset = 32;
  int stride = 0;
  for (size_t d = op_.subscripts.size(); d-- > 0;) {
    const Subscript& subscript = op_.subscripts[d];
    const bool moves = subscript.kind == Subscript::Kind::kGather ||
                       (subscript.kind == Subscript::Kind::kSlice && subscript.length > 1);
    if (moves && d + 1 < op_.subscripts.size() && element + stride < wanted) {
      add(b.CreateShl(tensor_.strides[d], static_cast<uint64_t>(element)));
    }
    if (subscript.kind != Subscript::Kind::kGather) {
      offset = std::min(offset, stride + env_.powers.In(subscript.position));
    }
    stride = std::min(stride + env_.powers.In(param_.dims[d]), 32);
  }
  const bool is_promised = param_.aligned_bytes % (int64_t{1} << wanted) == 0;
  if (!is_promised || element + offset < wanted) {
    add(b.CreatePtrToInt(base_, b.getInt64Ty()));
  }
  return bits == nullptr ? nullptr : b.CreateAnd(bits, (uint64_t{1} << wanted) - 1);
}

void Access::PrepareRanges() {
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Type* i32 = b.getInt32Ty();
  for (Axis& axis : axes_) {
    if (axis.is_gather || axis.first != nullptr) continue;
    // Both differences are taken only where they cannot overflow.
    llvm::Value* length = env_.Int(axis.length);
    llvm::Value* starts_inside = b.CreateICmpSGE(axis.position, env_.Int(0));
    llvm::Value* ends_before = b.CreateICmpSLE(axis.position, env_.Int(-axis.length));
    llvm::Value* first =
        b.CreateSelect(starts_inside, env_.Int(0),
                       b.CreateSelect(ends_before, length, b.CreateNeg(axis.position)));
    llvm::Value* starts_behind = b.CreateICmpSGE(axis.position, axis.bound);
    llvm::Value* ends_inside = b.CreateICmpSLE(axis.position, b.CreateSub(axis.bound, length));
    llvm::Value* end =
        b.CreateSelect(starts_behind, env_.Int(0),
                       b.CreateSelect(ends_inside, length, b.CreateSub(axis.bound, axis.position)));
    axis.first = b.CreateTrunc(first, i32);
    axis.end = b.CreateTrunc(end, i32);
    if (fixed_ == nullptr || is_fixed_in_end_) continue;
    // One test less at each element.
    axis.end = b.CreateSelect(fixed_, axis.end, env_.Int32(0));
    is_fixed_in_end_ = true;
  }
}

llvm::Value* Access::IsInside(const Place& place) const {
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Value* inside = is_fixed_in_end_ ? nullptr : fixed_;
  for (const Axis& axis : axes_) {
    if (axis.is_gather) continue;
    llvm::Value* index = place.indices[axis.side];
    inside = env_.And(inside, b.CreateICmpSGE(index, axis.first));
    inside = env_.And(inside, b.CreateICmpSLT(index, axis.end));
  }
  return inside;
}

llvm::Value* Access::StartsAtVector(unsigned lanes) const {
  llvm::IRBuilder<>& b = env_.builder;
  return b.CreateIsNull(b.CreateAnd(axes_.back().first, env_.Int32(lanes - 1)));
}

llvm::Value* Access::InsideFrom(const Place& place, unsigned lanes) const {
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Value* left = b.CreateSub(axes_.back().end, place.indices.back());
  llvm::Value* most = env_.Int32(lanes);
  left = b.CreateSelect(b.CreateICmpSLT(left, most), left, most);
  llvm::Value* inside = IsInside(place);
  return inside == nullptr ? left : b.CreateSelect(inside, left, env_.Int32(0));
}

bool Access::Implies(const Access& other) const {
  const std::vector<const ir::Op*>& definitions = env_.definitions;
  if (param_.dims.size() != other.param_.dims.size() || op_.type.shape != other.op_.type.shape) {
    return false;
  }
  for (size_t d = 0; d < param_.dims.size(); ++d) {
    const Subscript& mine = op_.subscripts[d];
    const Subscript& its = other.op_.subscripts[d];
    const bool same_bound = param_.dims[d].extent == other.param_.dims[d].extent &&
                            param_.dims[d].literal == other.param_.dims[d].literal;
    if (mine.kind == Subscript::Kind::kGather || mine.kind != its.kind || !same_bound ||
        mine.length != its.length ||
        !ir::AreEqualScalars(definitions, mine.position, its.position)) {
      return false;
    }
  }
  return true;
}

llvm::Value* Access::AddressOf(const Place& place, const Positions& gathered, unsigned lane) const {
  llvm::IRBuilder<>& b = env_.builder;
  // From a slice's start before the tensor, 32 bits may not reach what is inside.
  const bool is_near =
      place.is_inside || std::all_of(axes_.begin(), axes_.end(), [this](const Axis& axis) {
        return axis.is_gather || HasUnitStride(axis);
      });
  llvm::Type* const type = is_near ? offset_type_ : b.getInt64Ty();
  llvm::Value* offset = nullptr;
  size_t next_gather = 0;
  for (const Axis& axis : axes_) {
    llvm::Value* index = nullptr;
    if (axis.is_gather) {
      index = b.CreateTrunc(LaneOf(gathered[next_gather++], lane), type);
    } else {
      index = place.indices[axis.side];
      if (axis.side == place.lane_side) index = b.CreateNSWAdd(index, env_.Int32(lane));
      index = b.CreateZExt(index, type);
    }
    if (!HasUnitStride(axis)) {
      index = b.CreateMul(index, b.CreateTrunc(tensor_.strides[axis.dimension], type), "",
                          /*HasNUW=*/false, /*HasNSW=*/!axis.is_gather);
    }
    offset = offset == nullptr ? index : b.CreateNSWAdd(offset, index);
  }
  if (offset == nullptr) return base_;
  return b.CreateGEP(memory_type_, base_, b.CreateSExt(offset, b.getInt64Ty()));
}

llvm::Value* Access::BytesAlong(int side) const {
  const auto is_along = [side](const Axis& axis) { return !axis.is_gather && axis.side == side; };
  const Axis& axis = *std::find_if(axes_.begin(), axes_.end(), is_along);
  return env_.builder.CreateMul(tensor_.strides[axis.dimension],
                                env_.Int(ir::ByteSize(op_.type.dtype)));
}

llvm::Value* Access::GatherMask(const Positions& gathered, unsigned lane) const {
  llvm::Value* mask = nullptr;
  size_t next_gather = 0;
  for (const Axis& axis : axes_) {
    if (!axis.is_gather) continue;
    llvm::Value* index = LaneOf(gathered[next_gather++], lane);
    mask = env_.And(mask, env_.builder.CreateICmpULT(index, axis.bound));
  }
  return mask;
}

Fragment Access::Load(const Place& place, bool is_tested, const Positions& gathered,
                      const Fragment& mask, const Fragment& fill) const {
  llvm::IRBuilder<>& b = env_.builder;
  llvm::Type* type = codegen::ElementType(b.getContext(), op_.type.dtype);
  auto lane_fill = [&](unsigned lane) -> llvm::Value* {
    return fill.empty() ? llvm::Constant::getNullValue(type) : LaneOf(fill, lane);
  };
  Fragment loaded;
  if (place.is_inside && place.lanes > 1 && IsContiguousAlong(place.lane_side)) {
    // Lanes run along a slice, so gathered positions are the same for all of them.
    llvm::Value* gather_mask = GatherMask(gathered, 0);
    llvm::Type* vector = WordsType(memory_type_, place.lanes);
    auto load = [&] {
      const uint64_t bytes = place.lanes * static_cast<uint64_t>(ir::ByteSize(op_.type.dtype));
      return LoadFrom(vector, AddressOf(place, gathered, 0), bytes);
    };
    loaded = UnpackWords(b, env_.Choose(gather_mask, load, llvm::Constant::getNullValue(vector)),
                         memory_type_, place.lanes);
    for (llvm::Value*& element : loaded) element = FromMemory(element);
    if (mask.empty() && (gather_mask == nullptr || fill.empty())) return loaded;
    // What is masked out may be read all the same: it is inside.
    for (unsigned lane = 0; lane < place.lanes; ++lane) {
      llvm::Value* wanted = gather_mask;
      if (!mask.empty()) wanted = env_.And(wanted, LaneOf(mask, lane));
      loaded[lane] = b.CreateSelect(wanted, loaded[lane], lane_fill(lane));
    }
    return loaded;
  }
  llvm::Value* inside = is_tested ? nullptr : IsInside(place);
  for (unsigned lane = 0; lane < place.lanes; ++lane) {
    llvm::Value* wanted = env_.And(inside, GatherMask(gathered, lane));
    if (!mask.empty()) wanted = env_.And(wanted, LaneOf(mask, lane));
    loaded.push_back(LoadOne(AddressOf(place, gathered, lane), wanted, lane_fill(lane)));
  }
  return loaded;
}

void Access::Store(const Place& place, const Positions& gathered, const Fragment& mask,
                   const Fragment& value) const {
  if (place.is_inside && place.lanes > 1 && mask.empty() && IsContiguousAlong(place.lane_side)) {
    env_.Branch(
        GatherMask(gathered, 0),
        [&] { StoreVector(AddressOf(place, gathered, 0), value, place.lanes); }, [] {});
    return;
  }
  for (unsigned lane = 0; lane < place.lanes; ++lane) {
    llvm::Value* wanted = GatherMask(gathered, lane);
    if (!mask.empty()) wanted = env_.And(wanted, LaneOf(mask, lane));
    StoreOne(AddressOf(place, gathered, lane), wanted, LaneOf(value, lane));
  }
}

Fragment Access::Atomic(const Place& place, const Positions& gathered,
                        llvm::ArrayRef<Fragment> operands) const {
  llvm::Value* inside = place.is_inside ? nullptr : IsInside(place);
  Fragment before;
  for (unsigned lane = 0; lane < place.lanes; ++lane) {
    llvm::SmallVector<llvm::Value*, 2> own;
    for (const Fragment& operand : operands) own.push_back(ToMemory(LaneOf(operand, lane)));
    auto step = [&] {
      return codegen::EmitAtomicStep(env_, op_, AddressOf(place, gathered, lane), own);
    };
    llvm::Value* wanted = env_.And(inside, GatherMask(gathered, lane));
    llvm::Value* old = env_.Choose(wanted, step, llvm::Constant::getNullValue(memory_type_));
    if (op_.result != ir::kNoValue) before.push_back(FromMemory(old));
  }
  return before;
}

llvm::LoadInst* Access::LoadFrom(llvm::Type* type, llvm::Value* address, uint64_t bytes) const {
  llvm::IRBuilder<>& b = env_.builder;
  llvm::LoadInst* load = b.CreateAlignedLoad(type, address, llvm::Align(bytes));
  if (!param_.is_written) {
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
  }
  if (bytes == kStreamBytes && env_.plan.streams.count(&op_) > 0) {
    auto* one = llvm::ConstantAsMetadata::get(b.getInt32(1));
    load->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b.getContext(), one));
  }
  return load;
}

llvm::Value* Access::FromMemory(llvm::Value* value) const {
  return op_.type.dtype == ir::DType::kBool ? env_.builder.CreateIsNotNull(value) : value;
}

llvm::Value* Access::ToMemory(llvm::Value* value) const {
  return op_.type.dtype == ir::DType::kBool ? env_.builder.CreateZExt(value, memory_type_) : value;
}

llvm::Value* Access::LoadOne(llvm::Value* address, llvm::Value* mask, llvm::Value* fill) const {
  return env_.Choose(
      mask,
      [&] {
        const auto bytes = static_cast<uint64_t>(ir::ByteSize(op_.type.dtype));
        return FromMemory(LoadFrom(memory_type_, address, bytes));
      },
      fill);
}

void Access::StoreOne(llvm::Value* address, llvm::Value* mask, llvm::Value* value) const {
  const auto bytes = static_cast<uint64_t>(ir::ByteSize(op_.type.dtype));
  env_.Branch(
      mask, [&] { env_.builder.CreateAlignedStore(ToMemory(value), address, llvm::Align(bytes)); },
      [] {});
}

void Access::StoreVector(llvm::Value* address, const Fragment& value, unsigned lanes) const {
  Fragment stored;
  for (llvm::Value* element : value) stored.push_back(ToMemory(element));
  const auto bytes = static_cast<uint64_t>(ir::ByteSize(op_.type.dtype)) * lanes;
  env_.builder.CreateAlignedStore(PackWords(env_.builder, stored, memory_type_, lanes), address,
                                  llvm::Align(bytes));
}

}  // namespace phobos::compiler::nvptx
