// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/race/brute_force.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace phobos::compiler::race {
namespace {

using ir::Opcode;

int64_t FloorDiv(int64_t a, int64_t b) {
  if (b == 0) return 0;
  int64_t quotient = a / b;
  if (a % b != 0 && (a < 0) != (b < 0)) --quotient;
  return quotient;
}

// The language's integers wrap; a sum or a product of two fits the wide type.
using Wide = __int128;
int64_t Wrapped(Wide value) { return static_cast<int64_t>(value); }

class Runner {
 public:
  Runner(const ir::Function& function, const SmallLaunch& launch,
         const std::array<int64_t, 3>& block, const OnTouch& on_touch)
      : f_(function), launch_(launch), block_(block), on_touch_(on_touch) {
    values_.resize(f_.value_count);
    vars_.resize(f_.vars.size());
    loops_.resize(f_.loop_count);
  }

  bool Run() {
    Block(f_.body);
    return holds_;
  }

 private:
  using Tile = std::vector<int64_t>;
  enum Flow { kNext, kBreak, kContinue, kReturn };

  Flow Block(const ir::Block& block) {
    for (const ir::Op& op : block) {
      if (Flow flow = Step(op); flow != kNext) return flow;
    }
    return kNext;
  }

  int64_t Scalar(ir::ValueId value) const { return values_[value][0]; }

  Flow Step(const ir::Op& op) {
    switch (op.opcode) {
      case Opcode::kBreak:
        return kBreak;
      case Opcode::kContinue:
        return kContinue;
      case Opcode::kReturn:
        return kReturn;
      case Opcode::kAssume:
        holds_ = holds_ && Scalar(op.operands[0]) != 0;
        return holds_ ? kNext : kReturn;
      case Opcode::kIf:
        return Block(op.regions[Scalar(op.operands[0]) != 0 ? 0 : 1]);
      case Opcode::kFor: {
        const int64_t hi = Scalar(op.operands[1]);
        const int64_t step = Scalar(op.operands[2]);
        for (Wide i = Scalar(op.operands[0]); step > 0 ? i < hi : i > hi; i += step) {
          loops_[op.index] = Wrapped(i);
          const Flow flow = Block(op.regions[0]);
          if (flow == kBreak) break;
          if (flow == kReturn) return kReturn;
        }
        return kNext;
      }
      case Opcode::kWhile:
        while (true) {
          Block(op.regions[0]);
          if (Scalar(op.regions[0].back().operands[0]) == 0) return kNext;
          const Flow flow = Block(op.regions[1]);
          if (flow == kBreak) return kNext;
          if (flow == kReturn) return kReturn;
        }
      case Opcode::kDeclareVar:
      case Opcode::kWriteVar:
        vars_[op.index] = values_[op.operands[0]];
        return kNext;
      default:
        if (ir::IsAccess(op.opcode)) {
          Touch(op);
          if (stopped_) return kReturn;
          if (op.result != ir::kNoValue) values_[op.result] = Tile(op.type.elements(), 0);
          return kNext;
        }
        if (op.result != ir::kNoValue) values_[op.result] = Compute(op);
        return kNext;
    }
  }

  Tile Compute(const ir::Op& op) {
    Tile result(op.type.elements());
    switch (op.opcode) {
      case Opcode::kReadVar:
        return vars_[op.index];
      case Opcode::kIota:
        for (size_t i = 0; i < result.size(); ++i) result[i] = static_cast<int64_t>(i);
        return result;
      default:
        break;
    }
    for (size_t i = 0; i < result.size(); ++i) {
      const auto v = [&](size_t n) {
        const Tile& tile = values_[op.operands[n]];
        return tile[tile.size() == 1 ? 0 : i];
      };
      result[i] = One(op, v);
    }
    return result;
  }

  template <typename V>
  int64_t One(const ir::Op& op, V v) {
    switch (op.opcode) {
      case Opcode::kConstant:
        return std::holds_alternative<int64_t>(op.constant) ? std::get<int64_t>(op.constant) : 0;
      case Opcode::kBlockId:
        return block_[op.axis];
      case Opcode::kGridSize:
        return launch_.grid[op.axis];
      case Opcode::kExtent:
        return launch_.extents[op.index];
      case Opcode::kScalarParam:
        return launch_.scalars[op.index];
      case Opcode::kLoopIndex:
        return loops_[op.index];
      case Opcode::kBroadcast:
        return v(0);
      case Opcode::kCast:
        return op.type.dtype == ir::DType::kBool ? v(0) != 0 : v(0);
      case Opcode::kAdd:
        return Wrapped(Wide{v(0)} + v(1));
      case Opcode::kSub:
        return Wrapped(Wide{v(0)} - v(1));
      case Opcode::kMul:
        return Wrapped(Wide{v(0)} * v(1));
      case Opcode::kNegate:
        return Wrapped(-Wide{v(0)});
      case Opcode::kFloorDiv:
        return FloorDiv(v(0), v(1));
      case Opcode::kMod:
        return v(1) == 0 ? 0 : Wrapped(v(0) - Wide{FloorDiv(v(0), v(1))} * v(1));
      case Opcode::kMinimum:
        return std::min(v(0), v(1));
      case Opcode::kMaximum:
        return std::max(v(0), v(1));
      case Opcode::kAnd:
        return v(0) & v(1);
      case Opcode::kOr:
        return v(0) | v(1);
      case Opcode::kNot:
        return v(0) == 0;
      case Opcode::kEqual:
        return v(0) == v(1);
      case Opcode::kNotEqual:
        return v(0) != v(1);
      case Opcode::kLess:
        return v(0) < v(1);
      case Opcode::kLessEqual:
        return v(0) <= v(1);
      case Opcode::kGreater:
        return v(0) > v(1);
      case Opcode::kGreaterEqual:
        return v(0) >= v(1);
      case Opcode::kSelect:
        return v(0) != 0 ? v(1) : v(2);
      default:
        std::abort();  // the kernels of these tests use no other op
    }
  }

  void Touch(const ir::Op& op) {
    const ir::Param& param = f_.params[op.index];
    Element element(op.subscripts.size());
    const ir::ValueId mask = ir::MaskOf(op);
    for (int64_t i = 0; i < op.type.elements(); ++i) {
      if (mask != ir::kNoValue && values_[mask][i] == 0) continue;
      bool inside = true;
      bool is_number = true;  // past the largest int64 nothing is inside
      int64_t rest = i;
      for (size_t d = element.size(); d-- > 0;) {
        const ir::Subscript& s = op.subscripts[d];
        element[d] = Scalar(s.position);
        if (s.kind == ir::Subscript::Kind::kSlice) {
          is_number =
              is_number && !__builtin_add_overflow(element[d], rest % s.length, &element[d]);
          rest /= s.length;
        }
        const ir::Dim& dim = param.dims[d];
        const int64_t extent = dim.extent >= 0 ? launch_.extents[dim.extent] : dim.literal;
        inside = inside && is_number && element[d] >= 0 && element[d] < extent;
      }
      if (inside && !on_touch_(op, element)) {
        stopped_ = true;
        return;
      }
    }
  }

  const ir::Function& f_;
  const SmallLaunch& launch_;
  const std::array<int64_t, 3>& block_;
  const OnTouch& on_touch_;
  std::vector<Tile> values_;
  std::vector<Tile> vars_;
  std::vector<int64_t> loops_;
  bool holds_ = true;
  bool stopped_ = false;
};

// Who touched an element so far: the first block that did, the first that wrote, and whether others
// did too.
struct Touched {
  int64_t toucher = -1;
  int64_t writer = -1;
  bool several = false;
};

}  // namespace

bool RunBlock(const ir::Function& function, const SmallLaunch& launch,
              const std::array<int64_t, 3>& block, const OnTouch& on_touch) {
  return Runner(function, launch, block, on_touch).Run();
}

std::string RaceIn(const ir::Function& function, const SmallLaunch& launch) {
  std::map<std::pair<int32_t, Element>, Touched> touched;
  std::string race;
  int64_t number = 0;
  for (int64_t z = 0; z < launch.grid[2]; ++z) {
    for (int64_t y = 0; y < launch.grid[1]; ++y) {
      for (int64_t x = 0; x < launch.grid[0]; ++x, ++number) {
        const bool holds =
            RunBlock(function, launch, {x, y, z}, [&](const ir::Op& op, const Element& element) {
              if (!function.params[op.index].is_written) return true;
              Touched& t = touched[{op.index, element}];
              if (t.toucher < 0) t.toucher = number;
              t.several |= t.toucher != number;
              if (op.opcode == Opcode::kStore && t.writer < 0) t.writer = number;
              if (t.writer >= 0 && t.several && race.empty()) {
                race = "block " + std::to_string(number) + " meets another in " +
                       function.params[op.index].name + " at line " + std::to_string(op.line);
              }
              return race.empty();
            });
        if (!holds) return "";
        if (!race.empty()) return race;
      }
    }
  }
  return race;
}

}  // namespace phobos::compiler::race
