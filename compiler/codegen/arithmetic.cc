// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/arithmetic.h"

#include <cstdint>
#include <variant>

#include "compiler/codegen/conversion.h"
#include "compiler/codegen/division.h"
#include "compiler/codegen/math.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"

namespace phobos::compiler::codegen {
namespace {

using ir::DType;
using ir::Opcode;
using llvm::Value;

bool Is16BitFloat(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

Value* ShiftLeft(llvm::IRBuilderBase& b, Value* value, Value* amount, DType dtype) {
  llvm::Type* type = value->getType();
  Value* zero = llvm::ConstantInt::get(type, 0);
  // As unsigned, a negative amount is a large one.
  Value* fits = b.CreateICmpULT(amount, llvm::ConstantInt::get(type, ir::BitWidth(dtype)));
  Value* shifted = b.CreateShl(value, b.CreateSelect(fits, amount, zero));
  return b.CreateSelect(fits, shifted, zero);
}

Value* ShiftRight(llvm::IRBuilderBase& b, Value* value, Value* amount, DType dtype) {
  llvm::Type* type = value->getType();
  Value* zero = llvm::ConstantInt::get(type, 0);
  Value* last = llvm::ConstantInt::get(type, ir::BitWidth(dtype) - 1);
  Value* fits = b.CreateICmpULE(amount, last);
  if (ir::IsSigned(dtype)) return b.CreateAShr(value, b.CreateSelect(fits, amount, last));
  return b.CreateSelect(fits, b.CreateLShr(value, b.CreateSelect(fits, amount, zero)), zero);
}

// By repeated squaring, from the lowest bit of the power up.
Value* PowInt(llvm::IRBuilderBase& b, Value* value, uint32_t power) {
  const bool is_float = value->getType()->isFPOrFPVectorTy();
  auto multiply = [&](Value* x, Value* y) {
    return is_float ? b.CreateFMul(x, y) : b.CreateMul(x, y);
  };
  Value* result = nullptr;
  for (;; value = multiply(value, value)) {
    if (power & 1) result = result == nullptr ? value : multiply(result, value);
    power >>= 1;
    if (power == 0) break;
  }
  if (result != nullptr) return result;
  return is_float ? llvm::ConstantFP::get(value->getType(), 1.0)
                  : static_cast<Value*>(llvm::ConstantInt::get(value->getType(), 1));
}

// NaN where either is, and -0 below +0. Vectors without llvm.minimum, whose form of them on x86
// loses NaNs in LLVM 19.
Value* MinimumOrMaximum(llvm::IRBuilderBase& b, Value* x, Value* y, bool is_minimum) {
  if (x->getType()->isFloatTy()) {
    // One instruction of a GPU.
    return b.CreateBinaryIntrinsic(is_minimum ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum,
                                   x, y);
  }
  llvm::Type* type = x->getType();
  llvm::Type* bits = WithLanesOf(b.getIntNTy(type->getScalarSizeInBits()), type);
  Value* x_bits = b.CreateBitCast(x, bits);
  Value* y_bits = b.CreateBitCast(y, bits);
  Value* takes_x = is_minimum ? b.CreateFCmpOLT(x, y) : b.CreateFCmpOGT(x, y);
  Value* result = b.CreateSelect(takes_x, x, y);
  // Equal numbers have equal bits unless they are zeros.
  Value* both = is_minimum ? b.CreateOr(x_bits, y_bits) : b.CreateAnd(x_bits, y_bits);
  result = b.CreateSelect(b.CreateFCmpOEQ(x, y), b.CreateBitCast(both, type), result);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, result);
}

Value* Compare(llvm::IRBuilderBase& b, Opcode opcode, DType dtype, Value* x, Value* y) {
  using Predicate = llvm::CmpInst::Predicate;
  struct Row {
    Predicate on_float, on_signed, on_unsigned;
  };
  auto row = [opcode]() -> Row {
    switch (opcode) {
      case Opcode::kEqual:
        return {Predicate::FCMP_OEQ, Predicate::ICMP_EQ, Predicate::ICMP_EQ};
      case Opcode::kNotEqual:
        return {Predicate::FCMP_UNE, Predicate::ICMP_NE, Predicate::ICMP_NE};
      case Opcode::kLess:
        return {Predicate::FCMP_OLT, Predicate::ICMP_SLT, Predicate::ICMP_ULT};
      case Opcode::kLessEqual:
        return {Predicate::FCMP_OLE, Predicate::ICMP_SLE, Predicate::ICMP_ULE};
      case Opcode::kGreater:
        return {Predicate::FCMP_OGT, Predicate::ICMP_SGT, Predicate::ICMP_UGT};
      default:
        return {Predicate::FCMP_OGE, Predicate::ICMP_SGE, Predicate::ICMP_UGE};
    }
  }();
  if (ir::IsFloat(dtype)) return b.CreateFCmp(row.on_float, x, y);
  return b.CreateICmp(ir::IsSigned(dtype) ? row.on_signed : row.on_unsigned, x, y);
}

// f32 and f64.
Value* FloatOp(llvm::IRBuilderBase& b, const ir::Op& op, llvm::ArrayRef<Value*> v) {
  llvm::Type* type = v[0]->getType();
  switch (op.opcode) {
    case Opcode::kAdd:
      return b.CreateFAdd(v[0], v[1]);
    case Opcode::kSub:
      return b.CreateFSub(v[0], v[1]);
    case Opcode::kMul:
      return b.CreateFMul(v[0], v[1]);
    case Opcode::kDiv:
      return b.CreateFDiv(v[0], v[1]);
    case Opcode::kFloorDiv:
      return EmitFloatFloorDiv(b, v[0], v[1]);
    case Opcode::kMod:
      return EmitFloatMod(b, v[0], v[1]);
    case Opcode::kPowInt:
      return PowInt(b, v[0], static_cast<uint32_t>(op.index));
    case Opcode::kNegate:
      return b.CreateFNeg(v[0]);
    case Opcode::kAbs:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v[0]);
    case Opcode::kMinimum:
      return MinimumOrMaximum(b, v[0], v[1], /*is_minimum=*/true);
    case Opcode::kMaximum:
      return MinimumOrMaximum(b, v[0], v[1], /*is_minimum=*/false);
    case Opcode::kFma:
      return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {v[0], v[1], v[2]});
    case Opcode::kFloor:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, v[0]);
    case Opcode::kCeil:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, v[0]);
    case Opcode::kRound:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, v[0]);
    case Opcode::kIsNan:
      return b.CreateFCmpUNO(v[0], v[0]);
    case Opcode::kIsInf:
      return b.CreateFCmpOEQ(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v[0]),
                             llvm::ConstantFP::getInfinity(type));
    default:
      return EmitMath(b, op.opcode, v);
  }
}

Value* IntegerOp(llvm::IRBuilderBase& b, const ir::Op& op, DType dtype, llvm::ArrayRef<Value*> v) {
  const bool is_signed = ir::IsSigned(dtype);
  switch (op.opcode) {
    case Opcode::kAdd:
      return b.CreateAdd(v[0], v[1]);
    case Opcode::kSub:
      return b.CreateSub(v[0], v[1]);
    case Opcode::kMul:
      return b.CreateMul(v[0], v[1]);
    case Opcode::kFloorDiv:
      return EmitIntegerFloorDiv(b, v[0], v[1], dtype);
    case Opcode::kMod:
      return EmitIntegerMod(b, v[0], v[1], dtype);
    case Opcode::kPowInt:
      return PowInt(b, v[0], static_cast<uint32_t>(op.index));
    case Opcode::kNegate:
      return b.CreateNeg(v[0]);
    case Opcode::kAbs:
      if (!is_signed) return v[0];
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, v[0], b.getFalse());
    case Opcode::kMinimum:
      return b.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin,
                                     v[0], v[1]);
    case Opcode::kMaximum:
      return b.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax,
                                     v[0], v[1]);
    case Opcode::kMulHigh:
      return EmitMulHigh(b, v[0], v[1], dtype);
    case Opcode::kShiftLeft:
      return ShiftLeft(b, v[0], v[1], dtype);
    case Opcode::kShiftRight:
      return ShiftRight(b, v[0], v[1], dtype);
    case Opcode::kAnd:
      return b.CreateAnd(v[0], v[1]);
    case Opcode::kOr:
      return b.CreateOr(v[0], v[1]);
    case Opcode::kXor:
      return b.CreateXor(v[0], v[1]);
    default:
      return b.CreateNot(v[0]);  // kNot
  }
}

// f16 and bf16: in f32, rounded once. (f32 has more than twice their digits, so one operation
// rounded twice is rounded right.) Signs and fma are done on what is exact.
Value* NarrowFloatOp(llvm::IRBuilderBase& b, const ir::Op& op, DType dtype,
                     llvm::ArrayRef<Value*> v) {
  llvm::Type* type = v[0]->getType();
  if (op.opcode == Opcode::kNegate) return b.CreateXor(v[0], llvm::ConstantInt::get(type, 0x8000));
  if (op.opcode == Opcode::kAbs) return b.CreateAnd(v[0], llvm::ConstantInt::get(type, 0x7fff));
  llvm::SmallVector<Value*, 3> wide;
  for (Value* value : v) wide.push_back(WidenToF32(b, value, dtype));
  if (op.opcode == Opcode::kFma) {
    llvm::Type* f64 = WithLanesOf(b.getDoubleTy(), type);
    for (Value*& value : wide) value = b.CreateFPExt(value, f64);
    Value* product = b.CreateFMul(wide[0], wide[1]);  // exact
    Value* sum = b.CreateFAdd(product, wide[2]);
    // What the sum rounded off: exact too (Knuth's two-sum).
    Value* addend = b.CreateFSub(sum, product);
    Value* error = b.CreateFAdd(b.CreateFSub(product, b.CreateFSub(sum, addend)),
                                b.CreateFSub(wide[2], addend));
    return NarrowFromSum(b, sum, error, dtype);
  }
  Value* result = FloatOp(b, op, wide);
  return op.opcode == Opcode::kIsNan || op.opcode == Opcode::kIsInf
             ? result
             : NarrowFromF32(b, result, dtype);
}

Value* Bitcast(llvm::IRBuilderBase& b, Value* value, DType to) {
  return b.CreateBitCast(value, WithLanesOf(ElementType(b.getContext(), to), value->getType()));
}

bool IsComparison(Opcode opcode) {
  return opcode >= Opcode::kEqual && opcode <= Opcode::kGreaterEqual;
}

// See ir/rules/opcode.h: 32-bit words, and products of two of them.
Value* Random(llvm::IRBuilderBase& b, Value* key, Value* counter) {
  llvm::Type* wide = counter->getType();
  llvm::Type* word = WithLanesOf(b.getInt32Ty(), wide);
  auto low = [&](Value* v) { return b.CreateTrunc(v, word); };
  auto high = [&](Value* v) { return b.CreateTrunc(b.CreateLShr(v, 32), word); };
  auto number = [&](uint32_t n) { return llvm::ConstantInt::get(word, n); };
  auto times = [&](Value* v, uint32_t n) {
    return b.CreateMul(b.CreateZExt(v, wide), llvm::ConstantInt::get(wide, n));
  };
  Value* words[4] = {low(counter), high(counter), number(0), number(0)};
  Value* keys[2] = {low(key), high(key)};
  for (int round = 0; round < 10; ++round) {
    Value* first = times(words[0], 0xD2511F53);
    Value* third = times(words[2], 0xCD9E8D57);
    words[0] = b.CreateXor(b.CreateXor(high(third), words[1]), keys[0]);
    words[1] = low(third);
    words[2] = b.CreateXor(b.CreateXor(high(first), words[3]), keys[1]);
    words[3] = low(first);
    keys[0] = b.CreateAdd(keys[0], number(0x9E3779B9));
    keys[1] = b.CreateAdd(keys[1], number(0xBB67AE85));
  }
  return words[0];
}

}  // namespace

llvm::Type* ElementType(llvm::LLVMContext& context, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return llvm::Type::getFloatTy(context);
    case DType::kF64:
      return llvm::Type::getDoubleTy(context);
    case DType::kBool:
      return llvm::Type::getInt1Ty(context);
    default:
      return llvm::IntegerType::get(context, ir::BitWidth(dtype));
  }
}

llvm::Type* MemoryType(llvm::LLVMContext& context, DType dtype) {
  return dtype == DType::kBool ? llvm::Type::getInt8Ty(context) : ElementType(context, dtype);
}

llvm::Type* WithLanesOf(llvm::Type* type, llvm::Type* like) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector == nullptr ? type : llvm::FixedVectorType::get(type, vector->getNumElements());
}

llvm::Constant* ConstantOf(llvm::LLVMContext& context, DType dtype,
                           const ir::ConstantValue& value) {
  llvm::Type* type = ElementType(context, dtype);
  if (!ir::IsFloat(dtype)) {
    return llvm::ConstantInt::get(type, static_cast<uint64_t>(std::get<int64_t>(value)),
                                  /*IsSigned=*/true);
  }
  const double number = std::get<double>(value);
  if (!Is16BitFloat(dtype)) return llvm::ConstantFP::get(type, number);
  llvm::APFloat narrow(number);
  bool loses_info = false;
  narrow.convert(dtype == DType::kF16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat(),
                 llvm::APFloat::rmNearestTiesToEven, &loses_info);
  return llvm::ConstantInt::get(type, narrow.bitcastToAPInt());
}

Value* EmitElementwise(llvm::IRBuilderBase& b, const ir::Op& op, DType dtype,
                       llvm::ArrayRef<Value*> operands) {
  switch (op.opcode) {
    case Opcode::kSelect:
      return b.CreateSelect(operands[0], operands[1], operands[2]);
    case Opcode::kCast:
      return EmitCast(b, operands[0], dtype, op.type.dtype);
    case Opcode::kBitcast:
      return Bitcast(b, operands[0], op.type.dtype);
    case Opcode::kRandomU32:
      return Random(b, operands[0], operands[1]);
    default:
      break;
  }
  if (IsComparison(op.opcode)) {
    if (!Is16BitFloat(dtype)) return Compare(b, op.opcode, dtype, operands[0], operands[1]);
    return Compare(b, op.opcode, DType::kF32, WidenToF32(b, operands[0], dtype),
                   WidenToF32(b, operands[1], dtype));
  }
  if (Is16BitFloat(dtype)) return NarrowFloatOp(b, op, dtype, operands);
  if (ir::IsFloat(dtype)) return FloatOp(b, op, operands);
  return IntegerOp(b, op, dtype, operands);
}

Value* EmitElementwise(llvm::IRBuilderBase& b, Opcode opcode, DType dtype,
                       llvm::ArrayRef<Value*> operands) {
  ir::Op op;
  op.opcode = opcode;
  op.type.dtype = dtype;
  return EmitElementwise(b, op, dtype, operands);
}

}  // namespace phobos::compiler::codegen
