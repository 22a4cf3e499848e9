// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/language.h"

#include <algorithm>

namespace phobos::compiler::sema {
namespace {

using ir::Opcode;
using Kind = Builtin::Kind;

constexpr Builtin kBuiltins[] = {
    {"exp", Kind::kFloat, Opcode::kExp, "x"},
    {"exp2", Kind::kFloat, Opcode::kExp2, "x"},
    {"expm1", Kind::kFloat, Opcode::kExpm1, "x"},
    {"log", Kind::kFloat, Opcode::kLog, "x"},
    {"log2", Kind::kFloat, Opcode::kLog2, "x"},
    {"log1p", Kind::kFloat, Opcode::kLog1p, "x"},
    {"sqrt", Kind::kFloat, Opcode::kSqrt, "x"},
    {"rsqrt", Kind::kFloat, Opcode::kRsqrt, "x"},
    {"sin", Kind::kFloat, Opcode::kSin, "x"},
    {"cos", Kind::kFloat, Opcode::kCos, "x"},
    {"tanh", Kind::kFloat, Opcode::kTanh, "x"},
    {"erf", Kind::kFloat, Opcode::kErf, "x"},
    {"sigmoid", Kind::kFloat, Opcode::kSigmoid, "x"},
    {"fma", Kind::kFloat, Opcode::kFma, "a,b,c"},
    {"pow", Kind::kPow, Opcode::kPow, "x,y"},
    {"abs", Kind::kNumber, Opcode::kAbs, "x"},
    {"minimum", Kind::kNumber, Opcode::kMinimum, "a,b"},
    {"maximum", Kind::kNumber, Opcode::kMaximum, "a,b"},
    {"floor", Kind::kRounding, Opcode::kFloor, "x"},
    {"ceil", Kind::kRounding, Opcode::kCeil, "x"},
    {"round", Kind::kRounding, Opcode::kRound, "x"},
    {"isnan", Kind::kTest, Opcode::kIsNan, "x"},
    {"isinf", Kind::kTest, Opcode::kIsInf, "x"},
    {"mulhi", Kind::kMulHigh, Opcode::kMulHigh, "a,b"},
    {"where", Kind::kWhere, Opcode::kSelect, "c,a,b"},
    {"clip", Kind::kClip, Opcode::kConstant, "x,lo,hi"},
    {"cdiv", Kind::kCeilDivide, Opcode::kConstant, "a,b"},
    {"cast", Kind::kCast, Opcode::kCast, "v,T"},
    {"bitcast", Kind::kBitcast, Opcode::kBitcast, "v,T"},
    {"iota", Kind::kIota, Opcode::kIota, "L"},
    {"zeros", Kind::kZeros, Opcode::kConstant, "T,..."},
    {"full", Kind::kFull, Opcode::kConstant, "T,value,..."},
    {"extent", Kind::kExtent, Opcode::kExtent, "A,d"},
    {"load", Kind::kLoad, Opcode::kLoad, "A,fill?,mask?"},
    {"store", Kind::kStore, Opcode::kStore, "A,v,mask?"},
    {"assert_", Kind::kAssert, Opcode::kConstant, "cond,text"},
    {"assume", Kind::kAssume, Opcode::kAssume, "cond"},
    {"reshape", Kind::kReshape, Opcode::kReshape, "t,..."},
    {"transpose", Kind::kTranspose, Opcode::kTranspose, "t,perm?"},
    {"join", Kind::kPair, Opcode::kJoin, "a,b"},
    {"interleave", Kind::kPair, Opcode::kInterleave, "a,b"},
    {"sum", Kind::kReduction, Opcode::kSumOver, "t,axis?,keepdims?"},
    {"max", Kind::kReduction, Opcode::kMaximumOver, "t,axis?,keepdims?"},
    {"min", Kind::kReduction, Opcode::kMinimumOver, "t,axis?,keepdims?"},
    {"prod", Kind::kReduction, Opcode::kProductOver, "t,axis?,keepdims?"},
    {"mean", Kind::kMean, Opcode::kSumOver, "t,axis?,keepdims?"},
    {"argmax", Kind::kReduction, Opcode::kArgMaximum, "t,axis?,keepdims?"},
    {"argmin", Kind::kReduction, Opcode::kArgMinimum, "t,axis?,keepdims?"},
    {"any", Kind::kReduction, Opcode::kMaximumOver, "t,axis?,keepdims?"},
    {"all", Kind::kReduction, Opcode::kMinimumOver, "t,axis?,keepdims?"},
    {"rowsum", Kind::kRowReduction, Opcode::kSumOver, "t"},
    {"rowmax", Kind::kRowReduction, Opcode::kMaximumOver, "t"},
    {"cumsum", Kind::kScan, Opcode::kSumOver, "t,axis?"},
    {"dot", Kind::kDot, Opcode::kDot, "a,b,precision?"},
    {"dot_t", Kind::kDotTransposed, Opcode::kDot, "a,b,precision?"},
    {"atomic_add", Kind::kAtomic, Opcode::kAtomicAdd, "A,v"},
    {"atomic_max", Kind::kAtomic, Opcode::kAtomicMaximum, "A,v"},
    {"atomic_min", Kind::kAtomic, Opcode::kAtomicMinimum, "A,v"},
    {"atomic_and", Kind::kAtomic, Opcode::kAtomicAnd, "A,v"},
    {"atomic_or", Kind::kAtomic, Opcode::kAtomicOr, "A,v"},
    {"atomic_xor", Kind::kAtomic, Opcode::kAtomicXor, "A,v"},
    {"atomic_cas", Kind::kAtomic, Opcode::kAtomicCompareSwap, "A,expected,new"},
    {"print", Kind::kPrint, Opcode::kPrint, "..."},
    {"random_u32", Kind::kRandom, Opcode::kRandomU32, "seed,index"},
    {"let", Kind::kStructure},
    {"var", Kind::kStructure},
    {"tile", Kind::kStructure},
    {"tensor", Kind::kStructure},
    {"range", Kind::kStructure},
    {"ctx", Kind::kStructure},
    {"finfo", Kind::kStructure},
    {"iinfo", Kind::kStructure},
    {"kernel", Kind::kStructure},
    {"fn", Kind::kStructure},
    {"autotune", Kind::kStructure},
    {"launch", Kind::kStructure},
    {"index_bits", Kind::kStructure},
    {"aligned", Kind::kStructure},
    {"constraint", Kind::kStructure},
    {"fast_math", Kind::kStructure},
};

}  // namespace

const Builtin* FindBuiltin(std::string_view name) {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

bool IsLanguageName(std::string_view name) {
  const std::vector<std::string_view> names = LanguageNames();
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string_view> LanguageNames() {
  std::vector<std::string_view> names = {"inf", "nan"};
  for (const Builtin& builtin : kBuiltins) names.push_back(builtin.name);
  for (ir::DType dtype : ir::kDTypes) names.push_back(ir::Name(dtype));
  return names;
}

}  // namespace phobos::compiler::sema
