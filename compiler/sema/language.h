// SPDX-License-Identifier: Apache-2.0
//
// The table of the language's names: what stands after `ph.`. Constant data, any thread.
#ifndef PHOBOS_COMPILER_SEMA_LANGUAGE_H_
#define PHOBOS_COMPILER_SEMA_LANGUAGE_H_

#include <string_view>
#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::sema {

struct Builtin {
  enum class Kind {
    kFloat,     // element-wise on floats (ints are taken as f32): `opcode`
    kNumber,    // element-wise on ints and floats: `opcode`
    kRounding,  // floor, ceil, round: leaves ints alone
    kTest,      // isnan, isinf: on ints False
    kMulHigh,
    kPow,
    kWhere,
    kClip,
    kCeilDivide,
    kCast,
    kBitcast,
    kIota,
    kZeros,
    kFull,
    kReduction,  // `opcode`; any, all: of bools
    kMean,
    kScan,
    kRowReduction,  // along axis 1, which stays as a side of 1
    kReshape,
    kTranspose,
    kDot,
    kDotTransposed,
    kPair,  // join, interleave
    kRandom,
    kExtent,
    kLoad,
    kStore,
    kAtomic,  // `opcode`
    kAssert,
    kAssume,
    kPrint,
    kStructure,  // of the language's grammar (let, tile, kernel, range ...): never a function
                 // called in an expression
  };
  std::string_view name;
  Kind kind;
  ir::Opcode opcode = ir::Opcode::kConstant;
  // Parameter names in order, separated by commas; "?" after one: it may be left out; "..." last:
  // any number more.
  std::string_view parameters = "";
};

// Null when the language has no such name.
const Builtin* FindBuiltin(std::string_view name);

// Whether `ph.name` is in the language: a function, a type, a constant or a part of its grammar.
bool IsLanguageName(std::string_view name);

// All names after `ph.`, types and constants too, for suggestions.
std::vector<std::string_view> LanguageNames();

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_LANGUAGE_H_
