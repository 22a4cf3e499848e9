// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/contraction/operands.h"

#include <algorithm>

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/conversion.h"
#include "compiler/codegen/host/tile/transpose.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::host {
namespace {

// To nearest even, in the bits; the carry out of the fraction goes into the exponent, up to
// infinity. A NaN stays one.
llvm::Value* RoundToTf32(llvm::IRBuilder<>& b, llvm::Value* value) {
  llvm::Type* type = codegen::WithLanesOf(b.getInt32Ty(), value->getType());
  auto number = [type](uint64_t bits) { return llvm::ConstantInt::get(type, bits); };
  llvm::Value* bits = b.CreateBitCast(value, type);
  llvm::Value* last = b.CreateAnd(b.CreateLShr(bits, number(13)), number(1));
  llvm::Value* rounded = b.CreateAdd(b.CreateAdd(bits, number(0xfff)), last);
  rounded = b.CreateBitCast(b.CreateAnd(rounded, number(~uint64_t{0x1fff} & 0xffffffff)),
                            value->getType());
  return b.CreateSelect(b.CreateFCmpUNO(value, value), value, rounded);
}

}  // namespace

llvm::Value* OperandCopier::At(llvm::Value* address, llvm::Value* index) const {
  return b_.CreateGEP(codegen::MemoryType(b_.getContext(), plan_.operand_type), address, index);
}

llvm::Value* OperandCopier::LoadPrepared(llvm::Value* address) const {
  llvm::Type* element = codegen::MemoryType(b_.getContext(), plan_.operand_type);
  llvm::Value* value = b_.CreateAlignedLoad(llvm::FixedVectorType::get(element, plan_.lanes),
                                            address, llvm::Align(ir::ByteSize(plan_.operand_type)));
  switch (plan_.precision) {
    case ir::Precision::kTf32:
      return RoundToTf32(b_, value);
    case ir::Precision::kF16:
      value = codegen::EmitCast(b_, value, ir::DType::kF32, ir::DType::kF16);
      return codegen::EmitCast(b_, value, ir::DType::kF16, ir::DType::kF32);
    case ir::Precision::kExact:
      break;
  }
  if (plan_.operand_type == plan_.sum_type) return value;
  return codegen::EmitCast(b_, value, plan_.operand_type, plan_.sum_type);
}

void OperandCopier::Store(llvm::Value* vector, llvm::Value* to, llvm::Value* index) const {
  llvm::Type* element = codegen::ElementType(b_.getContext(), plan_.sum_type);
  b_.CreateAlignedStore(vector, b_.CreateGEP(element, to, index),
                        llvm::Align(ir::ByteSize(plan_.sum_type)));
}

void OperandCopier::CopyA(const Rows& from, llvm::Value* depth, llvm::Value* to) const {
  env_.Loop(env_.Int(0), env_.Int(plan_.m), 1, [&](llvm::Value* row) {
    llvm::Value* source = At(from.address, b_.CreateMul(row, env_.Int(from.stride)));
    llvm::Value* target = b_.CreateMul(row, env_.Int(plan_.a_stride));
    env_.Loop(env_.Int(0), depth, plan_.lanes, [&](llvm::Value* k) {
      Store(LoadPrepared(At(source, k)), to, b_.CreateAdd(target, k));
    });
  });
}

void OperandCopier::CopyB(const Rows& from, llvm::Value* depth, int64_t width, unsigned vectors,
                          llvm::Value* to) const {
  if (plan_.is_transposed) return CopyColumnsOfB(from, depth, width, vectors, to);
  CopyRowsOfB(from, depth, vectors, to);
}

void OperandCopier::CopyRowsOfB(const Rows& from, llvm::Value* depth, unsigned vectors,
                                llvm::Value* to) const {
  env_.Loop(env_.Int(0), depth, 1, [&](llvm::Value* k) {
    llvm::Value* source = At(from.address, b_.CreateMul(k, env_.Int(from.stride)));
    llvm::Value* target = b_.CreateMul(k, env_.Int(int64_t{plan_.lanes} * vectors));
    for (unsigned v = 0; v < vectors; ++v) {
      llvm::Value* column = env_.Int(int64_t{plan_.lanes} * v);
      Store(LoadPrepared(At(source, column)), to, b_.CreateAdd(target, column));
    }
  });
}

// A row of b is a column of the copy: squares of vectors are turned.
void OperandCopier::CopyColumnsOfB(const Rows& from, llvm::Value* depth, int64_t width,
                                   unsigned vectors, llvm::Value* to) const {
  const int64_t lanes = plan_.lanes;
  for (int64_t v = 0; v < vectors; ++v) {
    env_.Loop(env_.Int(0), depth, lanes, [&](llvm::Value* k) {
      VectorRows rows;
      for (int64_t lane = 0; lane < std::min(lanes, width - v * lanes); ++lane) {
        llvm::Value* row = At(from.address, env_.Int((v * lanes + lane) * from.stride));
        rows.push_back(LoadPrepared(At(row, k)));
      }
      rows.resize(static_cast<size_t>(lanes), llvm::Constant::getNullValue(rows[0]->getType()));
      TransposeRows(b_, &rows);
      for (int64_t step = 0; step < lanes; ++step) {
        llvm::Value* row = b_.CreateMul(b_.CreateAdd(k, env_.Int(step)), env_.Int(lanes * vectors));
        Store(rows[static_cast<size_t>(step)], to, b_.CreateAdd(row, env_.Int(v * lanes)));
      }
    });
  }
}

}  // namespace phobos::compiler::host
