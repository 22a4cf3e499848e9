// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/operation.h"

#include <cstddef>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/printer.h"

namespace phobos::compiler::interpreter {
namespace {

using ir::Opcode;
using Operands = std::vector<const Tile*>;

absl::Status Unknown(const ir::Op& op) {
  return absl::UnimplementedError(absl::StrCat("the interpreter has no meaning for `",
                                               std::string(ir::Name(op.opcode)), "` of type ",
                                               op.type.ToString()));
}

Bits ConstantOf(const ir::Op& op) {
  if (const double* real = std::get_if<double>(&op.constant)) {
    return FromReal(op.type.dtype, *real);
  }
  return FromInteger(op.type.dtype, std::get<int64_t>(op.constant));
}

// A tile of the op's type whose element at each index is what `element` says.
template <typename Element>
Tile Generate(const ir::Op& op, Element element) {
  Tile tile{op.type, std::vector<Bits>(op.type.elements())};
  ForEachIndex(op.type.shape,
               [&](const Index& index, size_t offset) { tile.elements[offset] = element(index); });
  return tile;
}

absl::StatusOr<Tile> Elementwise(const ir::Op& op, const Operands& operands) {
  const ir::DType dtype = operands[op.opcode == Opcode::kSelect ? 1 : 0]->type.dtype;
  Tile tile{op.type, {}};
  std::vector<Bits> at_one_place(operands.size());
  for (int64_t i = 0; i < op.type.elements(); ++i) {
    for (size_t k = 0; k < operands.size(); ++k) at_one_place[k] = operands[k]->elements[i];
    const std::optional<Bits> element = Apply(op, dtype, at_one_place);
    if (!element.has_value()) return Unknown(op);
    tile.elements.push_back(*element);
  }
  return tile;
}

// `opcode` of two numbers of one type.
Bits Combine(Opcode opcode, ir::DType dtype, Bits a, Bits b) {
  ir::Op op;
  op.opcode = opcode;
  op.type.dtype = dtype;
  return *Apply(op, dtype, {a, b});
}

Opcode CombinationOf(Opcode reduction, ir::DType dtype) {
  const bool is_bool = dtype == ir::DType::kBool;
  switch (reduction) {
    case Opcode::kSumOver:
      return Opcode::kAdd;
    case Opcode::kProductOver:
      return Opcode::kMul;
    case Opcode::kMaximumOver:
      return is_bool ? Opcode::kOr : Opcode::kMaximum;
    default:
      return is_bool ? Opcode::kAnd : Opcode::kMinimum;
  }
}

// As the opcode tells the order.
Bits ReduceInOrder(const ir::Op& op, ir::DType dtype, const std::vector<Bits>& elements) {
  const Opcode combination = CombinationOf(op.opcode, dtype);
  const auto lanes = static_cast<size_t>(op.index);
  std::vector<Bits> partials;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (i < lanes) {
      partials.push_back(elements[i]);
    } else {
      Bits& partial = partials[i % lanes];
      partial = Combine(combination, dtype, partial, elements[i]);
    }
  }
  const auto meet = [&](size_t k, size_t distance) {
    if (k + distance >= partials.size()) return;
    partials[k] = Combine(combination, dtype, partials[k], partials[k + distance]);
  };
  if (op.is_near) {
    for (size_t h = 1; h < lanes; h *= 2) {
      for (size_t k = 0; k < lanes; k += 2 * h) meet(k, h);
    }
  } else {
    for (size_t h = lanes / 2; h > 0; h /= 2) {
      for (size_t k = 0; k < h; ++k) meet(k, h);
    }
  }
  return partials[0];
}

Bits PlaceOfExtreme(const ir::Op& op, ir::DType dtype, const std::vector<Bits>& elements) {
  const Opcode beats = op.opcode == Opcode::kArgMaximum ? Opcode::kGreater : Opcode::kLess;
  size_t best = 0;
  for (size_t i = 1; i < elements.size() && !IsNan(dtype, elements[best]); ++i) {
    if (IsNan(dtype, elements[i]) || Combine(beats, dtype, elements[i], elements[best]) != 0) {
      best = i;
    }
  }
  return static_cast<Bits>(best);
}

Tile Reduce(const ir::Op& op, const Tile& operand) {
  return Generate(op, [&](const Index& index) {
    std::vector<Bits> elements;
    Index source = index;
    source.insert(source.begin() + op.axis, 0);
    for (int64_t i = 0; i < operand.type.shape[op.axis]; ++i) {
      source[op.axis] = i;
      elements.push_back(operand.elements[OffsetOf(operand.type.shape, source)]);
    }
    return ir::GivesPlace(op.opcode) ? PlaceOfExtreme(op, operand.type.dtype, elements)
                                     : ReduceInOrder(op, operand.type.dtype, elements);
  });
}

Bits ElementOfPair(const ir::Op& op, const Operands& operands, Index index) {
  const int64_t length = operands[0]->type.shape.back();
  const bool is_join = op.opcode == Opcode::kJoin;
  int64_t& place = index.back();
  const bool is_second = is_join ? place >= length : place % 2 != 0;
  place = is_join ? place - (is_second ? length : 0) : place / 2;
  return BroadcastElement(*operands[is_second ? 1 : 0], index);
}

Tile Scan(const ir::Op& op, const Tile& operand) {
  const auto add = [&](Bits a, Bits b) { return Combine(Opcode::kAdd, op.type.dtype, a, b); };
  const int64_t piece = op.index > 0 ? op.index : op.type.shape[op.axis];
  Tile tile = operand;
  ForEachIndex(op.type.shape, [&](const Index& index, size_t offset) {
    if (index[op.axis] % piece == 0) return;
    Index before = index;
    --before[op.axis];
    tile.elements[offset] =
        add(tile.elements[OffsetOf(op.type.shape, before)], operand.elements[offset]);
  });
  const Tile pieces = tile;
  ForEachIndex(op.type.shape, [&](const Index& index, size_t offset) {
    if (index[op.axis] < piece) return;
    Index last = index;
    last[op.axis] = piece - 1;
    Bits sum = pieces.elements[OffsetOf(op.type.shape, last)];
    for (last[op.axis] += piece; last[op.axis] < index[op.axis] / piece * piece;
         last[op.axis] += piece) {
      sum = add(sum, pieces.elements[OffsetOf(op.type.shape, last)]);
    }
    tile.elements[offset] = add(sum, pieces.elements[offset]);
  });
  return tile;
}

// A dot's operand as its products take it: in the type of the sum, rounded.
Tile Prepared(const ir::Op& op, const Tile& operand) {
  Tile tile{{op.type.dtype, operand.type.shape}, {}};
  ir::Op cast;
  cast.opcode = Opcode::kCast;
  cast.type = tile.type;
  for (Bits element : operand.elements) {
    const Bits wide = *Apply(cast, operand.type.dtype, {element});
    tile.elements.push_back(RoundTo(static_cast<ir::Precision>(op.index), wide));
  }
  return tile;
}

Tile Dot(const ir::Op& op, const Operands& operands) {
  const Tile a = Prepared(op, *operands[0]);
  const Tile b = Prepared(op, *operands[1]);
  const size_t rank = op.type.shape.size();
  const int64_t depth = a.type.shape.back();
  const size_t k_side = rank - 2 + static_cast<size_t>(op.axis);  // of b
  return Generate(op, [&](const Index& index) {
    Index in_a = index;
    Index in_b = index;
    in_b[2 * rank - 3 - k_side] = index.back();
    Bits sum = operands[2] != nullptr ? operands[2]->elements[OffsetOf(op.type.shape, index)] : 0;
    for (int64_t k = 0; k < depth; ++k) {
      in_a.back() = in_b[k_side] = k;
      sum = MultiplyAdd(op.type.dtype, a.elements[OffsetOf(a.type.shape, in_a)],
                        b.elements[OffsetOf(b.type.shape, in_b)], sum);
    }
    return sum;
  });
}

}  // namespace

absl::StatusOr<Tile> Evaluate(const ir::Op& op, const Operands& operands) {
  if (IsElementwise(op.opcode)) return Elementwise(op, operands);
  if (IsReduction(op.opcode)) return Reduce(op, *operands[0]);
  switch (op.opcode) {
    case Opcode::kConstant:
      return Tile{op.type, {ConstantOf(op)}};
    case Opcode::kIota:
      return Generate(op, [](const Index& index) { return index[0]; });
    case Opcode::kBroadcast:
      return Generate(op,
                      [&](const Index& index) { return BroadcastElement(*operands[0], index); });
    case Opcode::kReshape:
      return Tile{op.type, operands[0]->elements};
    case Opcode::kCumulativeSum:
      return Scan(op, *operands[0]);
    case Opcode::kDot:
      return Dot(op, operands);
    case Opcode::kTranspose:
      return Generate(op, [&](const Index& index) {
        Index source(index.size());
        for (size_t d = 0; d < index.size(); ++d) source[op.permutation[d]] = index[d];
        return BroadcastElement(*operands[0], source);
      });
    case Opcode::kJoin:
    case Opcode::kInterleave:
      return Generate(op, [&](const Index& index) { return ElementOfPair(op, operands, index); });
    case Opcode::kStage:
      return *operands[0];
    default:
      return Unknown(op);
  }
}

Bits AtomicStep(Opcode opcode, ir::DType dtype, Bits before, const std::vector<Bits>& operands) {
  switch (opcode) {
    case Opcode::kAtomicAdd:
      return Combine(Opcode::kAdd, dtype, before, operands[0]);
    case Opcode::kAtomicMaximum:
      return Combine(Opcode::kMaximum, dtype, before, operands[0]);
    case Opcode::kAtomicMinimum:
      return Combine(Opcode::kMinimum, dtype, before, operands[0]);
    case Opcode::kAtomicAnd:
      return Combine(Opcode::kAnd, dtype, before, operands[0]);
    case Opcode::kAtomicOr:
      return Combine(Opcode::kOr, dtype, before, operands[0]);
    case Opcode::kAtomicXor:
      return Combine(Opcode::kXor, dtype, before, operands[0]);
    default:
      return before == operands[0] ? operands[1] : before;
  }
}

}  // namespace phobos::compiler::interpreter
