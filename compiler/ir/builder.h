// SPDX-License-Identifier: Apache-2.0
//
// Makes a Function op by op: numbers the values, keeps their types, gives each result the type its
// opcode implies. It checks nothing (verifier.h does) and folds nothing. One thread at a time.
#ifndef PHOBOS_COMPILER_IR_BUILDER_H_
#define PHOBOS_COMPILER_IR_BUILDER_H_

#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::ir {

class Builder {
 public:
  // Starts from a function without a body: its params, extents and options are kept.
  explicit Builder(Function function);

  // The function with its body; is_read and is_written of its params say what the body does.
  // REQUIRES: every region that was begun is ended. The builder is spent.
  Function Finish();

  const Function& function() const { return function_; }
  // REQUIRES: value came from this builder.
  const Type& TypeOf(ValueId value) const { return types_[value]; }

  // Each returns the new parameter's or extent's index.
  int32_t AddTensor(std::string name, DType dtype, std::vector<Dim> dims);
  int32_t AddScalar(std::string name, DType dtype);
  int32_t AddExtent(std::string name, int64_t multiple = 1);

  // Source place of the ops that follow.
  void SetPlace(int32_t line, int32_t column);

  // Appends `op` at the present place. With has_result, gives it a new value and returns that, else
  // kNoValue.
  ValueId Append(Op op, bool has_result);

  ValueId Constant(DType dtype, ConstantValue value);
  ValueId Int(int64_t value) { return Constant(DType::kI64, value); }
  ValueId BlockId(int32_t axis);
  ValueId GridSize(int32_t axis);
  ValueId Extent(int32_t index);
  ValueId ScalarParam(int32_t index);
  ValueId Iota(int64_t length);
  ValueId Broadcast(ValueId value, std::vector<int64_t> shape);
  ValueId Reshape(ValueId value, std::vector<int64_t> shape);
  ValueId Transpose(ValueId value, std::vector<int32_t> permutation);
  // kJoin, kInterleave.
  ValueId Pair(Opcode opcode, ValueId first, ValueId second);
  // A reduction of side `axis` by `lanes` partials.
  ValueId Reduce(Opcode opcode, ValueId value, int32_t axis, int32_t lanes);
  ValueId CumulativeSum(ValueId value, int32_t axis);
  // The product of a and b, added to `acc`; b as [N, K] where it is transposed.
  ValueId Dot(ValueId a, ValueId b, ValueId acc, bool is_transposed, Precision precision);
  // Element-wise: the result has the type of the first operand, by ElementwiseResult; kSelect that
  // of its second operand. `power` is for kPowInt.
  ValueId Elementwise(Opcode opcode, std::vector<ValueId> operands, int32_t power = 0);
  ValueId Cast(ValueId value, DType dtype);
  ValueId Bitcast(ValueId value, DType dtype);
  // The shape follows from the subscripts.
  ValueId Load(int32_t param, std::vector<Subscript> subscripts, ValueId fill = kNoValue,
               ValueId mask = kNoValue);
  void Store(int32_t param, std::vector<Subscript> subscripts, ValueId value,
             ValueId mask = kNoValue);

  // kNoValue without a result.
  ValueId Atomic(Opcode opcode, int32_t param, std::vector<Subscript> subscripts,
                 std::vector<ValueId> operands, bool has_result);

  void Print(std::vector<std::string> texts, std::vector<ValueId> values);

  // A variable that starts as `initial`.
  VarId Declare(std::string name, ValueId initial);
  ValueId Read(VarId var);
  void Write(VarId var, ValueId value);

  // Regions: what is appended between Begin and End forms the block that End returns.
  void BeginRegion() { open_.emplace_back(); }
  Block EndRegion();
  // Appends the ops of a block that EndRegion returned.
  void Splice(Block block);
  int32_t NewLoop() { return function_.loop_count++; }

  // A loop whose body is made by `body`, which is given the loop's index. `step` must not be 0.
  void For(ValueId lo, ValueId hi, int64_t step, const std::function<void(ValueId)>& body,
           int32_t unroll = 1);
  // `condition` returns the bool scalar to go on by.
  void While(const std::function<ValueId()>& condition, const std::function<void()>& body);
  void If(ValueId condition, const std::function<void()>& then,
          const std::function<void()>& otherwise = nullptr);
  void Break();
  void Continue();
  void Return();
  void Assume(ValueId condition);

 private:
  ValueId AppendTyped(Opcode opcode, Type type, std::vector<ValueId> operands, int32_t index = 0);
  void AppendPlain(Opcode opcode, std::vector<ValueId> operands = {});

  Function function_;
  std::vector<Block> open_;  // the innermost last
  std::vector<Type> types_;  // by ValueId
  int32_t line_ = 0;
  int32_t column_ = 0;
};

// The subscripts of the IR, short to write.
Subscript ElementAt(ValueId position);
Subscript SliceAt(ValueId position, int64_t length);
Subscript GatherAt(ValueId positions);

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_BUILDER_H_
