// SPDX-License-Identifier: Apache-2.0
//
// Writes tile IR for values whose types are settled: constants are computed, equal scalar
// expressions are made once, and what is known of an integer scalar is kept (its linear form,
// whether it is one number for the whole launch). Checks no rule of the language. One thread at a
// time.
#ifndef PHOBOS_COMPILER_SEMA_VALUE_EMITTER_H_
#define PHOBOS_COMPILER_SEMA_VALUE_EMITTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/linear.h"
#include "compiler/sema/value/value.h"

namespace phobos::compiler::sema {

class Emitter {
 public:
  // `start` has params, extents and options, and no body.
  explicit Emitter(ir::Function start) : builder_(std::move(start)) {}

  // The function, its values numbered in the order of its text, products added to what they are
  // added to (accumulate.h). REQUIRES: every region is ended.
  ir::Function Finish();

  const ir::Function& function() const { return builder_.function(); }
  void SetPlace(int32_t line, int32_t column) { builder_.SetPlace(line, column); }

  Value BlockId(int32_t axis) { return Leaf(ir::Opcode::kBlockId, ir::DType::kI64, 0, axis); }
  Value GridSize(int32_t axis) { return Leaf(ir::Opcode::kGridSize, ir::DType::kI64, 0, axis); }
  Value Extent(int32_t index) { return Leaf(ir::Opcode::kExtent, ir::DType::kI64, index, 0); }
  Value ScalarParam(int32_t index);
  Value LoopIndex(int32_t loop) { return Leaf(ir::Opcode::kLoopIndex, ir::DType::kI64, loop, 0); }
  Value Iota(int64_t length);

  // REQUIRES of all that follow: values are computed ones (Value::is_computed) of the types that
  // the opcode asks for.
  Value Elementwise(ir::Opcode opcode, std::vector<Value> operands, int32_t power = 0);
  Value Cast(const Value& value, ir::DType dtype);
  Value Bitcast(const Value& value, ir::DType dtype);
  Value Broadcast(const Value& value, const std::vector<int64_t>& shape);
  // Of a tile; where nothing moves, the tile itself.
  Value Reshape(const Value& value, const std::vector<int64_t>& shape);
  Value Transpose(const Value& value, const std::vector<int32_t>& permutation);
  Value Pair(ir::Opcode opcode, const Value& first, const Value& second);
  Value CumulativeSum(const Value& value, int32_t axis);
  Value Reduce(ir::Opcode opcode, const Value& value, int32_t axis, int32_t lanes);

  Value Dot(const Value& a, const Value& b, bool is_transposed, ir::Precision precision);

  // `fill` and `mask` may be null.
  Value Load(int32_t param, std::vector<ir::Subscript> subscripts, const Value* fill,
             const Value* mask);
  void Store(int32_t param, std::vector<ir::Subscript> subscripts, const Value& value,
             const Value* mask);

  // As a statement (has_result false) it has no value.
  Value Atomic(ir::Opcode opcode, int32_t param, std::vector<ir::Subscript> subscripts,
               const std::vector<Value>& operands, bool has_result);

  ir::VarId Declare(std::string name, const Value& initial);
  Value Read(ir::VarId var);
  void Write(ir::VarId var, const Value& value);

  // Regions nest. A block may be put into a control op, spliced into the region around it, or
  // dropped.
  void BeginRegion();
  ir::Block EndRegion();
  void Splice(ir::Block block) { builder_.Splice(std::move(block)); }
  int32_t NewLoop() { return builder_.NewLoop(); }
  void For(int32_t loop, const Value& lo, const Value& hi, int64_t step, int32_t unroll,
           int32_t stages, ir::Block body);
  void While(ir::Block condition, ir::Block body);
  void If(const Value& condition, ir::Block then, ir::Block otherwise);
  void Control(ir::Opcode opcode);  // kBreak, kContinue, kReturn
  void Yield(const Value& value);
  void Assume(const Value& condition);
  // `texts`: one more than values.
  void Print(std::vector<std::string> texts, const std::vector<Value>& values);

  // REQUIRES: the value was made here.
  const ir::Type& TypeOf(ir::ValueId value) const { return builder_.TypeOf(value); }

  // The value as an operand: a constant is made where it is first needed.
  ir::ValueId Id(const Value& value);

  // `to` - `from`, when it is the same number whatever the launch. REQUIRES: i64 scalars.
  std::optional<int64_t> Difference(const Value& to, const Value& from) const;
  // Whether the value follows from constants, extents, scalar parameters and grid sizes alone.
  bool IsLaunchUniform(const Value& value) const;

 private:
  // What a scalar op computes: equal keys, equal values.
  using Key = std::tuple<ir::Opcode, ir::DType, ir::ValueId, ir::ValueId, ir::ValueId, int64_t>;
  struct Definition {
    std::optional<ir::Linear> linear;  // i64 scalars
    bool launch_uniform = false;
  };

  Value Made(ir::ValueId id);  // just now, by no other op of the same key
  Value Leaf(ir::Opcode opcode, ir::DType dtype, int32_t index, int32_t axis);
  // The op's value, made now or where it was made before in sight.
  ir::ValueId Once(const Key& key, const ir::Op& op);
  void Define(ir::ValueId id, const ir::Op& op);
  std::optional<ir::Linear> LinearOf(ir::ValueId id, const ir::Op& op) const;
  ir::Linear FormOf(const Value& value) const;
  void Plain(ir::Opcode opcode, std::vector<ir::ValueId> operands, std::vector<ir::Block> regions);

  ir::Builder builder_;
  absl::flat_hash_map<Key, ir::ValueId> made_;
  std::vector<Key> made_order_;
  std::vector<size_t> region_starts_;              // made_order_.size() at each BeginRegion
  std::vector<Definition> definitions_;            // by ValueId
  absl::flat_hash_map<ir::VarId, Value> present_;  // what variables are known to hold here
};

// A scalar op over known constants, computed. Nothing for floats and for opcodes that are not
// folded.
std::optional<ir::ConstantValue> FoldKnown(ir::Opcode opcode, const std::vector<Value>& operands);

// The operand that an integer op returns unchanged or as 0 (x + 0, x * 1, x * 0, x // 1, x % 1), if
// it is one of these.
std::optional<Value> FoldIdentity(ir::Opcode opcode, const std::vector<Value>& operands);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_VALUE_EMITTER_H_
