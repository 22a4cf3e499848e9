// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/tile/environment.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

namespace phobos::compiler::nvptx {

Environment::Environment(const ir::Function& ir_function, llvm::IRBuilder<>& ir_builder,
                         const Plan& kernel_plan)
    : codegen::Environment(ir_function, ir_builder),
      plan(kernel_plan),
      powers(ir_function),
      held_tiles(ir_function.value_count) {}

void Environment::Meet() const { builder.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); }

llvm::Value* IndexOf(const Environment& environment, const Place& place, size_t side,
                     unsigned lane) {
  llvm::Value* index = place.indices[side];
  if (static_cast<int>(side) != place.lane_side) return index;
  return environment.builder.CreateAdd(index, environment.Int32(lane), "", true, true);
}

llvm::Value* NumberOf(const Environment& environment, const std::vector<int64_t>& shape,
                      const Place& place, unsigned lane) {
  llvm::IRBuilder<>& b = environment.builder;
  llvm::Value* number = environment.Int32(0);
  for (size_t side = 0; side < shape.size(); ++side) {
    llvm::Value* index = IndexOf(environment, place, side, lane);
    number = b.CreateMul(number, environment.Int32(shape[side]), "", true, true);
    number = b.CreateAdd(number, index, "", true, true);
  }
  return number;
}

Place PlaceOf(const Environment& environment, const std::vector<int64_t>& shape,
              llvm::Value* number) {
  llvm::IRBuilder<>& b = environment.builder;
  Place place;
  place.indices.resize(shape.size());
  for (size_t side = shape.size(); side-- > 0;) {
    place.indices[side] = b.CreateURem(number, environment.Int32(shape[side]));
    number = b.CreateUDiv(number, environment.Int32(shape[side]));
  }
  return place;
}

}  // namespace phobos::compiler::nvptx
