// SPDX-License-Identifier: Apache-2.0
//
// The tile IR: one variant of one kernel, typed, every shape a number, in structured control flow.
// sema makes it, passes rewrite it, race/ and codegen read it. What an operation means is said
// once, at its opcode (rules/opcode.h); printer.h shows a function as text and verifier.h says
// whether it is well formed.
//
// A Function is a list of Blocks in a tree; a Block is a list of Ops in order of execution; an Op
// makes at most one value, named by its ValueId, which is visible from there to the end of its
// Block and in Blocks inside. Values never change; variables (VarId) do. One Function belongs to
// one thread at a time.
#ifndef PHOBOS_COMPILER_IR_IR_H_
#define PHOBOS_COMPILER_IR_IR_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/rules/opcode.h"
#include "compiler/ir/type.h"

namespace phobos::compiler::ir {

using ValueId = int32_t;
using VarId = int32_t;
inline constexpr ValueId kNoValue = -1;

// How one dimension of a tensor is addressed. Positions are unbounded integers in meaning; negative
// ones are outside.
struct Subscript {
  enum class Kind {
    kElement,  // position: i64 scalar; the dimension is dropped
    kSlice,    // position: i64 scalar, the first of `length` consecutive elements
    kGather,   // position: an i64 tile
  };
  Kind kind = Kind::kSlice;
  ValueId position = kNoValue;
  int64_t length = 1;  // kSlice
};

struct Op;
using Block = std::vector<Op>;

// Bits of a constant: ints and bool as int64_t (u64: the same bits), floats as double, already
// exact in the type.
using ConstantValue = std::variant<int64_t, double>;

struct Op {
  Opcode opcode;
  ValueId result = kNoValue;
  Type type;  // of the result, and for kStore and atomics of the value stored
  std::vector<ValueId> operands;
  int32_t index = 0;     // parameter, extent, variable, loop id, power ...: as the opcode says
  int32_t axis = 0;      // kBlockId, kGridSize: 0 x, 1 y, 2 z; a reduction's, a scan's, a kDot's
  bool is_near = false;  // a reduction's
  ConstantValue constant = int64_t{0};
  std::vector<Subscript> subscripts;
  std::vector<int32_t> permutation;  // kTranspose: each side of the operand once
  std::vector<std::string> texts;    // kPrint: what stands around its operands
  std::vector<Block> regions;
  int32_t unroll = 1;
  int32_t stages = 1;
  int32_t line = 0;  // of the source, from 1
  int32_t column = 0;
};

// One dimension of a tensor parameter: an extent (index into Function::extents) or a number.
struct Dim {
  int32_t extent = -1;  // -1: literal
  int64_t literal = 0;
};

struct Param {
  std::string name;
  DType dtype = DType::kF32;
  bool is_tensor = false;
  std::vector<Dim> dims;
  int64_t aligned_bytes = 1;  // promised multiple of the address
  bool is_read = false;       // by some kLoad or atomic
  bool is_written = false;    // by some kStore or atomic
};

struct Extent {
  std::string name;
  int64_t multiple = 1;  // promised
};

struct Variable {
  std::string name;
  Type type;
};

// An assumption (ph.assume, or a @ph.constraint over extents) stands in the entry block: see
// kAssume.
struct Function {
  std::string name;       // of the kernel
  std::string file_name;  // for messages
  std::vector<Param> params;
  std::vector<Extent> extents;
  std::vector<Variable> vars;
  std::vector<std::pair<std::string, std::string>> settings;  // NAME, value as text: for messages
  Block body;
  int32_t value_count = 0;  // ValueIds are below this
  int32_t loop_count = 0;
  int32_t index_bits = 64;
  int32_t threads = 256;
  int32_t min_blocks = 0;  // of @ph.launch: that many at a time on a multiprocessor; 0: as it comes
  // Bit 0 x, 1 y, 2 z. A launch has one block in every dimension that is not set, whatever the body
  // reads: the source's other variants count too.
  int32_t grid_dims_used = 7;
  bool fast_math = false;
};

// The mask of an access; kNoValue: all.
inline ValueId MaskOf(const Op& access) {
  return IsAtomic(access.opcode) ? kNoValue : access.operands[1];
}

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_IR_H_
