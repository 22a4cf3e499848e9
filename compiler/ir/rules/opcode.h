// SPDX-License-Identifier: Apache-2.0
//
// The operations of the tile IR: what each means is said once, here at its opcode, and which kinds
// of them there are. The structs that an operation is held in are ir.h's. Pure, any thread.
#ifndef PHOBOS_COMPILER_IR_RULES_OPCODE_H_
#define PHOBOS_COMPILER_IR_RULES_OPCODE_H_

#include <cstdint>

#include "compiler/ir/type.h"

namespace phobos::compiler::ir {

// clang-format off
enum class Opcode {
  // ---- Leaves. No operands.
  kConstant,     // attribute `constant`, of type.dtype; a scalar
  kBlockId,      // i64 scalar: this block's index on `axis`, 0 <= value < kGridSize of that axis
  kGridSize,     // i64 scalar: blocks on `axis`, >= 1
  kExtent,       // i64 scalar: the value of extents[index], >= 0
  kScalarParam,  // the value of params[index], a scalar
  kIota,         // i64 tile [L]: 0, 1, ... L-1
  kReadVar,      // the present value of vars[index]
  kLoopIndex,    // i64 scalar: the index of the enclosing kFor whose loop id is `index`

  // ---- Shape. One operand.
  kBroadcast,  // the operand, repeated to type.shape by NumPy's rules (from a scalar: a fill)
  kReshape,    // a tile's elements, as many, in their row-major order, in type.shape
  kTranspose,  // of a tile: side d of the result is side permutation[d] of the operand

  // ---- Two tiles of one type but for the last side, put together along it.
  kJoin,        // the elements of the first, then those of the second
  kInterleave,  // of two tiles of one shape: an element of the first, one of the second, and so on

  // ---- Arithmetic: element by element, operands and result of one shape. Integers wrap; floats
  // round to nearest even in their own type, f16 and bf16 after each operation. No contraction, no
  // reassociation (unless Function::fast_math).
  kAdd, kSub, kMul,
  kDiv,       // floats
  kFloorDiv,  // towards minus infinity; by 0 gives 0. ints: the smallest by -1 wraps. floats:
              // Python's, from the exact remainder
  kMod,       // a - floor(a / b) * b, exact, the sign of b; by 0 gives 0
  kPowInt,    // operand 0 to the constant non-negative power `index`, by repeated squaring
  kNegate, kAbs,
  kMinimum, kMaximum,  // floats: NaN if either is NaN
  kMulHigh,            // ints: the upper half of the double-width product
  kFma,                // floats: a * b + c with one rounding
  kShiftLeft,          // ints: by the width or more (or negative): 0
  kShiftRight,         // arithmetic when signed: by the width or more: 0 or the sign
  kAnd, kOr, kXor, kNot,  // ints bitwise, bool logically
  kRandomU32,  // u64 key k, u64 counter c to u32: the first word of Philox 4x32-10 of the counter
               // (low half of c, high half of c, 0, 0) with the key (low half of k, high half of k)

  // ---- Built-ins on floats, one operand (kPow two), accuracy by docs/language.md; f16 and bf16
  // through f32, rounded once.
  kExp, kExp2, kExpm1, kLog, kLog2, kLog1p, kPow, kSqrt, kRsqrt, kSin, kCos, kTanh, kErf, kSigmoid,
  kFloor, kCeil, kRound,  // round: half to even
  kIsNan, kIsInf,         // bool

  // ---- Comparison and choice. Comparisons give bool; on floats a NaN makes all but kNotEqual
  // false.
  kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual,
  kSelect,  // bool c, a, b: a where c, else b

  // ---- Conversion. One operand.
  kCast,     // to type.dtype: float to float rounds to nearest even; float to int truncates and
             // saturates, NaN gives 0; int to int wraps; int to float rounds to nearest even; bool
             // is 0 or 1; anything to bool: != 0
  kBitcast,  // the same bits, same width

  // ---- Reductions. One operand, a tile; its side `axis`, of n elements, is dropped, so that of a
  // tile of rank 1 a scalar is left. The order in which elements are combined is told, for the bits
  // of floats, in L = `index` partials. Partial k < L is element k combined with element k + L, then
  // with k + 2L and so on. Partials meet by `is_near`; the result is partial 0. The far ones first:
  // L is a power of two, and for h = L/2, L/4 ... 1 each partial k < h is combined with partial
  // k + h. The near ones first: for h = 1, 2, 4 ... < L each partial k that is a multiple of 2h is
  // combined with partial k + h. Each where there is such a partial and an element in it.
  kSumOver, kProductOver,      // a + b, a * b, as kAdd and kMul
  kMaximumOver, kMinimumOver,  // as kMaximum and kMinimum; of bools: or, and
  kArgMaximum, kArgMinimum,  // i32: where along the side the largest (smallest) element stands, the
                             // first of several; a NaN is larger (smaller) than all else. In any
                             // order the same

  // ---- Scans. One operand, a tile; the result has its type.
  kCumulativeSum,  // along side `axis`, in pieces of `index` elements (0: one piece): in a piece the
                   // first element as it is, then the one before plus the element, as kAdd. Then the
                   // pieces' last sums are summed in the same way, and each element of a piece but
                   // the first one is the sum of the pieces before it, plus the element

  // ---- Contraction.
  kDot,  // operands: [a, b, acc], acc may be kNoValue. a is [.., M, K]; b is [.., K, N] where `axis`
         // is 0 and [.., N, K] where it is 1; rank 2 to 4, the sides before the last two are equal
         // in both, one product each. a and b have one type: f16, bf16, f32 give f32, f64 gives
         // f64, i8 and u8 give i32. Each element of the result, [.., M, N], is acc's, or 0 without
         // one, and then for k = 0, 1, .. K-1: fma(a[m, k], b[k, n], it), in the result's type; ints
         // wrap. f32 operands are first rounded as `index`, a Precision, says. Tensor cores of a GPU
         // have an order and roundings of their own, but for ints.

  // ---- Memory. `index` is the parameter; `subscripts` one a dimension. An element outside the
  // tensor, or where the mask is false, is not touched. The shape is that of the subscripts
  // (shape.h): a scalar when every one is kElement.
  kLoad,   // operands: [fill, mask], each may be kNoValue; such elements read as fill (default 0).
           // fill is a scalar of the tensor's dtype or has the result's type; mask is bool of the
           // result's shape
  kStore,  // operands: [value, mask]; mask may be kNoValue. value has the tensor's dtype and the
           // subscripts' shape, mask is bool of that shape. Makes no value

  // ---- Atomics: memory as kStore's, without a mask. Each element that lies inside is read,
  // changed and written in one step that no other block or atomic comes between; one that a gather
  // names several times is done so often, in any order (one after the other in row-major order
  // where nothing runs beside it). Device scope, relaxed. With a result: the elements as they were
  // before their step, 0 outside; without one, nobody asks. Done exactly once, wherever it stands.
  kAtomicAdd,                         // operand: value. As kAdd; f32 may take subnormals for 0
  kAtomicMaximum, kAtomicMinimum,     // operand: value. As kMaximum and kMinimum
  kAtomicAnd, kAtomicOr, kAtomicXor,  // operand: value. As kAnd, kOr and kXor
  kAtomicCompareSwap,  // operands: expected, new: becomes new where its bits are expected's

  // ---- Output. Makes no value, touches no tensor and changes nothing that an op reads.
  kPrint,  // operands: values of any types; `texts`, one more than those. One line of text for a
           // person: texts[0], operand 0, texts[1], operand 1 ..., behind the block's ids

  // ---- Variables. Make no value.
  kDeclareVar,  // starts vars[index] anew with operand 0
  kWriteVar,    // vars[index] = operand 0

  // ---- Control. Make no value.
  kFor,       // operands: lo, hi, step (i64 scalars, step a non-zero constant); regions: [body];
              // loop id `index`; `unroll` and `stages` are hints (1: none). The body runs for lo,
              // lo + step, ... while < hi (step > 0) or > hi
  kWhile,     // regions: [condition, body]; the condition region ends with kYield of a bool scalar
  kIf,        // operand: bool scalar; regions: [then, else]
  kYield,     // operand: the value of a region that has one; the last op of its Block
  kBreak, kContinue,  // of the innermost loop; the last op of its Block
  kReturn,            // ends the block of the grid; the last op of its Block
  kAssume,            // operand: bool scalar, over constants, extents, scalar parameters and grid
                      // sizes: true at every launch. In the entry block only

  // ---- Made by passes.
  kStage,  // operand: a tile; the same tile, held in memory of this block from here on (see
           // passes/stage.h)
};
// clang-format on

// Element by element, operands and result of one shape, computed from its operands alone.
constexpr bool IsElementwise(Opcode opcode) {
  return opcode >= Opcode::kAdd && opcode <= Opcode::kBitcast;
}

// The element type that an element-wise op on elements of `dtype` gives (kSelect: on its arms); not
// of kCast and kBitcast.
constexpr DType ElementwiseResult(Opcode opcode, DType dtype) {
  const bool gives_bool = (opcode >= Opcode::kEqual && opcode <= Opcode::kGreaterEqual) ||
                          opcode == Opcode::kIsNan || opcode == Opcode::kIsInf;
  if (gives_bool) return DType::kBool;
  return opcode == Opcode::kRandomU32 ? DType::kU32 : dtype;
}

// Reads and writes memory, and may make a value.
constexpr bool IsAtomic(Opcode opcode) {
  return opcode >= Opcode::kAtomicAdd && opcode <= Opcode::kAtomicCompareSwap;
}

// The element types that an atomic has a meaning for.
inline bool AtomicWorksOn(Opcode opcode, DType dtype) {
  if (opcode == Opcode::kAtomicCompareSwap) return true;
  const bool is_bitwise = opcode >= Opcode::kAtomicAnd && opcode <= Opcode::kAtomicXor;
  return is_bitwise ? !IsFloat(dtype) : dtype != DType::kBool;
}

// Writes memory.
constexpr bool WritesTensor(Opcode opcode) { return opcode == Opcode::kStore || IsAtomic(opcode); }

// Reads or writes memory: has a parameter and subscripts.
constexpr bool IsAccess(Opcode opcode) { return opcode == Opcode::kLoad || WritesTensor(opcode); }

constexpr bool IsReduction(Opcode opcode) {
  return opcode >= Opcode::kSumOver && opcode <= Opcode::kArgMinimum;
}

// A reduction that gives where an element stands, not an element.
constexpr bool GivesPlace(Opcode opcode) {
  return opcode == Opcode::kArgMaximum || opcode == Opcode::kArgMinimum;
}

// What f32 operands of a kDot are rounded to, to nearest even, before they are multiplied.
enum class Precision : int32_t {
  kExact,  // nothing
  kTf32,   // ten bits behind the point, the exponents of f32
  kF16,    // f16: what is too large for it becomes infinity
};

// Done over its tile as a whole: no element of the result comes from one element of the operand
// that stands in its place.
constexpr bool IsWholeTile(Opcode opcode) {
  return opcode == Opcode::kTranspose || opcode == Opcode::kCumulativeSum ||
         opcode == Opcode::kDot || IsReduction(opcode);
}

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_RULES_OPCODE_H_
