// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/streams.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "compiler/ir/equality.h"

namespace phobos::compiler::nvptx {
namespace {

using ir::Op;
using ir::Opcode;

// A kernel writes little if it reads so many times as many bytes.
constexpr int64_t kMuch = 8;

// An access of a tensor, and the loops around it, the innermost last.
struct Touch {
  const Op* op = nullptr;
  std::vector<const Op*> loops;

  int64_t bytes() const { return op->type.elements() * ir::ByteSize(op->type.dtype); }
};

// What a place is computed from.
struct Sources {
  std::set<ir::ValueId> values;
  std::set<int32_t> axes;   // of the grid
  std::set<int32_t> loops;  // ids
};

class Finder {
 public:
  explicit Finder(const ir::Function& function)
      : function_(function), definitions_(ir::DefinitionsOf(function)) {}

  std::set<const Op*> Find() {
    std::vector<const Op*> loops;
    Visit(function_.body, &loops);
    std::set<const Op*> streams;
    int64_t read = 0;
    for (const Touch& load : loads_) {
      if (!IsReadOnce(load)) continue;
      streams.insert(load.op);
      read += load.bytes();
    }
    int64_t written = 0;
    for (const Touch& write : writes_) {
      written += write.bytes();
      for (const Touch& load : loads_) {
        if (streams.count(load.op) > 0 && !IsAsRare(write, load)) return {};
      }
    }
    return written * kMuch <= read ? streams : std::set<const Op*>();
  }

 private:
  void Visit(const ir::Block& block, std::vector<const Op*>* loops);
  bool IsReadOnce(const Touch& load) const;
  void AddSources(ir::ValueId value, Sources* sources) const;

  // Whether all loops around the write are around the load.
  static bool IsAsRare(const Touch& write, const Touch& load) {
    return write.loops.size() <= load.loops.size() &&
           std::equal(write.loops.begin(), write.loops.end(), load.loops.begin());
  }

  const ir::Function& function_;
  const std::vector<const Op*> definitions_;
  std::vector<Touch> loads_;
  std::vector<Touch> writes_;
  std::map<int32_t, const Op*> fors_;  // by loop id
  std::set<int32_t> axes_;             // of the grid, that the kernel reads
};

void Finder::Visit(const ir::Block& block, std::vector<const Op*>* loops) {
  for (const Op& op : block) {
    if (op.opcode == Opcode::kBlockId) axes_.insert(op.axis);
    if (op.opcode == Opcode::kLoad) loads_.push_back({&op, *loops});
    if (ir::WritesTensor(op.opcode)) writes_.push_back({&op, *loops});
    if (op.opcode == Opcode::kFor) fors_[op.index] = &op;
    const bool is_loop = op.opcode == Opcode::kFor || op.opcode == Opcode::kWhile;
    if (is_loop) loops->push_back(&op);
    for (const ir::Block& region : op.regions) Visit(region, loops);
    if (is_loop) loops->pop_back();
  }
}

// Each block, and each turn of the loops around it, reads other elements, as far as can be told
// from what the position is computed from.
bool Finder::IsReadOnce(const Touch& load) const {
  if (load.op->type.is_scalar() || function_.params[load.op->index].is_written) return false;
  const auto readers = std::count_if(loads_.begin(), loads_.end(), [&](const Touch& other) {
    return other.op->index == load.op->index;
  });
  if (readers > 1) return false;
  Sources sources;
  for (const ir::Subscript& subscript : load.op->subscripts) {
    if (subscript.kind == ir::Subscript::Kind::kGather) return false;
    AddSources(subscript.position, &sources);
  }
  return sources.axes == axes_ &&
         std::all_of(load.loops.begin(), load.loops.end(), [&](const Op* loop) {
           return loop->opcode == Opcode::kFor && sources.loops.count(loop->index) > 0;
         });
}

void Finder::AddSources(ir::ValueId value, Sources* sources) const {
  if (value == ir::kNoValue || !sources->values.insert(value).second) return;
  const Op& op = *definitions_[value];
  if (op.opcode == Opcode::kBlockId) sources->axes.insert(op.axis);
  if (op.opcode == Opcode::kLoopIndex) {
    sources->loops.insert(op.index);
    AddSources(fors_.at(op.index)->operands[0], sources);  // where it starts
  }
  for (ir::ValueId operand : op.operands) AddSources(operand, sources);
}

}  // namespace

std::set<const Op*> FindStreams(const ir::Function& function) { return Finder(function).Find(); }

}  // namespace phobos::compiler::nvptx
