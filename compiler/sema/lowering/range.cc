// SPDX-License-Identifier: Apache-2.0
//
// Ranges of loops.
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/lowering/checker.h"

namespace phobos::compiler::sema {
namespace {

using ir::DType;
using ir::Opcode;

constexpr int64_t kMaxUnroll = 1024;
constexpr int64_t kMaxStages = 64;

// The axis of ph.ctx.PART.x, y or z; -1: this is something else.
int AxisOf(const ast::Expr& expr, std::string_view part) {
  const auto* name = std::get_if<ast::LanguageName>(&expr.node);
  if (name == nullptr || name->path.size() != 3 || name->path[0] != "ctx") return -1;
  return name->path[1] == part ? name->path[2][0] - 'x' : -1;
}

// range(ph.ctx.block.x, hi, ph.ctx.grid.x), by which blocks share tiles out: in these ops, by which
// the race check knows it again.
void CountStrides(Emitter& emitter, const Value& step, Range* range) {
  const auto op = [&emitter](Opcode opcode, const Value& a, const Value& b) {
    return emitter.Elementwise(opcode, {a, b});
  };
  const Value zero = Value::Known(DType::kI64, int64_t{0});
  const Value one = Value::Known(DType::kI64, int64_t{1});
  const Value runs = op(Opcode::kLess, range->lo, range->hi);
  const Value rest = op(Opcode::kSub, op(Opcode::kSub, range->hi, range->lo), one);
  const Value turns = op(Opcode::kAdd, op(Opcode::kFloorDiv, rest, step), one);
  range->place = Value::Tuple({range->lo, step});
  range->lo = zero;
  range->hi = emitter.Elementwise(Opcode::kSelect, {runs, turns, zero});
}

// A step that only the launch knows: the turns are counted, and the index is worked out from the
// turn. The count begins at the lowest i64, so that no number of turns is too large: place(t) =
// lo + (t - lowest) * step. A step of 0 has no turn.
void CountTurns(Emitter& emitter, const Value& step, Range* range) {
  const auto op = [&emitter](Opcode opcode, const Value& a, const Value& b) {
    return emitter.Elementwise(opcode, {a, b});
  };
  const auto choose = [&emitter](const Value& c, const Value& a, const Value& b) {
    return emitter.Elementwise(Opcode::kSelect, {c, a, b});
  };
  const Value zero = Value::Known(DType::kI64, int64_t{0});
  const Value one = Value::Known(DType::kU64, int64_t{1});
  const Value rises = op(Opcode::kGreater, step, zero);
  const Value falls = op(Opcode::kLess, step, zero);
  const Value runs =
      op(Opcode::kOr, op(Opcode::kAnd, rises, op(Opcode::kLess, range->lo, range->hi)),
         op(Opcode::kAnd, falls, op(Opcode::kGreater, range->lo, range->hi)));
  const Value distance =
      choose(rises, op(Opcode::kSub, range->hi, range->lo), op(Opcode::kSub, range->lo, range->hi));
  const Value stride = choose(rises, step, emitter.Elementwise(Opcode::kNegate, {step}));
  const Value last =
      op(Opcode::kFloorDiv, op(Opcode::kSub, emitter.Cast(distance, DType::kU64), one),
         emitter.Cast(stride, DType::kU64));
  const Value turns = emitter.Cast(op(Opcode::kAdd, last, one), DType::kI64);
  const Value lowest = Value::Known(DType::kI64, std::numeric_limits<int64_t>::min());
  const Value first = op(Opcode::kSub, range->lo, op(Opcode::kMul, lowest, step));
  range->place = Value::Tuple({first, step});
  range->lo = lowest;
  range->hi = choose(runs, op(Opcode::kAdd, lowest, turns), lowest);
}

}  // namespace

absl::Status Checker::CheckRange(const ast::Call& call, Span span, Range* range) {
  std::vector<Operand> bounds;
  for (const ast::ExprPtr& argument : call.positional) {
    ASSIGN_OR_RETURN(Operand operand, EvalNumber(*argument));
    bounds.push_back(std::move(operand));
  }
  if (bounds.empty() || bounds.size() > 3) {
    return Error(span, "a range takes one to three numbers",
                 "write ph.range(n), ph.range(lo, hi) or ph.range(lo, hi, step)");
  }
  if (bounds.size() == 1) bounds.insert(bounds.begin(), Operand{Value::OfInt(0), span});
  ASSIGN_OR_RETURN(range->lo, ToIndex(bounds[0], "the start of a range"));
  ASSIGN_OR_RETURN(range->hi, ToIndex(bounds[1], "the end of a range"));
  if (bounds.size() == 3) {
    ASSIGN_OR_RETURN(Value by, ToIndex(bounds[2], "the step of a range"));
    std::optional<WideInt> known = KnownInt(by);
    const int axis = AxisOf(*call.positional[2], "grid");
    if (axis >= 0 && axis == AxisOf(*call.positional[0], "block")) {
      CountStrides(emitter_, by, range);
    } else if (!known.has_value()) {
      CountTurns(emitter_, by, range);
    }
    if (known.has_value() && *known == 0) {
      return Error(bounds[2].span, "a range with step 0 never ends", "use a step of 1 or more");
    }
    if (known.has_value()) range->step = static_cast<int64_t>(*known);
  }
  const bool is_plain = std::holds_alternative<ast::Name>(call.callee->node);
  for (const ast::KeywordArgument& argument : call.keyword) {
    const bool is_unroll = argument.name == "unroll";
    if (is_plain || (!is_unroll && argument.name != "stages")) {
      return Error(argument.name_span, Concat("a range takes no argument ", argument.name),
                   "ph.range takes unroll= and stages=, plain range neither");
    }
    ASSIGN_OR_RETURN(Operand operand, EvalOperand(*argument.value));
    ASSIGN_OR_RETURN(int64_t hint,
                     ConstantInt(operand, 1, is_unroll ? kMaxUnroll : kMaxStages, argument.name));
    (is_unroll ? range->unroll : range->stages) = static_cast<int32_t>(hint);
  }
  return absl::OkStatus();
}

}  // namespace phobos::compiler::sema
