// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/value/emitter.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "compiler/sema/value/accumulate.h"

namespace phobos::compiler::sema {
namespace {

using ir::DType;
using ir::Opcode;

// Linear forms with more terms than this are not kept, so that no source makes them slow.
constexpr size_t kMaxTerms = 16;

bool IsUniformLeaf(Opcode opcode) {
  return opcode == Opcode::kConstant || opcode == Opcode::kGridSize || opcode == Opcode::kExtent ||
         opcode == Opcode::kScalarParam;
}

int64_t BitsOf(const ir::ConstantValue& constant) {
  if (const double* value = std::get_if<double>(&constant)) return std::bit_cast<int64_t>(*value);
  return std::get<int64_t>(constant);
}

ir::ValueId OperandOr(const std::vector<ir::ValueId>& operands, size_t i) {
  return i < operands.size() ? operands[i] : ir::kNoValue;
}

// Gives the values of `block` the next numbers, in order. Regions that were dropped leave gaps
// before.
void Renumber(ir::Block* block, std::vector<ir::ValueId>* numbers, int32_t* next) {
  auto renamed = [&](ir::ValueId old) { return old == ir::kNoValue ? old : (*numbers)[old]; };
  for (ir::Op& op : *block) {
    for (ir::ValueId& operand : op.operands) operand = renamed(operand);
    for (ir::Subscript& subscript : op.subscripts) subscript.position = renamed(subscript.position);
    for (ir::Block& region : op.regions) Renumber(&region, numbers, next);
    if (op.result != ir::kNoValue) op.result = (*numbers)[op.result] = (*next)++;
  }
}

}  // namespace

ir::Function Emitter::Finish() {
  ir::Function function = builder_.Finish();
  AccumulateDots(&function);
  std::vector<ir::ValueId> numbers(function.value_count, ir::kNoValue);
  int32_t next = 0;
  Renumber(&function.body, &numbers, &next);
  function.value_count = next;
  return function;
}

Value Emitter::Leaf(Opcode opcode, DType dtype, int32_t index, int32_t axis) {
  ir::Op op;
  op.opcode = opcode;
  op.type.dtype = dtype;
  op.index = index;
  op.axis = axis;
  const Key key(opcode, dtype, ir::kNoValue, ir::kNoValue, ir::kNoValue, index + axis);
  return Value::Computed(Once(key, op), {dtype, {}});
}

Value Emitter::ScalarParam(int32_t index) {
  return Leaf(Opcode::kScalarParam, function().params[index].dtype, index, 0);
}

Value Emitter::Iota(int64_t length) { return Made(builder_.Iota(length)); }

Value Emitter::Made(ir::ValueId id) {
  definitions_.resize(id + 1);
  if (builder_.TypeOf(id) == ir::Type{DType::kI64, {}}) {
    definitions_[id].linear = ir::Linear::Atom(id);
  }
  return Value::Computed(id, builder_.TypeOf(id));
}

Value Emitter::CumulativeSum(const Value& value, int32_t axis) {
  return Made(builder_.CumulativeSum(Id(value), axis));
}

Value Emitter::Pair(Opcode opcode, const Value& first, const Value& second) {
  const ir::ValueId id = Id(first);
  return Made(builder_.Pair(opcode, id, Id(second)));
}

Value Emitter::Reduce(Opcode opcode, const Value& value, int32_t axis, int32_t lanes) {
  return Made(builder_.Reduce(opcode, Id(value), axis, lanes));
}

Value Emitter::Dot(const Value& a, const Value& b, bool is_transposed, ir::Precision precision) {
  return Made(builder_.Dot(Id(a), Id(b), ir::kNoValue, is_transposed, precision));
}

ir::ValueId Emitter::Once(const Key& key, const ir::Op& op) {
  auto found = made_.find(key);
  if (found != made_.end()) return found->second;
  const ir::ValueId id = builder_.Append(op, true);
  Define(id, op);
  made_.emplace(key, id);
  made_order_.push_back(key);
  return id;
}

void Emitter::Define(ir::ValueId id, const ir::Op& op) {
  definitions_.resize(id + 1);
  Definition& definition = definitions_[id];
  definition.launch_uniform = IsUniformLeaf(op.opcode) || !op.operands.empty();
  for (ir::ValueId operand : op.operands) {
    definition.launch_uniform &= definitions_[operand].launch_uniform;
  }
  if (op.type == ir::Type{DType::kI64, {}}) definition.linear = LinearOf(id, op);
}

std::optional<ir::Linear> Emitter::LinearOf(ir::ValueId id, const ir::Op& op) const {
  auto form = [&](size_t i) { return definitions_[op.operands[i]].linear; };
  std::optional<ir::Linear> result;
  switch (op.opcode) {
    case Opcode::kConstant:
      return ir::Linear::Of(std::get<int64_t>(op.constant));
    case Opcode::kAdd:
      result = ir::Add(*form(0), *form(1));
      break;
    case Opcode::kSub:
      result = ir::Subtract(*form(0), *form(1));
      break;
    case Opcode::kNegate:
      result = ir::Scale(*form(0), -1);
      break;
    case Opcode::kMul:
      if (form(1)->is_constant()) {
        result = ir::Scale(*form(0), form(1)->constant);
      } else if (form(0)->is_constant()) {
        result = ir::Scale(*form(1), form(0)->constant);
      }
      break;
    default:
      break;
  }
  if (result.has_value() && result->terms.size() <= kMaxTerms) return result;
  return ir::Linear::Atom(id);
}

ir::ValueId Emitter::Id(const Value& value) {
  if (value.id != ir::kNoValue) return value.id;
  ir::Op op;
  op.opcode = Opcode::kConstant;
  op.type = value.type;
  op.constant = *value.known;
  const Key key(Opcode::kConstant, value.type.dtype, ir::kNoValue, ir::kNoValue, ir::kNoValue,
                BitsOf(*value.known));
  return Once(key, op);
}

Value Emitter::Elementwise(Opcode opcode, std::vector<Value> operands, int32_t power) {
  if (opcode != Opcode::kSelect) {
    if (std::optional<ir::ConstantValue> known = FoldKnown(opcode, operands)) {
      const bool is_comparison = opcode >= Opcode::kEqual && opcode <= Opcode::kGreaterEqual;
      return Value::Known(is_comparison ? DType::kBool : operands[0].type.dtype, *known);
    }
    if (std::optional<Value> same = FoldIdentity(opcode, operands)) return *same;
  } else if (std::optional<WideInt> choice = KnownInt(operands[0])) {
    return operands[*choice != 0 ? 1 : 2];
  }
  std::vector<ir::ValueId> ids;
  for (const Value& operand : operands) ids.push_back(Id(operand));
  const bool is_scalar = operands[0].type.is_scalar();
  if (!is_scalar) {
    return Made(builder_.Elementwise(opcode, std::move(ids), power));
  }
  ir::Op op;
  op.opcode = opcode;
  op.type = operands[opcode == Opcode::kSelect ? 1 : 0].type;
  op.type.dtype = ir::ElementwiseResult(opcode, op.type.dtype);
  op.operands = std::move(ids);
  op.index = power;
  const Key key(opcode, op.type.dtype, OperandOr(op.operands, 0), OperandOr(op.operands, 1),
                OperandOr(op.operands, 2), power);
  ir::Type type = op.type;
  return Value::Computed(Once(key, op), std::move(type));
}

Value Emitter::Cast(const Value& value, DType dtype) {
  if (value.type.dtype == dtype) return value;
  if (value.known.has_value()) {
    if (std::optional<WideInt> wide = KnownInt(value)) {
      return Value::Known(dtype, CastTo(Literal(*wide), dtype));
    }
    return Value::Known(dtype, CastTo(Literal(std::get<double>(*value.known)), dtype));
  }
  ir::Op op;
  op.opcode = Opcode::kCast;
  op.type = {dtype, value.type.shape};
  op.operands = {value.id};
  ir::Type type = op.type;
  const Key key(Opcode::kCast, dtype, value.id, ir::kNoValue, ir::kNoValue, 0);
  return Value::Computed(Once(key, op), std::move(type));
}

Value Emitter::Bitcast(const Value& value, DType dtype) {
  if (value.type.dtype == dtype) return value;
  ir::Op op;
  op.opcode = Opcode::kBitcast;
  op.type = {dtype, value.type.shape};
  op.operands = {Id(value)};
  ir::Type type = op.type;
  const Key key(Opcode::kBitcast, dtype, op.operands[0], ir::kNoValue, ir::kNoValue, 0);
  return Value::Computed(Once(key, op), std::move(type));
}

Value Emitter::Broadcast(const Value& value, const std::vector<int64_t>& shape) {
  if (value.type.shape == shape) return value;
  return Made(builder_.Broadcast(Id(value), shape));
}

Value Emitter::Reshape(const Value& value, const std::vector<int64_t>& shape) {
  if (value.type.shape == shape) return value;
  return Made(builder_.Reshape(Id(value), shape));
}

Value Emitter::Transpose(const Value& value, const std::vector<int32_t>& permutation) {
  std::vector<int64_t> shape;
  int32_t last_long = -1;
  bool moves = false;
  for (int32_t side : permutation) {
    shape.push_back(value.type.shape[side]);
    if (shape.back() == 1) continue;
    moves |= side < last_long;
    last_long = side;
  }
  if (!moves) return Reshape(value, shape);
  return Made(builder_.Transpose(Id(value), permutation));
}

Value Emitter::Load(int32_t param, std::vector<ir::Subscript> subscripts, const Value* fill,
                    const Value* mask) {
  const ir::ValueId fill_id = fill != nullptr ? Id(*fill) : ir::kNoValue;
  const ir::ValueId mask_id = mask != nullptr ? Id(*mask) : ir::kNoValue;
  return Made(builder_.Load(param, std::move(subscripts), fill_id, mask_id));
}

void Emitter::Store(int32_t param, std::vector<ir::Subscript> subscripts, const Value& value,
                    const Value* mask) {
  const ir::ValueId mask_id = mask != nullptr ? Id(*mask) : ir::kNoValue;
  builder_.Store(param, std::move(subscripts), Id(value), mask_id);
}

Value Emitter::Atomic(Opcode opcode, int32_t param, std::vector<ir::Subscript> subscripts,
                      const std::vector<Value>& operands, bool has_result) {
  std::vector<ir::ValueId> ids;
  for (const Value& operand : operands) ids.push_back(Id(operand));
  const ir::ValueId before =
      builder_.Atomic(opcode, param, std::move(subscripts), std::move(ids), has_result);
  return has_result ? Made(before) : Value();
}

ir::VarId Emitter::Declare(std::string name, const Value& initial) {
  const ir::ValueId id = Id(initial);
  const ir::VarId var = builder_.Declare(std::move(name), id);
  // Not as a known constant: what a variable holds is never one to the language.
  present_[var] = Value::Computed(id, initial.type);
  return var;
}

Value Emitter::Read(ir::VarId var) {
  auto found = present_.find(var);
  if (found != present_.end()) return found->second;
  Value value = Made(builder_.Read(var));
  present_[var] = value;
  return value;
}

void Emitter::Write(ir::VarId var, const Value& value) {
  const ir::ValueId id = Id(value);
  builder_.Write(var, id);
  present_[var] = Value::Computed(id, value.type);
}

void Emitter::BeginRegion() {
  builder_.BeginRegion();
  region_starts_.push_back(made_order_.size());
  present_.clear();
}

ir::Block Emitter::EndRegion() {
  while (made_order_.size() > region_starts_.back()) {
    made_.erase(made_order_.back());
    made_order_.pop_back();
  }
  region_starts_.pop_back();
  present_.clear();
  return builder_.EndRegion();
}

void Emitter::Plain(Opcode opcode, std::vector<ir::ValueId> operands,
                    std::vector<ir::Block> regions) {
  ir::Op op;
  op.opcode = opcode;
  op.operands = std::move(operands);
  op.regions = std::move(regions);
  builder_.Append(std::move(op), false);
}

void Emitter::For(int32_t loop, const Value& lo, const Value& hi, int64_t step, int32_t unroll,
                  int32_t stages, ir::Block body) {
  ir::Op op;
  op.opcode = Opcode::kFor;
  op.operands = {Id(lo), Id(hi), Id(Value::Known(DType::kI64, step))};
  op.index = loop;
  op.unroll = unroll;
  op.stages = stages;
  op.regions.push_back(std::move(body));
  builder_.Append(std::move(op), false);
}

void Emitter::While(ir::Block condition, ir::Block body) {
  std::vector<ir::Block> regions;
  regions.push_back(std::move(condition));
  regions.push_back(std::move(body));
  Plain(Opcode::kWhile, {}, std::move(regions));
}

void Emitter::If(const Value& condition, ir::Block then, ir::Block otherwise) {
  std::vector<ir::Block> regions;
  regions.push_back(std::move(then));
  regions.push_back(std::move(otherwise));
  const ir::ValueId id = Id(condition);
  Plain(Opcode::kIf, {id}, std::move(regions));
}

void Emitter::Control(Opcode opcode) { Plain(opcode, {}, {}); }

void Emitter::Yield(const Value& value) {
  const ir::ValueId id = Id(value);
  Plain(Opcode::kYield, {id}, {});
}

void Emitter::Assume(const Value& condition) {
  const ir::ValueId id = Id(condition);
  Plain(Opcode::kAssume, {id}, {});
}

void Emitter::Print(std::vector<std::string> texts, const std::vector<Value>& values) {
  std::vector<ir::ValueId> ids;
  for (const Value& value : values) ids.push_back(Id(value));
  builder_.Print(std::move(texts), std::move(ids));
}

ir::Linear Emitter::FormOf(const Value& value) const {
  if (value.id == ir::kNoValue) return ir::Linear::Of(std::get<int64_t>(*value.known));
  return *definitions_[value.id].linear;
}

std::optional<int64_t> Emitter::Difference(const Value& to, const Value& from) const {
  std::optional<ir::Linear> difference = ir::Subtract(FormOf(to), FormOf(from));
  if (!difference.has_value() || !difference->is_constant()) return std::nullopt;
  return difference->constant;
}

bool Emitter::IsLaunchUniform(const Value& value) const {
  return value.id == ir::kNoValue || definitions_[value.id].launch_uniform;
}

}  // namespace phobos::compiler::sema
