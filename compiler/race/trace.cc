// SPDX-License-Identifier: Apache-2.0
#include "compiler/race/trace.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/rules/comparison.h"

namespace phobos::compiler::race {
namespace {

using ir::DType;
using ir::Opcode;

using Known = std::optional<int64_t>;

// Masks of larger tiles are not evaluated, element by element as they are.
constexpr int64_t kMaxMaskElements = 4096;
// Ops inside one another under a mask: bounds the stack.
constexpr int kMaxMaskDepth = 64;

int64_t Wrap(DType dtype, __int128 value) {
  if (dtype == DType::kBool) return value != 0;
  const int bits = ir::BitWidth(dtype);
  uint64_t low = static_cast<uint64_t>(value);
  if (bits == 64) return static_cast<int64_t>(low);
  low &= (uint64_t{1} << bits) - 1;
  if (ir::IsSigned(dtype) && (low >> (bits - 1)) != 0) low |= ~uint64_t{0} << bits;
  return static_cast<int64_t>(low);
}

// The number that the bits stand for.
__int128 NumberOf(DType dtype, int64_t bits) {
  return dtype == DType::kU64 ? static_cast<__int128>(static_cast<uint64_t>(bits)) : bits;
}

// An op over two integers of one type.
Known Binary(Opcode opcode, DType dtype, int64_t left, int64_t right) {
  const __int128 a = NumberOf(dtype, left);
  const __int128 b = NumberOf(dtype, right);
  switch (opcode) {
    case Opcode::kAdd:
      return Wrap(dtype, a + b);
    case Opcode::kSub:
      return Wrap(dtype, a - b);
    case Opcode::kMul:
      return Wrap(dtype, static_cast<__int128>(static_cast<unsigned __int128>(a) *
                                               static_cast<unsigned __int128>(b)));
    case Opcode::kFloorDiv:
      return Wrap(dtype, FloorDivide(a, b));
    case Opcode::kMod:
      return Wrap(dtype, FloorModulo(a, b));
    case Opcode::kMinimum:
      return Wrap(dtype, std::min(a, b));
    case Opcode::kMaximum:
      return Wrap(dtype, std::max(a, b));
    case Opcode::kAnd:
      return left & right;
    case Opcode::kOr:
      return left | right;
    case Opcode::kXor:
      return left ^ right;
    default:
      return ir::Compared(opcode, a, b);
  }
}

class Tracer {
 public:
  Tracer(const ir::Function& function, const Launch& launch, const std::array<int64_t, 3>& block,
         int64_t* budget)
      : function_(function),
        launch_(launch),
        block_(block),
        budget_(*budget),
        ops_(function.value_count),
        values_(function.value_count),
        vars_(function.vars.size()),
        loop_index_(function.loop_count) {}

  std::optional<std::vector<Touch>> Run() {
    Follow(function_.body);
    if (assumption_fails_) return std::nullopt;
    return std::move(touches_);
  }

 private:
  // kLost: where control goes from here depends on what is not followed.
  enum class Flow { kNext, kBreak, kContinue, kReturn, kLost };

  Flow Follow(const ir::Block& block) {
    for (const ir::Op& op : block) {
      if (--budget_ < 0) return Flow::kLost;
      const Flow flow = FollowOp(op);
      if (flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
  }

  Flow FollowOp(const ir::Op& op) {
    if (op.result != ir::kNoValue) {
      ops_[op.result] = &op;
      if (ir::IsAccess(op.opcode)) Record(op);
      values_[op.result] = op.type.is_scalar() ? Evaluate(op) : std::nullopt;
      return Flow::kNext;
    }
    if (ir::WritesTensor(op.opcode)) {
      Record(op);
      return Flow::kNext;
    }
    switch (op.opcode) {
      case Opcode::kDeclareVar:
      case Opcode::kWriteVar:
        vars_[op.index] = values_[op.operands[0]];
        return Flow::kNext;
      case Opcode::kAssume:
        assumption_fails_ |= !values_[op.operands[0]].value_or(0);
        return assumption_fails_ ? Flow::kReturn : Flow::kNext;
      case Opcode::kBreak:
        return Flow::kBreak;
      case Opcode::kContinue:
        return Flow::kContinue;
      case Opcode::kReturn:
        return Flow::kReturn;
      case Opcode::kIf: {
        const Known condition = values_[op.operands[0]];
        if (!condition.has_value()) return Skip(op);
        return Follow(op.regions[*condition != 0 ? 0 : 1]);
      }
      case Opcode::kFor:
        return FollowFor(op);
      case Opcode::kWhile:
        return FollowWhile(op);
      default:
        return Flow::kNext;  // kYield: read by FollowWhile
    }
  }

  Flow FollowFor(const ir::Op& op) {
    const Known lo = values_[op.operands[0]];
    const Known hi = values_[op.operands[1]];
    const int64_t step = *values_[op.operands[2]];
    if (!lo.has_value() || !hi.has_value()) return Skip(op);
    for (__int128 i = *lo; step > 0 ? i < *hi : i > *hi; i += step) {
      if (--budget_ < 0) return Flow::kLost;  // a body may hold no op
      loop_index_[op.index] = static_cast<int64_t>(i);
      const Flow flow = Follow(op.regions[0]);
      if (flow == Flow::kBreak) break;
      if (flow == Flow::kReturn || flow == Flow::kLost) return flow;
    }
    return Flow::kNext;
  }

  Flow FollowWhile(const ir::Op& op) {
    while (true) {
      const Flow condition_flow = Follow(op.regions[0]);
      if (condition_flow != Flow::kNext) return condition_flow;
      const Known condition = values_[op.regions[0].back().operands[0]];
      if (!condition.has_value()) return Skip(op);
      if (*condition == 0) return Flow::kNext;
      const Flow flow = Follow(op.regions[1]);
      if (flow == Flow::kBreak) return Flow::kNext;
      if (flow == Flow::kReturn || flow == Flow::kLost) return flow;
    }
  }

  // Passes an op whose regions may or may not be executed: what they may write is not known after
  // it.
  Flow Skip(const ir::Op& op) {
    bool leaves = false;
    for (const ir::Block& region : op.regions) Forget(region, &leaves);
    return leaves ? Flow::kLost : Flow::kNext;
  }

  void Forget(const ir::Block& block, bool* leaves) {
    for (const ir::Op& op : block) {
      if (op.opcode == Opcode::kWriteVar || op.opcode == Opcode::kDeclareVar) {
        vars_[op.index] = std::nullopt;
      }
      *leaves |= op.opcode == Opcode::kBreak || op.opcode == Opcode::kContinue ||
                 op.opcode == Opcode::kReturn;
      for (const ir::Block& region : op.regions) Forget(region, leaves);
    }
  }

  // A scalar.
  Known Evaluate(const ir::Op& op) {
    switch (op.opcode) {
      case Opcode::kBlockId:
        return block_[op.axis];
      case Opcode::kGridSize:
        return launch_.grid[op.axis];
      case Opcode::kExtent:
        return launch_.extents[op.index];
      case Opcode::kScalarParam:
        return launch_.scalars[op.index];
      case Opcode::kLoopIndex:
        return loop_index_[op.index];
      case Opcode::kReadVar:
        return vars_[op.index];
      default:
        return Apply(op, [this](ir::ValueId value) { return values_[value]; });
    }
  }

  // An element-wise op, its operands given by `operand`.
  template <typename Operand>
  Known Apply(const ir::Op& op, Operand operand) {
    if (op.opcode == Opcode::kConstant) {
      const int64_t* bits = std::get_if<int64_t>(&op.constant);
      return bits != nullptr ? Known(*bits) : std::nullopt;
    }
    Known v[3];
    for (size_t i = 0; i < op.operands.size() && i < 3; ++i) {
      if (op.operands[i] == ir::kNoValue) return std::nullopt;
      v[i] = operand(op.operands[i]);
    }
    if (op.opcode == Opcode::kSelect && v[0].has_value()) return *v[0] != 0 ? v[1] : v[2];
    for (size_t i = 0; i < op.operands.size() && i < 3; ++i) {
      if (!v[i].has_value()) return std::nullopt;
    }
    if (op.operands.empty()) return std::nullopt;
    const DType dtype = ops_[op.operands[0]]->type.dtype;
    const DType result = op.type.dtype;
    if (ir::IsFloat(dtype) || ir::IsFloat(result)) return std::nullopt;
    switch (op.opcode) {
      case Opcode::kBroadcast:
        return v[0];
      case Opcode::kCast:
        return result == DType::kBool ? int64_t{*v[0] != 0} : Wrap(result, NumberOf(dtype, *v[0]));
      case Opcode::kNegate:
        return Wrap(dtype, -NumberOf(dtype, *v[0]));
      case Opcode::kAbs:
        return Wrap(dtype, *v[0] < 0 ? -NumberOf(dtype, *v[0]) : NumberOf(dtype, *v[0]));
      case Opcode::kNot:
        return dtype == DType::kBool ? int64_t{*v[0] == 0} : Wrap(dtype, ~NumberOf(dtype, *v[0]));
      default:
        return op.operands.size() == 2 ? Binary(op.opcode, dtype, *v[0], *v[1]) : std::nullopt;
    }
  }

  // Element i of a scalar or of a tile of rank 1.
  Known ElementOf(ir::ValueId value, int64_t i, int depth) {
    const ir::Op& op = *ops_[value];
    if (op.type.is_scalar()) return values_[value];
    if (depth > kMaxMaskDepth || --budget_ < 0 || op.type.shape.size() != 1) return std::nullopt;
    if (op.opcode == Opcode::kIota) return i;
    if (op.opcode != Opcode::kBroadcast && !ir::IsElementwise(op.opcode)) return std::nullopt;
    return Apply(op, [&](ir::ValueId operand) {
      const int64_t side = ops_[operand]->type.elements();
      return ElementOf(operand, side == 1 ? 0 : i, depth + 1);
    });
  }

  void Record(const ir::Op& op) {
    const ir::Param& param = function_.params[op.index];
    if (!param.is_written) return;
    Touch touch;
    touch.op = &op;
    int32_t tile_dim = -1;
    int64_t tile_start = 0;
    for (size_t d = 0; d < op.subscripts.size(); ++d) {
      const ir::Subscript& subscript = op.subscripts[d];
      if (subscript.kind == ir::Subscript::Kind::kGather) return;
      const Known position = values_[subscript.position];
      if (!position.has_value()) return;
      const bool is_slice = subscript.kind == ir::Subscript::Kind::kSlice;
      const int64_t length = is_slice ? subscript.length : 1;
      const ir::Dim& dim = param.dims[d];
      const int64_t extent = dim.extent >= 0 ? launch_.extents[dim.extent] : dim.literal;
      if (is_slice) {
        tile_dim = static_cast<int32_t>(d);
        tile_start = *position;
      }
      Interval inside{std::max<int64_t>(*position, 0), 0};
      inside.hi = UpperBound(static_cast<__int128>(*position) + length - 1);
      inside.hi = std::min(inside.hi, extent - 1);
      if (inside.empty()) return;
      touch.box.push_back(inside);
    }
    const ir::ValueId mask = ir::MaskOf(op);
    if (mask != ir::kNoValue && !ApplyMask(mask, tile_dim, tile_start, &touch)) return;
    touches_.push_back(std::move(touch));
  }

  // False when the mask leaves nothing, or nothing that is known.
  bool ApplyMask(ir::ValueId mask, int32_t tile_dim, int64_t tile_start, Touch* touch) {
    const ir::Type& type = ops_[mask]->type;
    if (type.is_scalar()) return values_[mask].value_or(0) != 0;
    if (type.shape.size() != 1 || type.elements() > kMaxMaskElements) return false;
    touch->masked_dim = tile_dim;
    bool any = false;
    for (int64_t p = touch->box[tile_dim].lo; p <= touch->box[tile_dim].hi; ++p) {
      touch->mask.push_back(ElementOf(mask, p - tile_start, 0).value_or(0) != 0);
      any |= touch->mask.back();
    }
    return any;
  }

  const ir::Function& function_;
  const Launch& launch_;
  const std::array<int64_t, 3>& block_;
  int64_t& budget_;
  std::vector<const ir::Op*> ops_;  // by ValueId
  std::vector<Known> values_;       // scalars, by ValueId
  std::vector<Known> vars_;
  std::vector<int64_t> loop_index_;
  std::vector<Touch> touches_;
  bool assumption_fails_ = false;
};

}  // namespace

std::optional<std::vector<Touch>> TraceBlock(const ir::Function& function, const Launch& launch,
                                             const std::array<int64_t, 3>& block, int64_t* budget) {
  return Tracer(function, launch, block, budget).Run();
}

}  // namespace phobos::compiler::race
