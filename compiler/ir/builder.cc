// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/builder.h"

#include <cassert>
#include <utility>

#include "compiler/ir/shape.h"

namespace phobos::compiler::ir {
namespace {

// Sets is_read and is_written of the parameters that `block` loads and stores.
void MarkAccesses(const Block& block, std::vector<Param>* params) {
  for (const Op& op : block) {
    if (IsAccess(op.opcode)) {
      (*params)[op.index].is_read |= op.opcode != Opcode::kStore;
      (*params)[op.index].is_written |= op.opcode != Opcode::kLoad;
    }
    for (const Block& region : op.regions) MarkAccesses(region, params);
  }
}

}  // namespace

Subscript ElementAt(ValueId position) { return {Subscript::Kind::kElement, position, 1}; }

Subscript SliceAt(ValueId position, int64_t length) {
  return {Subscript::Kind::kSlice, position, length};
}

Subscript GatherAt(ValueId positions) { return {Subscript::Kind::kGather, positions, 1}; }

Builder::Builder(Function function) : function_(std::move(function)) { open_.emplace_back(); }

Function Builder::Finish() {
  assert(open_.size() == 1);
  function_.body = std::move(open_.back());
  open_.clear();
  for (Param& param : function_.params) param.is_read = param.is_written = false;
  MarkAccesses(function_.body, &function_.params);
  return std::move(function_);
}

int32_t Builder::AddTensor(std::string name, DType dtype, std::vector<Dim> dims) {
  Param param;
  param.name = std::move(name);
  param.dtype = dtype;
  param.is_tensor = true;
  param.dims = std::move(dims);
  function_.params.push_back(std::move(param));
  return static_cast<int32_t>(function_.params.size()) - 1;
}

int32_t Builder::AddScalar(std::string name, DType dtype) {
  Param param;
  param.name = std::move(name);
  param.dtype = dtype;
  function_.params.push_back(std::move(param));
  return static_cast<int32_t>(function_.params.size()) - 1;
}

int32_t Builder::AddExtent(std::string name, int64_t multiple) {
  function_.extents.push_back({std::move(name), multiple});
  return static_cast<int32_t>(function_.extents.size()) - 1;
}

void Builder::SetPlace(int32_t line, int32_t column) {
  line_ = line;
  column_ = column;
}

ValueId Builder::Append(Op op, bool has_result) {
  op.line = line_;
  op.column = column_;
  ValueId result = kNoValue;
  if (has_result) {
    result = function_.value_count++;
    op.result = result;
    types_.push_back(op.type);
  }
  open_.back().push_back(std::move(op));
  return result;
}

ValueId Builder::AppendTyped(Opcode opcode, Type type, std::vector<ValueId> operands,
                             int32_t index) {
  Op op;
  op.opcode = opcode;
  op.type = std::move(type);
  op.operands = std::move(operands);
  op.index = index;
  return Append(std::move(op), true);
}

void Builder::AppendPlain(Opcode opcode, std::vector<ValueId> operands) {
  Op op;
  op.opcode = opcode;
  op.operands = std::move(operands);
  Append(std::move(op), false);
}

ValueId Builder::Constant(DType dtype, ConstantValue value) {
  Op op;
  op.opcode = Opcode::kConstant;
  op.type.dtype = dtype;
  op.constant = value;
  return Append(std::move(op), true);
}

ValueId Builder::BlockId(int32_t axis) {
  Op op;
  op.opcode = Opcode::kBlockId;
  op.axis = axis;
  return Append(std::move(op), true);
}

ValueId Builder::GridSize(int32_t axis) {
  Op op;
  op.opcode = Opcode::kGridSize;
  op.axis = axis;
  return Append(std::move(op), true);
}

ValueId Builder::Extent(int32_t index) { return AppendTyped(Opcode::kExtent, Type{}, {}, index); }

ValueId Builder::ScalarParam(int32_t index) {
  return AppendTyped(Opcode::kScalarParam, Type{function_.params[index].dtype, {}}, {}, index);
}

ValueId Builder::Iota(int64_t length) {
  return AppendTyped(Opcode::kIota, Type{DType::kI64, {length}}, {});
}

ValueId Builder::Broadcast(ValueId value, std::vector<int64_t> shape) {
  return AppendTyped(Opcode::kBroadcast, Type{TypeOf(value).dtype, std::move(shape)}, {value});
}

ValueId Builder::Reshape(ValueId value, std::vector<int64_t> shape) {
  return AppendTyped(Opcode::kReshape, Type{TypeOf(value).dtype, std::move(shape)}, {value});
}

ValueId Builder::Transpose(ValueId value, std::vector<int32_t> permutation) {
  Op op;
  op.opcode = Opcode::kTranspose;
  op.type.dtype = TypeOf(value).dtype;
  for (int32_t side : permutation) op.type.shape.push_back(TypeOf(value).shape[side]);
  op.operands = {value};
  op.permutation = std::move(permutation);
  return Append(std::move(op), true);
}

ValueId Builder::Pair(Opcode opcode, ValueId first, ValueId second) {
  Type type = TypeOf(first);
  type.shape.back() += TypeOf(second).shape.back();
  return AppendTyped(opcode, std::move(type), {first, second});
}

ValueId Builder::Reduce(Opcode opcode, ValueId value, int32_t axis, int32_t lanes) {
  Op op;
  op.opcode = opcode;
  op.type = TypeOf(value);
  op.type.shape.erase(op.type.shape.begin() + axis);
  if (GivesPlace(opcode)) op.type.dtype = DType::kI32;
  op.operands = {value};
  op.index = lanes;
  op.axis = axis;
  return Append(std::move(op), true);
}

ValueId Builder::CumulativeSum(ValueId value, int32_t axis) {
  Op op;
  op.opcode = Opcode::kCumulativeSum;
  op.type = TypeOf(value);
  op.operands = {value};
  op.axis = axis;
  return Append(std::move(op), true);
}

ValueId Builder::Dot(ValueId a, ValueId b, ValueId acc, bool is_transposed, Precision precision) {
  Op op;
  op.opcode = Opcode::kDot;
  op.type = TypeOf(a);
  op.type.dtype = DotResult(op.type.dtype).value_or(op.type.dtype);
  op.type.shape = DotShape(TypeOf(a).shape, TypeOf(b).shape, is_transposed);
  op.operands = {a, b, acc};
  op.index = static_cast<int32_t>(precision);
  op.axis = is_transposed ? 1 : 0;
  return Append(std::move(op), true);
}

ValueId Builder::Elementwise(Opcode opcode, std::vector<ValueId> operands, int32_t power) {
  Type type = TypeOf(operands[opcode == Opcode::kSelect ? 1 : 0]);
  type.dtype = ElementwiseResult(opcode, type.dtype);
  return AppendTyped(opcode, std::move(type), std::move(operands), power);
}

ValueId Builder::Cast(ValueId value, DType dtype) {
  return AppendTyped(Opcode::kCast, Type{dtype, TypeOf(value).shape}, {value});
}

ValueId Builder::Bitcast(ValueId value, DType dtype) {
  return AppendTyped(Opcode::kBitcast, Type{dtype, TypeOf(value).shape}, {value});
}

ValueId Builder::Load(int32_t param, std::vector<Subscript> subscripts, ValueId fill,
                      ValueId mask) {
  Op op;
  op.opcode = Opcode::kLoad;
  op.type.dtype = function_.params[param].dtype;
  op.type.shape =
      SubscriptShape(subscripts, [this](ValueId v) { return TypeOf(v).shape; }).value_or(Shape{});
  op.operands = {fill, mask};
  op.index = param;
  op.subscripts = std::move(subscripts);
  return Append(std::move(op), true);
}

void Builder::Store(int32_t param, std::vector<Subscript> subscripts, ValueId value, ValueId mask) {
  Op op;
  op.opcode = Opcode::kStore;
  op.type = TypeOf(value);
  op.operands = {value, mask};
  op.index = param;
  op.subscripts = std::move(subscripts);
  Append(std::move(op), false);
}

ValueId Builder::Atomic(Opcode opcode, int32_t param, std::vector<Subscript> subscripts,
                        std::vector<ValueId> operands, bool has_result) {
  Op op;
  op.opcode = opcode;
  op.type = TypeOf(operands[0]);
  op.operands = std::move(operands);
  op.index = param;
  op.subscripts = std::move(subscripts);
  return Append(std::move(op), has_result);
}

void Builder::Print(std::vector<std::string> texts, std::vector<ValueId> values) {
  Op op;
  op.opcode = Opcode::kPrint;
  op.operands = std::move(values);
  op.texts = std::move(texts);
  Append(std::move(op), false);
}

VarId Builder::Declare(std::string name, ValueId initial) {
  VarId var = static_cast<VarId>(function_.vars.size());
  function_.vars.push_back({std::move(name), TypeOf(initial)});
  Op op;
  op.opcode = Opcode::kDeclareVar;
  op.operands = {initial};
  op.index = var;
  Append(std::move(op), false);
  return var;
}

ValueId Builder::Read(VarId var) {
  return AppendTyped(Opcode::kReadVar, function_.vars[var].type, {}, var);
}

void Builder::Write(VarId var, ValueId value) {
  Op op;
  op.opcode = Opcode::kWriteVar;
  op.operands = {value};
  op.index = var;
  Append(std::move(op), false);
}

Block Builder::EndRegion() {
  assert(open_.size() > 1);
  Block block = std::move(open_.back());
  open_.pop_back();
  return block;
}

void Builder::Splice(Block block) {
  for (Op& op : block) open_.back().push_back(std::move(op));
}

void Builder::For(ValueId lo, ValueId hi, int64_t step, const std::function<void(ValueId)>& body,
                  int32_t unroll) {
  Op op;
  op.opcode = Opcode::kFor;
  op.operands = {lo, hi, Int(step)};
  op.index = NewLoop();
  op.unroll = unroll;
  BeginRegion();
  body(AppendTyped(Opcode::kLoopIndex, Type{}, {}, op.index));
  op.regions.push_back(EndRegion());
  Append(std::move(op), false);
}

void Builder::While(const std::function<ValueId()>& condition, const std::function<void()>& body) {
  Op op;
  op.opcode = Opcode::kWhile;
  BeginRegion();
  AppendPlain(Opcode::kYield, {condition()});
  op.regions.push_back(EndRegion());
  BeginRegion();
  body();
  op.regions.push_back(EndRegion());
  Append(std::move(op), false);
}

void Builder::If(ValueId condition, const std::function<void()>& then,
                 const std::function<void()>& otherwise) {
  Op op;
  op.opcode = Opcode::kIf;
  op.operands = {condition};
  BeginRegion();
  then();
  op.regions.push_back(EndRegion());
  BeginRegion();
  if (otherwise) otherwise();
  op.regions.push_back(EndRegion());
  Append(std::move(op), false);
}

void Builder::Break() { AppendPlain(Opcode::kBreak); }
void Builder::Continue() { AppendPlain(Opcode::kContinue); }
void Builder::Return() { AppendPlain(Opcode::kReturn); }
void Builder::Assume(ValueId condition) { AppendPlain(Opcode::kAssume, {condition}); }

}  // namespace phobos::compiler::ir
