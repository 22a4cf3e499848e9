// SPDX-License-Identifier: Apache-2.0
#include "compiler/race/witness.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "compiler/race/trace.h"

namespace phobos::compiler::race {
namespace {

using Block = std::array<int64_t, 3>;

// Ops followed in the whole search: some milliseconds.
constexpr int64_t kBudget = 400000;
// Ops followed in one block.
constexpr int64_t kBlockBudget = 4000;
constexpr size_t kMaxPairs = 16;
// Touches of one block that are compared.
constexpr size_t kMaxTouches = 256;

// Whether the mask, if any, lets the element of dimension masked_dim at `position` through.
bool Lets(const Touch& touch, int64_t position) {
  return touch.mask.empty() || touch.mask[position - touch.box[touch.masked_dim].lo];
}

bool Lets(const Touch& touch, const std::vector<int64_t>& element) {
  return touch.mask.empty() || Lets(touch, element[touch.masked_dim]);
}

// An element in both, if there is one.
std::optional<std::vector<int64_t>> Common(const Touch& a, const Touch& b) {
  std::vector<int64_t> element;
  for (size_t d = 0; d < a.box.size(); ++d) {
    const Interval both = Intersect(a.box[d], b.box[d]);
    if (both.empty()) return std::nullopt;
    element.push_back(both.lo);
  }
  for (const Touch* touch : {&a, &b}) {
    if (touch->mask.empty()) continue;
    const int32_t d = touch->masked_dim;
    const Interval both = Intersect(a.box[d], b.box[d]);
    while (element[d] <= both.hi && !(Lets(a, element) && Lets(b, element))) ++element[d];
    if (element[d] > both.hi) return std::nullopt;
  }
  return element;
}

class Search {
 public:
  Search(const ir::Function& function, const std::vector<Access>& accesses,
         const std::vector<Hint>& hints)
      : function_(function), accesses_(accesses) {
    ChoosePairs(hints);
    ChooseExtents();
  }

  std::optional<Witness> Run() {
    std::optional<Witness> witness = TryPairs();
    if (!witness.has_value()) witness = TryGrids();
    return witness;
  }

 private:
  // Two blocks where the proof got stuck, or next to each other, in launches of several sizes.
  std::optional<Witness> TryPairs() {
    for (const auto& [first, second] : pairs_) {
      for (const std::vector<int64_t>& extents : extents_) {
        for (int64_t scalar : scalars_) {
          for (int64_t spare : {0, 1, 65535}) {
            Launch launch = LaunchOf(extents, scalar);
            for (int32_t axis = 0; axis < 3; ++axis) {
              if (Uses(axis)) launch.grid[axis] = std::max(first[axis], second[axis]) + 1 + spare;
            }
            if (std::optional<Witness> witness = Try(launch, {first, second})) return witness;
            if (budget_ <= 0) return std::nullopt;
          }
        }
      }
    }
    return std::nullopt;
  }

  // All blocks of a few small grids.
  std::optional<Witness> TryGrids() {
    for (const Block& shape : {Block{16, 1, 1}, Block{5, 3, 1}, Block{1, 5, 2}, Block{3, 2, 2}}) {
      std::vector<Block> blocks;
      std::array<int64_t, 3> grid;
      for (int32_t axis = 0; axis < 3; ++axis) grid[axis] = Uses(axis) ? shape[axis] : 1;
      for (int64_t z = 0; z < grid[2]; ++z) {
        for (int64_t y = 0; y < grid[1]; ++y) {
          for (int64_t x = 0; x < grid[0]; ++x) blocks.push_back({x, y, z});
        }
      }
      for (const std::vector<int64_t>& extents : extents_) {
        for (int64_t scalar : scalars_) {
          Launch launch = LaunchOf(extents, scalar);
          launch.grid = grid;
          if (std::optional<Witness> witness = Try(launch, blocks)) return witness;
          if (budget_ <= 0) return std::nullopt;
        }
      }
    }
    return std::nullopt;
  }

  bool Uses(int32_t axis) const { return (function_.grid_dims_used >> axis & 1) != 0; }

  void ChoosePairs(const std::vector<Hint>& hints) {
    for (const Hint& hint : hints) {
      AddPair(std::min(hint.first, hint.second), std::max(hint.first, hint.second));
    }
    for (int32_t axis = 0; axis < 3; ++axis) {
      for (int64_t distance : {1, 2}) {
        Block next = {0, 0, 0};
        next[axis] = distance;
        AddPair({0, 0, 0}, next);
      }
    }
  }

  void AddPair(Block first, Block second) {
    for (int32_t axis = 0; axis < 3; ++axis) {
      if (!Uses(axis)) first[axis] = second[axis] = 0;
      // y and z have fewer blocks than x.
      const int64_t most = axis == 0 ? 1 << 20 : 65535;
      if (first[axis] < 0 || first[axis] >= most) return;
      if (second[axis] < 0 || second[axis] >= most) return;
    }
    const std::pair<Block, Block> pair(first, second);
    if (first == second || pairs_.size() >= kMaxPairs) return;
    if (std::find(pairs_.begin(), pairs_.end(), pair) == pairs_.end()) pairs_.push_back(pair);
  }

  // Extents worth trying: around the tiles' lengths, and a few small and one large one.
  void ChooseExtents() {
    std::set<int64_t> lengths;
    for (const Access& access : accesses_) {
      for (int64_t length : access.lengths) {
        if (length > 1 && lengths.size() < 4) lengths.insert(length);
      }
    }
    const bool has_scalars = std::any_of(
        function_.params.begin(), function_.params.end(),
        [](const ir::Param& param) { return !param.is_tensor && !ir::IsFloat(param.dtype); });
    scalars_ = has_scalars ? std::vector<int64_t>{1, 0, 3} : std::vector<int64_t>{0};
    std::vector<int64_t> sizes;
    for (int64_t length : lengths) {
      for (int64_t size : {4 * length, length, 2 * length + 1}) sizes.push_back(size);
    }
    for (int64_t size : {8, 1, 2, 3, 64, 1 << 20}) sizes.push_back(size);
    for (int64_t size : sizes) AddExtents(size, 0, size);
    // One extent larger than the others, or 0.
    for (size_t i = 0; i < function_.extents.size() && function_.extents.size() > 1; ++i) {
      AddExtents(2, i, 8);
      AddExtents(8, i, 32);
      AddExtents(8, i, 0);
    }
  }

  // All extents `size`, that of index `other` `other_size`; rounded up to what is promised.
  void AddExtents(int64_t size, size_t other, int64_t other_size) {
    std::vector<int64_t> extents;
    for (size_t i = 0; i < function_.extents.size(); ++i) {
      const int64_t multiple = std::max<int64_t>(function_.extents[i].multiple, 1);
      const int64_t wanted = i == other ? other_size : size;
      extents.push_back((wanted + multiple - 1) / multiple * multiple);
    }
    if (std::find(extents_.begin(), extents_.end(), extents) == extents_.end()) {
      extents_.push_back(std::move(extents));
    }
  }

  Launch LaunchOf(const std::vector<int64_t>& extents, int64_t scalar) const {
    Launch launch;
    launch.extents = extents;
    for (const ir::Param& param : function_.params) {
      const bool is_int = !param.is_tensor && !ir::IsFloat(param.dtype);
      const int64_t value = param.dtype == ir::DType::kBool ? scalar != 0 : scalar;
      launch.scalars.push_back(is_int ? std::optional<int64_t>(value) : std::nullopt);
    }
    return launch;
  }

  // Whether any two of the blocks meet.
  std::optional<Witness> Try(const Launch& launch, const std::vector<Block>& blocks) {
    if (!IsAllowed(launch)) return std::nullopt;
    std::vector<std::vector<Touch>> touches;
    for (size_t i = 0; i < blocks.size(); ++i) {
      std::optional<std::vector<Touch>> one = Trace(launch, blocks[i]);
      if (!one.has_value()) return std::nullopt;
      touches.push_back(*std::move(one));
      for (size_t j = 0; j < i; ++j) {
        if (std::optional<Witness> witness =
                Meet(launch, blocks[j], touches[j], blocks[i], touches[i])) {
          return witness;
        }
      }
    }
    return std::nullopt;
  }

  // Not of launches that no chip takes, nor of tensors that are refused where offsets have 32 bits.
  bool IsAllowed(const Launch& launch) const {
    if (launch.grid[1] > 65535 || launch.grid[2] > 65535) return false;
    for (const ir::Param& param : function_.params) {
      __int128 elements = 1;
      for (const ir::Dim& dim : param.dims) {
        elements *= dim.extent >= 0 ? launch.extents[dim.extent] : dim.literal;
        if (elements > std::numeric_limits<int32_t>::max()) return false;
      }
    }
    return true;
  }

  std::optional<std::vector<Touch>> Trace(const Launch& launch, const Block& block) {
    int64_t budget = std::min(kBlockBudget, budget_);
    const int64_t before = budget;
    std::optional<std::vector<Touch>> touches = TraceBlock(function_, launch, block, &budget);
    budget_ -= before - budget + 1;
    if (touches.has_value() && touches->size() > kMaxTouches) touches->resize(kMaxTouches);
    return touches;
  }

  std::optional<Witness> Meet(const Launch& launch, const Block& first, const std::vector<Touch>& a,
                              const Block& second, const std::vector<Touch>& b) {
    for (const Touch& one : a) {
      for (const Touch& other : b) {
        --budget_;
        if (one.op->index != other.op->index || !Conflict(*one.op, *other.op)) continue;
        std::optional<std::vector<int64_t>> element = Common(one, other);
        if (!element.has_value()) continue;
        Witness witness;
        witness.launch_extents = launch.extents;
        witness.launch_scalars = launch.scalars;
        witness.grid = launch.grid;
        witness.blocks = {first, second};
        witness.lines = {one.op->line, other.op->line};
        witness.writes = {ir::WritesTensor(one.op->opcode), ir::WritesTensor(other.op->opcode)};
        witness.param = one.op->index;
        witness.element = *std::move(element);
        return witness;
      }
    }
    return std::nullopt;
  }

  const ir::Function& function_;
  const std::vector<Access>& accesses_;
  std::vector<std::pair<Block, Block>> pairs_;
  std::vector<std::vector<int64_t>> extents_;
  std::vector<int64_t> scalars_;
  int64_t budget_ = kBudget;
};

}  // namespace

std::optional<Witness> FindWitness(const ir::Function& function,
                                   const std::vector<Access>& accesses,
                                   const std::vector<Hint>& hints) {
  return Search(function, accesses, hints).Run();
}

}  // namespace phobos::compiler::race
