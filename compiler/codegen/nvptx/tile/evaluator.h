// SPDX-License-Identifier: Apache-2.0
//
// What a thread computes of tiles at a place of a statement's tile: values from loads, held tiles
// and scalars, each once a place. One statement, while it is emitted; one thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_EVALUATOR_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_EVALUATOR_H_

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/codegen/nvptx/tile/access.h"
#include "compiler/codegen/nvptx/tile/environment.h"
#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

class Evaluator {
 public:
  // Both must outlive this.
  Evaluator(Environment& environment, const Statement& statement);

  // Emits what loads need before the first place. i1: all slices of the statement, that of the
  // tensor it writes too, are inside their tensors and vectors are aligned; null: they are.
  llvm::Value* Prepare();
  // Emits what places that are not inside need.
  void PrepareRanges();

  // The tensor of a kStore or atomic, once prepared; null otherwise.
  const Access* target() const { return target_.has_value() ? &*target_ : nullptr; }

  // What was computed is known from here on only where it is computed again.
  void Forget() { known_.clear(); }
  Fragment Evaluate(ir::ValueId value, const Place& place);
  // Empty without a value.
  Fragment EvaluateOptional(ir::ValueId value, const Place& place);
  Access::Positions EvaluatePositions(const ir::Op& op, const Access& access, const Place& place);

 private:
  // A value at a place: what is known already where code is being emitted.
  using Known = std::tuple<ir::ValueId, unsigned, std::vector<llvm::Value*>>;

  Fragment EvaluateNew(const ir::Op& op, const Place& place);
  Fragment EvaluateElementwise(const ir::Op& op, const Place& place);
  bool IsPackedCast(const ir::Op& op, ir::DType from) const;
  Fragment PackedCast(const ir::Op& op, const Fragment& operand) const;
  // The same at a place of a tile that the value is broadcast to.
  Fragment EvaluateBroadcast(ir::ValueId value, const Place& place);
  Fragment EvaluateReshape(const ir::Op& op, const Place& place);
  Fragment EvaluateMoved(const ir::Op& op, const Place& place);
  Fragment EvaluatePair(const ir::Op& op, const Place& place);
  Fragment EvaluateLoad(const ir::Op& op, const Place& place);

  Environment& env_;
  llvm::IRBuilder<>& b_;
  const Statement& statement_;
  std::optional<Access> target_;
  std::map<ir::ValueId, std::optional<Access>> loads_;
  std::map<Known, Fragment> known_;
};

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_TILE_EVALUATOR_H_
