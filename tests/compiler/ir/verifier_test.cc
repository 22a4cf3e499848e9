// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/verifier.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/shape.h"

namespace phobos::compiler::ir {
namespace {

// A well-formed function that has one op of every kind, for the cases to break.
Function Sample() {
  Builder b{Function{}};
  b.AddExtent("N");
  b.AddTensor("a", DType::kF32, {{0, 0}});
  b.AddScalar("s", DType::kF32);
  const ValueId zero = b.Int(0);
  const ValueId extent = b.Extent(0);
  const ValueId yes = b.Elementwise(Opcode::kLess, {zero, extent});
  b.Assume(yes);
  const ValueId block = b.BlockId(0);
  const ValueId scalar = b.ScalarParam(0 + 1);
  const ValueId iota = b.Iota(4);
  const ValueId tile = b.Load(0, {SliceAt(block, 4)}, scalar, b.Broadcast(yes, {4}));
  const ValueId gathered = b.Load(0, {GatherAt(iota)});
  const ValueId sum = b.Elementwise(Opcode::kAdd, {tile, gathered});
  const ValueId power = b.Elementwise(Opcode::kPowInt, {sum}, 2);
  const VarId var = b.Declare("v", power);
  b.For(zero, extent, 1, [&](ValueId) {
    b.Write(var, b.Elementwise(Opcode::kExp, {b.Read(var)}));
    b.If(yes, [&] { b.Break(); });
  });
  b.While([&] { return yes; }, [&] { b.Continue(); });
  const ValueId chosen =
      b.Elementwise(Opcode::kSelect, {b.Elementwise(Opcode::kIsNan, {sum}), sum, tile});
  const ValueId bits = b.Bitcast(chosen, DType::kI32);
  b.Store(0, {SliceAt(zero, 4)}, b.Cast(b.Elementwise(Opcode::kXor, {bits, bits}), DType::kF32),
          kNoValue);
  b.Return();
  return b.Finish();
}

// The nth op of the opcode, in order of text, regions included.
Op* Find(Block* block, Opcode opcode, int* nth) {
  for (Op& op : *block) {
    if (op.opcode == opcode && (*nth)-- == 0) return &op;
    for (Block& region : op.regions) {
      if (Op* found = Find(&region, opcode, nth)) return found;
    }
  }
  return nullptr;
}

Op& At(Function& function, Opcode opcode, int nth = 0) {
  Op* op = Find(&function.body, opcode, &nth);
  EXPECT_NE(op, nullptr) << Name(opcode);
  return *op;
}

ValueId F32Scalar(Function& f) { return At(f, Opcode::kScalarParam).result; }
ValueId Zero(Function& f) { return At(f, Opcode::kConstant).result; }

struct Case {
  std::string rule;
  std::function<void(Function&)> breaks;
};

Op Plain(Opcode opcode, std::vector<ValueId> operands = {}) {
  Op op;
  op.opcode = opcode;
  op.operands = std::move(operands);
  return op;
}

void Insert(Function& f, Op op) { f.body.insert(f.body.end() - 1, std::move(op)); }

const Case kStructure[] = {
    {"has a rank outside 1..4", [](Function& f) { f.params[0].dims.clear(); }},
    {"is a scalar with dims",
     [](Function& f) {
       f.params[1].dims.push_back({-1, 3});
     }},
    {"has an extent that the function does not list",
     [](Function& f) { f.params[0].dims[0].extent = 1; }},
    {"is not the last op of its block",
     [](Function& f) { f.body.push_back(Plain(Opcode::kReturn)); }},
    {"yields where no value is asked for",
     [](Function& f) { f.body.back() = Plain(Opcode::kYield, {At(f, Opcode::kLess).result}); }},
    {"ends a condition without a yield",
     [](Function& f) { At(f, Opcode::kWhile).regions[0].back() = Plain(Opcode::kReturn); }},
    {"has an empty condition", [](Function& f) { At(f, Opcode::kWhile).regions[0].clear(); }},
    {"uses a value that is not in sight",
     [](Function& f) { At(f, Opcode::kAdd).operands[0] = 1000; }},
    {"uses a value that is not in sight",
     [](Function& f) { At(f, Opcode::kAdd).operands[0] = At(f, Opcode::kXor).result; }},
    {"uses a value that is not in sight",
     [](Function& f) { At(f, Opcode::kAdd).operands[0] = kNoValue; }},
    {"uses a value that is not in sight",  // made inside the loop, used after it
     [](Function& f) { At(f, Opcode::kXor).operands[0] = At(f, Opcode::kExp).result; }},
    {"uses a position that is not in sight",
     [](Function& f) { At(f, Opcode::kLoad).subscripts[0].position = kNoValue; }},
    {"has no result", [](Function& f) { At(f, Opcode::kExp).result = kNoValue; }},
    {"has a result", [](Function& f) { At(f, Opcode::kReturn).result = f.value_count++; }},
    {"has a result outside value_count", [](Function& f) { f.value_count -= 1; }},
    {"defines a value again",
     [](Function& f) { At(f, Opcode::kXor).result = At(f, Opcode::kAdd).result; }},
    {"has a wrong number of operands",
     [](Function& f) { At(f, Opcode::kAdd).operands.pop_back(); }},
    {"has a wrong number of operands",
     [](Function& f) { At(f, Opcode::kBlockId).operands = {Zero(f)}; }},
    {"has a wrong number of regions", [](Function& f) { At(f, Opcode::kIf).regions.pop_back(); }},
    {"has a side below 1", [](Function& f) { At(f, Opcode::kIota).type.shape = {0}; }},
    {"asks for a bool scalar", [](Function& f) { At(f, Opcode::kIf).operands[0] = Zero(f); }},
    {"asks for a bool scalar",
     [](Function& f) { At(f, Opcode::kWhile).regions[0].back().operands[0] = Zero(f); }},
    {"asks for a bool scalar", [](Function& f) { At(f, Opcode::kAssume).operands[0] = Zero(f); }},
    {"is outside a loop", [](Function& f) { f.body.back() = Plain(Opcode::kBreak); }},
    {"is outside the entry block",
     [](Function& f) {
       Block& body = At(f, Opcode::kFor).regions[0];
       body.insert(body.begin(), Plain(Opcode::kAssume, {At(f, Opcode::kLess).result}));
     }},
    {"depends on more than the launch",
     [](Function& f) {
       At(f, Opcode::kLess).operands[0] = At(f, Opcode::kBlockId).result;
       // BlockId stands after Less in the sample: move it to the front.
       for (size_t i = 0; i < f.body.size(); ++i) {
         if (f.body[i].opcode == Opcode::kBlockId) {
           Op op = f.body[i];
           f.body.erase(f.body.begin() + i);
           f.body.insert(f.body.begin(), op);
         }
       }
     }},
};

const Case kLeaves[] = {
    {"is a constant with a shape", [](Function& f) { At(f, Opcode::kConstant).type.shape = {2}; }},
    {"has a constant of the wrong kind",
     [](Function& f) { At(f, Opcode::kConstant).constant = 1.0; }},
    {"has an axis outside 0..2", [](Function& f) { At(f, Opcode::kBlockId).axis = 3; }},
    {"names no extent", [](Function& f) { At(f, Opcode::kExtent).index = 1; }},
    {"is not inside its loop", [](Function& f) { At(f, Opcode::kLoopIndex).index = 5; }},
    {"names no scalar parameter", [](Function& f) { At(f, Opcode::kScalarParam).index = 0; }},
    {"has another type than its parameter",
     [](Function& f) { At(f, Opcode::kScalarParam).type.dtype = DType::kF64; }},
    {"is no i64 tile of rank 1",
     [](Function& f) { At(f, Opcode::kIota).type.dtype = DType::kI32; }},
    {"is no i64 scalar", [](Function& f) { At(f, Opcode::kBlockId).type.dtype = DType::kI32; }},
};

const Case kTypes[] = {
    {"has operands of different types",
     [](Function& f) { At(f, Opcode::kAdd).operands[0] = F32Scalar(f); }},
    {"does not work on this type", [](Function& f) { At(f, Opcode::kXor).opcode = Opcode::kDiv; }},
    {"does not work on this type", [](Function& f) { At(f, Opcode::kAdd).opcode = Opcode::kAnd; }},
    {"has a wrong result type", [](Function& f) { At(f, Opcode::kAdd).type.dtype = DType::kF64; }},
    {"has a wrong result type",
     [](Function& f) { At(f, Opcode::kIsNan).type.dtype = DType::kF32; }},
    {"has a negative power", [](Function& f) { At(f, Opcode::kPowInt).index = -1; }},
    {"asks for a bool condition of its shape",
     [](Function& f) { At(f, Opcode::kSelect).operands[0] = At(f, Opcode::kLess).result; }},
    {"has arms of another type",
     [](Function& f) { At(f, Opcode::kSelect).operands[2] = F32Scalar(f); }},
    {"changes the shape", [](Function& f) { At(f, Opcode::kCast).type.shape = {8}; }},
    {"changes the shape", [](Function& f) { At(f, Opcode::kBitcast).type.shape = {8}; }},
    {"changes the width", [](Function& f) { At(f, Opcode::kBitcast).type.dtype = DType::kI64; }},
    {"does not broadcast to its type",
     [](Function& f) { At(f, Opcode::kBroadcast).operands[0] = At(f, Opcode::kIota).result; }},
    {"is not the tile it holds",
     [](Function& f) {
       Op op = Plain(Opcode::kStage, {F32Scalar(f)});
       op.type = {DType::kF32, {}};
       op.result = f.value_count++;
       Insert(f, op);
     }},
};

// An op over the first [4] tile of the sample, of this type.
Op Arrangement(Function& f, Opcode opcode, Type type, std::vector<int32_t> permutation = {}) {
  Op op = Plain(opcode, {At(f, Opcode::kIota).result});
  op.type = std::move(type);
  op.permutation = std::move(permutation);
  op.result = f.value_count++;
  return op;
}

// A reduction of the first [4] tile of the sample, of this type.
Op Reduction(Function& f, Type type, int32_t axis, int32_t lanes) {
  Op op = Arrangement(f, Opcode::kSumOver, std::move(type));
  op.axis = axis;
  op.index = lanes;
  return op;
}

const Case kReductions[] = {
    {"reduces a side that is not there",
     [](Function& f) {
       Insert(f, Reduction(f, {DType::kI64, {}}, 1, 4));
     }},
    {"has a number of partials that is no power of two",
     [](Function& f) {
       Insert(f, Reduction(f, {DType::kI64, {}}, 0, 3));
     }},
    {"has no partials",
     [](Function& f) {
       Insert(f, Reduction(f, {DType::kI64, {}}, 0, 0));
     }},
    {"has no partials",
     [](Function& f) {
       Op op = Reduction(f, {DType::kI64, {}}, 0, 0);
       op.is_near = true;
       Insert(f, op);
     }},
    {"has a wrong result type",
     [](Function& f) {
       Insert(f, Reduction(f, {DType::kI64, {4}}, 0, 4));
     }},
    {"has a wrong result type",
     [](Function& f) {
       Op op = Reduction(f, {DType::kI64, {}}, 0, 4);
       op.opcode = Opcode::kArgMinimum;
       Insert(f, op);
     }},
    {"does not work on this type",
     [](Function& f) {
       Op op = Reduction(f, {DType::kBool, {}}, 0, 4);
       op.operands = {At(f, Opcode::kIsNan).result};
       Insert(f, op);
     }},
};

const Case kScans[] = {
    {"scans a side that is not there",
     [](Function& f) {
       Op op = Arrangement(f, Opcode::kCumulativeSum, {DType::kI64, {4}});
       op.axis = 1;
       Insert(f, op);
     }},
    {"has a wrong result type",
     [](Function& f) {
       Insert(f, Arrangement(f, Opcode::kCumulativeSum, {DType::kI32, {4}}));
     }},
    {"does not work on this type",
     [](Function& f) {
       Op op = Arrangement(f, Opcode::kCumulativeSum, {DType::kBool, {4}});
       op.operands = {At(f, Opcode::kIsNan).result};
       Insert(f, op);
     }},
    {"has pieces of fewer than no elements",
     [](Function& f) {
       Op op = Arrangement(f, Opcode::kCumulativeSum, {DType::kI64, {4}});
       op.index = -1;
       Insert(f, op);
     }},
};

// A new value, made by `op` before the last op.
ValueId InsertValue(Function& f, Op op) {
  op.result = f.value_count++;
  const ValueId result = op.result;
  Insert(f, std::move(op));
  return result;
}

// A kDot of f32 tiles of these shapes.
Op Dot(Function& f, const Shape& a, const Shape& b, Shape result) {
  Op op{.opcode = Opcode::kDot, .type = {DType::kF32, std::move(result)}};
  for (const Shape& shape : {a, b}) {
    Op tile{.opcode = Opcode::kBroadcast, .type = {DType::kF32, shape}};
    tile.operands = {F32Scalar(f)};
    op.operands.push_back(InsertValue(f, std::move(tile)));
  }
  op.operands.push_back(kNoValue);
  op.result = f.value_count++;
  return op;
}

const Case kDots[] = {
    {"has a wrong rank", [](Function& f) { Insert(f, Dot(f, {4}, {4}, {4})); }},
    {"has a wrong rank",
     [](Function& f) {
       Insert(f, Dot(f, {1, 2, 4}, {4, 8}, {1, 2, 8}));
     }},
    {"has an axis outside 0..1",
     [](Function& f) {
       Op op = Dot(f, {2, 4}, {4, 8}, {2, 8});
       op.axis = 2;
       Insert(f, op);
     }},
    {"has sides that do not fit",
     [](Function& f) {
       Insert(f, Dot(f, {2, 4}, {8, 4}, {2, 8}));
     }},
    {"has sides that do not fit",
     [](Function& f) {
       Op op = Dot(f, {2, 4}, {4, 8}, {2, 8});
       op.axis = 1;
       Insert(f, op);
     }},
    {"has sides that do not fit",
     [](Function& f) {
       Insert(f, Dot(f, {3, 2, 4}, {2, 4, 8}, {3, 2, 8}));
     }},
    {"has a wrong result type",
     [](Function& f) {
       Insert(f, Dot(f, {2, 4}, {4, 8}, {8, 2}));
     }},
    {"does not work on these types",
     [](Function& f) {
       Op op = Dot(f, {1, 4}, {4, 8}, {1, 8});
       op.operands[0] = InsertValue(f, Arrangement(f, Opcode::kReshape, {DType::kI64, {1, 4}}));
       Insert(f, op);
     }},
    {"has a precision that its type does not have",
     [](Function& f) {
       Op op = Dot(f, {2, 4}, {4, 8}, {2, 8});
       op.index = 3;
       Insert(f, op);
     }},
    {"adds to another type",
     [](Function& f) {
       Op op = Dot(f, {2, 4}, {4, 8}, {2, 8});
       op.operands[2] = op.operands[0];
       Insert(f, op);
     }},
    {"uses a value that is not in sight",
     [](Function& f) {
       Op op = Dot(f, {2, 4}, {4, 8}, {2, 8});
       op.operands[1] = kNoValue;
       Insert(f, op);
     }},
};

const Case kArrangements[] = {
    {"arranges a scalar",
     [](Function& f) {
       Op op = Arrangement(f, Opcode::kReshape, {DType::kF32, {1}});
       op.operands = {F32Scalar(f)};
       Insert(f, op);
     }},
    {"arranges a scalar",
     [](Function& f) {
       Insert(f, Arrangement(f, Opcode::kReshape, {DType::kI64, {}}));
     }},
    {"changes the type",
     [](Function& f) {
       Insert(f, Arrangement(f, Opcode::kReshape, {DType::kI32, {2, 2}}));
     }},
    {"changes the number of elements",
     [](Function& f) {
       Insert(f, Arrangement(f, Opcode::kReshape, {DType::kI64, {3, 2}}));
     }},
    {"changes the rank",
     [](Function& f) {
       Insert(f, Arrangement(f, Opcode::kTranspose, {DType::kI64, {4, 1}}, {0, 1}));
     }},
    {"does not permute sides",
     [](Function& f) {
       Insert(f, Arrangement(f, Opcode::kTranspose, {DType::kI64, {4}}, {1}));
     }},
    {"has a wrong shape",
     [](Function& f) {
       Insert(f, Arrangement(f, Opcode::kTranspose, {DType::kI64, {5}}, {0}));
     }},
};

const Case kMemoryAndLoops[] = {
    {"names no tensor", [](Function& f) { At(f, Opcode::kLoad).index = 1; }},
    {"touches a parameter that is not marked so",
     [](Function& f) { f.params[0].is_written = false; }},
    {"touches a parameter that is not marked so", [](Function& f) { f.params[0].is_read = false; }},
    {"needs a subscript a dimension", [](Function& f) { At(f, Opcode::kLoad).subscripts.clear(); }},
    {"has a position of a wrong type",
     [](Function& f) {
       At(f, Opcode::kLoad).subscripts[0].position = At(f, Opcode::kIota).result;
     }},
    {"has a position of a wrong type",
     [](Function& f) { At(f, Opcode::kLoad, 1).subscripts[0].position = Zero(f); }},
    {"has a length below 1", [](Function& f) { At(f, Opcode::kLoad).subscripts[0].length = 0; }},
    {"has another type than its subscripts give",
     [](Function& f) { At(f, Opcode::kLoad).subscripts[0].length = 8; }},
    {"has a fill of a wrong type", [](Function& f) { At(f, Opcode::kLoad).operands[0] = Zero(f); }},
    {"has a mask of a wrong type",
     [](Function& f) { At(f, Opcode::kLoad).operands[1] = At(f, Opcode::kLess).result; }},
    {"stores a value of a wrong type",
     [](Function& f) { At(f, Opcode::kStore).operands[0] = F32Scalar(f); }},
    {"names no variable", [](Function& f) { At(f, Opcode::kReadVar).index = 1; }},
    {"uses a variable that is not declared here",
     [](Function& f) {
       // The declaration moves into a branch, so it is out of sight of the loop.
       for (Op& op : f.body) {
         if (op.opcode != Opcode::kDeclareVar) continue;
         Op guard = Plain(Opcode::kIf, {At(f, Opcode::kLess).result});
         guard.regions = {{op}, {}};
         op = guard;
       }
     }},
    {"has another type than its variable",
     [](Function& f) { At(f, Opcode::kWriteVar).operands[0] = F32Scalar(f); }},
    {"has a bound that is no i64 scalar",
     [](Function& f) { At(f, Opcode::kFor).operands[0] = F32Scalar(f); }},
    {"has a step that is no constant, or 0",
     [](Function& f) { At(f, Opcode::kFor).operands[2] = At(f, Opcode::kExtent).result; }},
    {"has a step that is no constant, or 0",
     [](Function& f) { At(f, Opcode::kFor).operands[2] = Zero(f); }},
    {"has a hint below 1", [](Function& f) { At(f, Opcode::kFor).unroll = 0; }},
    {"has a loop id outside loop_count", [](Function& f) { f.loop_count = 0; }},
    {"has the loop id of another loop",
     [](Function& f) {
       Op copy = Plain(Opcode::kFor, At(f, Opcode::kFor).operands);
       copy.index = At(f, Opcode::kFor).index;
       copy.regions.resize(1);
       Insert(f, copy);
     }},
};

// Puts an op of this type at the end of the body, before the return, with a result if it has one.
void Append(Function& f, Op op, Type type, bool has_result) {
  op.type = std::move(type);
  if (has_result) op.result = f.value_count++;
  Insert(f, std::move(op));
}

void AppendAtomic(Function& f, Opcode opcode, std::vector<ValueId> operands, Type type) {
  Op op = Plain(opcode, std::move(operands));
  op.subscripts = At(f, Opcode::kLoad).subscripts;
  Append(f, std::move(op), std::move(type), /*has_result=*/true);
}

const Type kTile = {DType::kF32, {4}};

const Case kNewest[] = {
    {"has no texts", [](Function& f) { Insert(f, Plain(Opcode::kPrint, {})); }},
    {"has a wrong number of operands",
     [](Function& f) {
       Op op = Plain(Opcode::kPrint, {F32Scalar(f)});
       op.texts = {"only one"};
       Insert(f, std::move(op));
     }},
    {"has a wrong number of operands",
     [](Function& f) {
       AppendAtomic(f, Opcode::kAtomicCompareSwap, {At(f, Opcode::kLoad).result}, kTile);
     }},
    {"does not work on this type",
     [](Function& f) {
       AppendAtomic(f, Opcode::kAtomicXor, {At(f, Opcode::kLoad).result}, kTile);
     }},
    {"has an operand of a wrong type",
     [](Function& f) { AppendAtomic(f, Opcode::kAtomicAdd, {F32Scalar(f)}, kTile); }},
    {"has another type than its subscripts give",
     [](Function& f) {
       AppendAtomic(f, Opcode::kAtomicAdd, {F32Scalar(f)}, {DType::kF32, {}});
     }},
    {"touches a parameter that is not marked so",
     [](Function& f) {
       AppendAtomic(f, Opcode::kAtomicAdd, {At(f, Opcode::kLoad).result}, kTile);
       std::erase_if(f.body, [](const Op& op) { return op.opcode == Opcode::kStore; });
       f.params[0].is_written = false;
     }},
    {"mixes types",
     [](Function& f) {
       Append(f, Plain(Opcode::kJoin, {At(f, Opcode::kLoad).result, At(f, Opcode::kIota).result}),
              {DType::kF32, {8}}, true);
     }},
    {"arranges a scalar",
     [](Function& f) {
       Append(f, Plain(Opcode::kInterleave, {F32Scalar(f), F32Scalar(f)}), {DType::kF32, {2}},
              true);
     }},
    {"has a wrong result type",
     [](Function& f) {
       const ValueId tile = At(f, Opcode::kLoad).result;
       Append(f, Plain(Opcode::kInterleave, {tile, tile}), kTile, true);
     }},
    {"does not work on this type",
     [](Function& f) {
       Append(f, Plain(Opcode::kRandomU32, {Zero(f), Zero(f)}), {DType::kU32, {}}, true);
     }},
};

TEST(Verifier, TheSampleIsWellFormed) {
  EXPECT_TRUE(Verify(Sample()).ok()) << Verify(Sample()) << "\n" << Print(Sample());
}

template <size_t kCount>
void ExpectEachBreaks(const Case (&cases)[kCount]) {
  for (const Case& c : cases) {
    Function function = Sample();
    c.breaks(function);
    const absl::Status status = Verify(function);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << c.rule << "\n" << Print(function);
    EXPECT_TRUE(absl::EndsWith(status.message(), c.rule)) << status << "\nwanted: " << c.rule;
  }
}

TEST(Verifier, Structure) { ExpectEachBreaks(kStructure); }
TEST(Verifier, Leaves) { ExpectEachBreaks(kLeaves); }
TEST(Verifier, Types) { ExpectEachBreaks(kTypes); }
TEST(Verifier, Reductions) { ExpectEachBreaks(kReductions); }
TEST(Verifier, Scans) { ExpectEachBreaks(kScans); }
TEST(Verifier, Dots) { ExpectEachBreaks(kDots); }
TEST(Verifier, Arrangements) { ExpectEachBreaks(kArrangements); }
TEST(Verifier, AtomicsPairsAndRandomNumbers) { ExpectEachBreaks(kNewest); }
TEST(Verifier, MemoryAndLoops) { ExpectEachBreaks(kMemoryAndLoops); }

// A fault names the kernel, the line and the op as printed.
TEST(Verifier, MessageNamesTheOp) {
  Function function = Sample();
  function.name = "add";
  Op& load = At(function, Opcode::kLoad);
  load.line = 7;
  load.subscripts[0].length = 0;
  EXPECT_TRUE(absl::StrContains(Verify(function).message(), "ill-formed IR of add, line 7: `%7: "))
      << Verify(function);
}

}  // namespace
}  // namespace phobos::compiler::ir
