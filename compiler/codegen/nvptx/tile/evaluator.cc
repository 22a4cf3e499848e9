// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/tile/evaluator.h"

#include <algorithm>
#include <utility>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/nvptx/tile/held.h"
#include "compiler/codegen/nvptx/tile/words.h"
#include "compiler/ir/shape.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace phobos::compiler::nvptx {

Evaluator::Evaluator(Environment& environment, const Statement& statement)
    : env_(environment), b_(environment.builder), statement_(statement) {}

llvm::Value* Evaluator::Prepare() {
  const auto lanes = static_cast<unsigned>(statement_.layout.vector);
  llvm::Value* inside = nullptr;
  llvm::Value* misaligned = nullptr;
  auto add = [&](Access& access) {
    inside = env_.And(inside, access.inside());
    llvm::Value* bits = access.Misalignment(lanes);
    if (bits == nullptr) return;
    misaligned = misaligned == nullptr ? bits : b_.CreateOr(misaligned, bits);
  };
  for (const ir::Op* load : statement_.loads) {
    std::optional<Access>& access = loads_[load->result];
    access.emplace(env_, *load);
    add(*access);
  }
  const ir::Op& done = codegen::DoneBy(env_.definitions, *statement_.op);
  if (ir::WritesTensor(done.opcode)) {
    target_.emplace(env_, done);
    add(*target_);
  }
  if (misaligned != nullptr) inside = env_.And(inside, b_.CreateIsNull(misaligned));
  return inside;
}

void Evaluator::PrepareRanges() {
  for (auto& [value, access] : loads_) access->PrepareRanges();
  if (target_.has_value()) target_->PrepareRanges();
}

Fragment Evaluator::Evaluate(ir::ValueId value, const Place& place) {
  const ir::Op& op = *env_.definitions[value];
  if (op.type.is_scalar()) return {env_.scalars[value]};
  Known key(value, place.lanes, {place.indices.begin(), place.indices.end()});
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  return known_[std::move(key)] = EvaluateNew(op, place);
}

Fragment Evaluator::EvaluateNew(const ir::Op& op, const Place& place) {
  switch (op.opcode) {
    case ir::Opcode::kIota: {
      Fragment numbers;
      for (unsigned lane = 0; lane < place.lanes; ++lane) {
        llvm::Value* number = b_.CreateAdd(place.indices[0], env_.Int32(lane), "", true, true);
        numbers.push_back(b_.CreateZExt(number, b_.getInt64Ty()));
      }
      return numbers;
    }
    case ir::Opcode::kBroadcast:
      return EvaluateBroadcast(op.operands[0], place);
    case ir::Opcode::kReshape:
      return EvaluateReshape(op, place);
    case ir::Opcode::kJoin:
    case ir::Opcode::kInterleave:
      return EvaluatePair(op, place);
    case ir::Opcode::kStage:
    case ir::Opcode::kReadVar:
      return HeldTile(env_, op).Load(place);
    case ir::Opcode::kLoad:
      return EvaluateLoad(op, place);
    default:
      return EvaluateElementwise(op, place);
  }
}

Fragment Evaluator::EvaluateElementwise(const ir::Op& op, const Place& place) {
  llvm::SmallVector<Fragment, 3> operands;
  size_t lanes = 1;
  for (ir::ValueId operand : op.operands) {
    operands.push_back(Evaluate(operand, place));
    lanes = std::max(lanes, operands.back().size());
  }
  const ir::ValueId typed = op.operands[op.opcode == ir::Opcode::kSelect ? 1 : 0];
  const ir::DType dtype = env_.definitions[typed]->type.dtype;
  if (IsPackedCast(op, dtype) && lanes % 2 == 0) return PackedCast(op, operands[0]);
  Fragment result;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    llvm::SmallVector<llvm::Value*, 3> values;
    for (const Fragment& operand : operands) values.push_back(LaneOf(operand, lane));
    result.push_back(codegen::EmitElementwise(b_, op, dtype, values));
  }
  return result;
}

bool Evaluator::IsPackedCast(const ir::Op& op, ir::DType from) const {
  return env_.plan.has_packed_casts && op.opcode == ir::Opcode::kCast && from == ir::DType::kF32 &&
         (op.type.dtype == ir::DType::kF16 || op.type.dtype == ir::DType::kBF16);
}

// Two lanes at a time: one by one they take a slower unit, which powers and exponentials need.
Fragment Evaluator::PackedCast(const ir::Op& op, const Fragment& operand) const {
  const llvm::Intrinsic::ID cast = op.type.dtype == ir::DType::kF16
                                       ? llvm::Intrinsic::nvvm_ff2f16x2_rn
                                       : llvm::Intrinsic::nvvm_ff2bf16x2_rn;
  Fragment result;
  for (unsigned lane = 0; lane < operand.size(); lane += 2) {
    llvm::Value* both = b_.CreateIntrinsic(cast, {}, {operand[lane + 1], operand[lane]});
    const Fragment halves =
        UnpackWords(b_, b_.CreateBitCast(both, b_.getInt32Ty()), b_.getInt16Ty(), 2);
    result.insert(result.end(), halves.begin(), halves.end());
  }
  return result;
}

Fragment Evaluator::EvaluateOptional(ir::ValueId value, const Place& place) {
  return value == ir::kNoValue ? Fragment() : EvaluateBroadcast(value, place);
}

Fragment Evaluator::EvaluateBroadcast(ir::ValueId value, const Place& place) {
  const std::vector<int64_t>& shape = env_.definitions[value]->type.shape;
  return Evaluate(value, place.At(codegen::BeforeBroadcast(place, shape, env_.Int32(0))));
}

Fragment Evaluator::EvaluateReshape(const ir::Op& op, const Place& place) {
  const std::vector<int64_t>& from = env_.definitions[op.operands[0]]->type.shape;
  if (ir::LongSides(from) != ir::LongSides(op.type.shape)) return EvaluateMoved(op, place);
  return Evaluate(op.operands[0],
                  place.At(codegen::BeforeReshape(place, from, op.type.shape, env_.Int32(0))));
}

// A held tile's elements by their numbers in row-major order.
Fragment Evaluator::EvaluateMoved(const ir::Op& op, const Place& place) {
  const ir::Op& operand = *env_.definitions[op.operands[0]];
  const std::vector<int64_t>& from = operand.type.shape;
  const HeldTile held(env_, operand);
  int last = Place::kNoSide;
  for (size_t side = 0; side < from.size(); ++side) {
    if (from[side] > 1) last = static_cast<int>(side);
  }
  const bool is_row = place.lanes > 1 && last != Place::kNoSide && from[last] % place.lanes == 0;
  Fragment elements;
  for (unsigned lane = 0; lane < place.lanes; ++lane) {
    Place part = PlaceOf(env_, from, NumberOf(env_, op.type.shape, place, lane));
    if (is_row) {
      part.lanes = place.lanes;
      part.lane_side = last;
      return held.Load(part);
    }
    elements.push_back(held.Load(part)[0]);
  }
  return elements;
}

// Element by element, of both tiles at a place that they have; the right one is chosen.
Fragment Evaluator::EvaluatePair(const ir::Op& op, const Place& place) {
  const bool is_join = op.opcode == ir::Opcode::kJoin;
  const int64_t length = env_.definitions[op.operands[0]]->type.shape.back();
  Fragment elements;
  for (unsigned lane = 0; lane < place.lanes; ++lane) {
    Place one = place;
    if (place.lane_side != Place::kNoSide) {
      llvm::Value*& index = one.indices[place.lane_side];
      index = b_.CreateAdd(index, env_.Int32(lane), "", true, true);
    }
    one.lane_side = Place::kNoSide;
    one.lanes = 1;
    one.lane = 0;
    llvm::Value* index = one.indices.back();
    llvm::Value* is_first = nullptr;
    llvm::Value* places[2];
    if (is_join) {
      is_first = b_.CreateICmpSLT(index, env_.Int32(length));
      places[0] = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, index, env_.Int32(length - 1));
      places[1] = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax,
                                           b_.CreateSub(index, env_.Int32(length)), env_.Int32(0));
    } else {
      is_first = b_.CreateICmpEQ(b_.CreateAnd(index, env_.Int32(1)), env_.Int32(0));
      places[0] = places[1] = b_.CreateLShr(index, 1);
    }
    llvm::Value* values[2];
    for (int i = 0; i < 2; ++i) {
      one.indices.back() = places[i];
      values[i] = Evaluate(op.operands[i], one)[0];
    }
    elements.push_back(b_.CreateSelect(is_first, values[0], values[1]));
  }
  return elements;
}

Fragment Evaluator::EvaluateLoad(const ir::Op& op, const Place& place) {
  const Access& access = *loads_.at(op.result);
  const Access::Positions positions = EvaluatePositions(op, access, place);
  const Fragment fill = EvaluateOptional(op.operands[0], place);
  const Fragment mask = EvaluateOptional(op.operands[1], place);
  // Where an old value is held, places outside the tensor are done too.
  const bool is_inside_target = ir::WritesTensor(statement_.op->opcode);
  const bool is_tested =
      place.is_inside ||
      (is_inside_target && op.type.shape == statement_.type.shape && target_->Implies(access));
  return access.Load(place, is_tested, positions, mask, fill);
}

Access::Positions Evaluator::EvaluatePositions(const ir::Op& op, const Access& access,
                                               const Place& place) {
  Access::Positions positions;
  const Place part =
      place.At(codegen::AlongSides(place, access.gather_side(), access.gather_side_count()));
  for (const ir::Subscript& subscript : op.subscripts) {
    if (subscript.kind == ir::Subscript::Kind::kGather) {
      positions.push_back(EvaluateBroadcast(subscript.position, part));
    }
  }
  return positions;
}

}  // namespace phobos::compiler::nvptx
