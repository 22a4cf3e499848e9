// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/contraction/copies.h"

#include <algorithm>

#include "compiler/codegen/nvptx/plan/contraction/product.h"
#include "compiler/ir/equality.h"

namespace phobos::compiler::nvptx {
namespace {

using ir::Op;
using ir::Opcode;
using ir::ValueId;

constexpr int64_t kRingAlignment = 128;

int64_t BytesOf(const ir::Type& type) { return type.elements() * ir::ByteSize(type.dtype); }

// Whether a value is computed from its operands and its loop's index alone.
bool IsPure(const Op& op) {
  switch (op.opcode) {
    case Opcode::kConstant:
    case Opcode::kBlockId:
    case Opcode::kGridSize:
    case Opcode::kExtent:
    case Opcode::kScalarParam:
    case Opcode::kLoopIndex:
      return true;
    default:
      return ir::IsElementwise(op.opcode);
  }
}

bool LeavesEarly(const ir::Block& block) {
  return std::any_of(block.begin(), block.end(), [](const Op& op) {
    return op.opcode == Opcode::kBreak || op.opcode == Opcode::kContinue ||
           op.opcode == Opcode::kReturn ||
           std::any_of(op.regions.begin(), op.regions.end(), LeavesEarly);
  });
}

class Finder {
 public:
  Finder(const ir::Function& function, bool has_copies)
      : function_(function),
        has_copies_(has_copies),
        definitions_(ir::DefinitionsOf(function)),
        uses_(ir::UsesOf(function)),
        product_uses_(function.value_count) {}

  Copies Run() {
    CountProducts(function_.body);
    Find(function_.body, nullptr, 0);
    return std::move(found_);
  }

 private:
  void CountProducts(const ir::Block& block);
  void Find(const ir::Block& block, const Op* loop, int64_t ring);
  bool IsCopied(const Op& stage) const;
  bool IsUsedIn(const ir::Block& block, ValueId value) const;
  void MakeAhead(const Op& loop, int64_t ring);
  bool AddScalars(ValueId value, const std::set<ValueId>& inside, std::set<ValueId>* scalars) const;

  const ir::Function& function_;
  const bool has_copies_;
  const std::vector<const Op*> definitions_;
  const std::vector<int> uses_;    // by ValueId
  std::vector<int> product_uses_;  // as what is multiplied
  Copies found_;
};

void Finder::CountProducts(const ir::Block& block) {
  for (const Op& op : block) {
    for (size_t i = 0; op.opcode == Opcode::kDot && i < 2; ++i) {
      ++product_uses_[op.operands[i]];
      found_.operands.insert(definitions_[op.operands[i]]);
    }
    for (const ir::Block& region : op.regions) CountProducts(region);
  }
}

bool Finder::IsCopied(const Op& stage) const {
  if (!has_copies_ || found_.operands.count(&stage) == 0) return false;
  if (uses_[stage.result] != product_uses_[stage.result]) return false;
  const Op& load = *definitions_[stage.operands[0]];
  if (load.opcode != Opcode::kLoad || load.operands[0] != ir::kNoValue ||
      load.operands[1] != ir::kNoValue || function_.params[load.index].is_written) {
    return false;
  }
  const bool has_gather =
      std::any_of(load.subscripts.begin(), load.subscripts.end(),
                  [](const ir::Subscript& s) { return s.kind == ir::Subscript::Kind::kGather; });
  return !has_gather && load.subscripts.back().kind == ir::Subscript::Kind::kSlice &&
         SwizzleOf(load.type).has_value();
}

// Whether each product that reads the value is an op of `block` itself.
bool Finder::IsUsedIn(const ir::Block& block, ValueId value) const {
  int uses = 0;
  for (const Op& op : block) {
    if (op.opcode == Opcode::kDot) uses += (op.operands[0] == value) + (op.operands[1] == value);
  }
  return uses == uses_[value];
}

void Finder::Find(const ir::Block& block, const Op* loop, int64_t ring) {
  const bool leaves_early = LeavesEarly(block);
  for (const Op& op : block) {
    if (op.opcode == Opcode::kStage && IsCopied(op)) {
      found_.copies[&op] = {.load = definitions_[op.operands[0]],
                            .is_awaited = !leaves_early && IsUsedIn(block, op.result)};
    }
  }
  if (loop != nullptr && loop->stages > 1 && !leaves_early) {
    MakeAhead(*loop, ring);
    if (const auto made = found_.pipelines.find(loop); made != found_.pipelines.end()) {
      ring += made->second.buffers * made->second.buffer_bytes;
      found_.ring_bytes = std::max(found_.ring_bytes, ring);
    }
  }
  for (const Op& op : block) {
    for (const ir::Block& region : op.regions) {
      Find(region, op.opcode == Opcode::kFor ? &op : nullptr, ring);
    }
  }
}

// The scalars that `value` is computed from inside a loop; false: it cannot be computed ahead.
bool Finder::AddScalars(ValueId value, const std::set<ValueId>& inside,
                        std::set<ValueId>* scalars) const {
  if (inside.count(value) == 0 || scalars->count(value) > 0) return true;
  const Op& op = *definitions_[value];
  if (!IsPure(op)) return false;
  for (ValueId operand : op.operands) {
    if (!AddScalars(operand, inside, scalars)) return false;
  }
  scalars->insert(value);
  return true;
}

void Finder::MakeAhead(const Op& loop, int64_t ring) {
  const ir::Block& body = loop.regions[0];
  std::set<ValueId> inside;
  for (const Op& op : body) {
    if (op.result != ir::kNoValue) inside.insert(op.result);
  }
  Pipeline pipeline{.buffers = loop.stages, .offset = ring};
  std::set<ValueId> scalars;
  for (const Op& op : body) {
    const auto copy = found_.copies.find(&op);
    if (copy == found_.copies.end()) continue;
    bool is_ahead = true;
    std::set<ValueId> needed = scalars;
    for (const ir::Subscript& subscript : copy->second.load->subscripts) {
      is_ahead &= AddScalars(subscript.position, inside, &needed);
    }
    if (!is_ahead) continue;
    scalars = std::move(needed);
    copy->second.loop = &loop;
    copy->second.offset = pipeline.buffer_bytes;
    const int64_t bytes = BytesOf(op.type);
    pipeline.buffer_bytes += (bytes + kRingAlignment - 1) / kRingAlignment * kRingAlignment;
    pipeline.stages.push_back(&op);
  }
  if (pipeline.stages.empty()) return;
  for (const Op& op : body) {
    if (op.result != ir::kNoValue && scalars.count(op.result) > 0) pipeline.scalars.push_back(&op);
  }
  found_.pipelines[&loop] = std::move(pipeline);
}

}  // namespace

const Copy* Copies::AheadOf(const ir::Op& op) const {
  const auto found = copies.find(&op);
  return found != copies.end() && found->second.loop != nullptr ? &found->second : nullptr;
}

Copies FindCopies(const ir::Function& function, bool has_copies) {
  return Finder(function, has_copies).Run();
}

}  // namespace phobos::compiler::nvptx
