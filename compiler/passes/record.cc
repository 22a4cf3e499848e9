// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/record.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/builder.h"
#include "compiler/passes/pipeline.h"

namespace phobos::compiler::passes {
namespace {

using ir::Op;
using ir::Opcode;
using ir::ValueId;

std::string_view NameOf(ShadowContent content) {
  switch (content) {
    case ShadowContent::kLastWrite:
      return "last_write";
    case ShadowContent::kFirstWrite:
      return "first_write";
    case ShadowContent::kLastRead:
      return "last_read";
    case ShadowContent::kFirstRead:
      return "first_read";
    case ShadowContent::kLastAtomic:
      return "last_atomic";
    case ShadowContent::kFirstAtomic:
      return "first_atomic";
    case ShadowContent::kStamp:
      return "stamp";
    case ShadowContent::kClash:
      return "clash";
  }
  return "";
}

// The two shadows that an access is recorded in.
std::pair<ShadowContent, ShadowContent> ContentsOf(Opcode access) {
  if (ir::IsAtomic(access)) return {ShadowContent::kLastAtomic, ShadowContent::kFirstAtomic};
  if (access == Opcode::kLoad) return {ShadowContent::kLastRead, ShadowContent::kFirstRead};
  return {ShadowContent::kLastWrite, ShadowContent::kFirstWrite};
}

// Whether two elements of the op's tile may be stored to one place.
bool MayClash(const Op& access) {
  return access.opcode == Opcode::kStore && access.type.elements() > 1 &&
         std::any_of(access.subscripts.begin(), access.subscripts.end(), [](const auto& subscript) {
           return subscript.kind == ir::Subscript::Kind::kGather;
         });
}

ir::Function WithoutBody(const ir::Function& function) {
  ir::Function copy = function;
  copy.body.clear();
  copy.value_count = 0;
  copy.settings.emplace_back("_ph_form", kRecorded);  // for who looks at the artifact
  copy.min_blocks = 0;  // it asks for more registers than the kernel that the promise is about
  return copy;
}

class Recorder {
 public:
  Recorder(const ir::Function& function, const std::set<int32_t>& proved)
      : function_(function),
        left_out_(proved),
        builder_(WithoutBody(function)),
        values_(function.value_count, ir::kNoValue) {}

  Recording Run() {
    FindScatters(function_.body);
    Survey(function_.body);
    AddShadows();
    if (!function_.body.empty()) {
      builder_.SetPlace(function_.body.front().line, function_.body.front().column);
    }
    MakeNumbers();
    Copy(function_.body);
    return {builder_.Finish(), std::move(shadows_)};
  }

 private:
  using Key = std::pair<int32_t, ShadowContent>;  // of a parameter

  bool IsRecorded(const Op& op) const {
    return ir::IsAccess(op.opcode) && function_.params[op.index].is_written &&
           !left_out_.contains(op.index);
  }

  // A proof is about different blocks: it does not say that a scatter writes no element twice.
  void FindScatters(const ir::Block& block) {
    for (const Op& op : block) {
      if (ir::IsAccess(op.opcode) && MayClash(op)) left_out_.erase(op.index);
      for (const ir::Block& region : op.regions) FindScatters(region);
    }
  }

  // Finds which shadows there are, and the lines of each.
  void Survey(const ir::Block& block) {
    for (const Op& op : block) {
      if (IsRecorded(op)) {
        const auto [last, first] = ContentsOf(op.opcode);
        lines_[{op.index, last}].insert(op.line);
        lines_[{op.index, first}].insert(op.line);
        if (MayClash(op)) {
          lines_[{op.index, ShadowContent::kStamp}].insert(op.line);
          lines_[{op.index, ShadowContent::kClash}].insert(op.line);
        }
      }
      for (const ir::Block& region : op.regions) Survey(region);
    }
  }

  void AddShadows() {
    for (const auto& [key, lines] : lines_) {
      const auto& [param, content] = key;
      const ir::Param& tensor = function_.params[param];
      shadow_params_[key] =
          builder_.AddTensor(absl::StrCat("_ph_", std::string(NameOf(content)), "_", tensor.name),
                             ir::DType::kU32, tensor.dims);
      shadows_.push_back({param, content, {lines.begin(), lines.end()}});
    }
  }

  // The block's number in the forms that shadows hold.
  void MakeNumbers() {
    ValueId number = ir::kNoValue;
    for (int32_t axis = 2; axis >= 0; --axis) {
      if ((function_.grid_dims_used >> axis & 1) == 0) continue;
      const ValueId own = builder_.BlockId(axis);
      if (number == ir::kNoValue) {
        number = own;
        continue;
      }
      number = builder_.Elementwise(Opcode::kMul, {number, builder_.GridSize(axis)});
      number = builder_.Elementwise(Opcode::kAdd, {number, own});
    }
    if (number == ir::kNoValue) number = builder_.Int(0);
    number = builder_.Cast(number, ir::DType::kU32);
    zero_ = builder_.Constant(ir::DType::kU32, int64_t{0});
    const ValueId one = builder_.Constant(ir::DType::kU32, int64_t{1});
    last_ = builder_.Elementwise(Opcode::kAdd, {number, one});
    first_ = builder_.Elementwise(Opcode::kNot, {number});
  }

  void Copy(const ir::Block& block) {
    for (const Op& op : block) {
      if (op.opcode == Opcode::kPrint) continue;  // the kernel itself says it
      builder_.SetPlace(op.line, op.column);
      if (IsRecorded(op)) RecordAccess(op);
      Op copy = op;
      for (ValueId& operand : copy.operands) operand = Mapped(operand);
      copy.subscripts = MappedSubscripts(op);
      // It is run once: what makes it large gains nothing.
      copy.unroll = 1;
      copy.stages = 1;
      for (size_t i = 0; i < op.regions.size(); ++i) {
        builder_.BeginRegion();
        Copy(op.regions[i]);
        copy.regions[i] = builder_.EndRegion();
      }
      builder_.SetPlace(op.line, op.column);
      const ValueId result = builder_.Append(std::move(copy), op.result != ir::kNoValue);
      if (op.result != ir::kNoValue) values_[op.result] = result;
    }
  }

  ValueId Mapped(ValueId value) const {
    return value == ir::kNoValue ? ir::kNoValue : values_[value];
  }

  std::vector<ir::Subscript> MappedSubscripts(const Op& access) const {
    std::vector<ir::Subscript> subscripts = access.subscripts;
    for (ir::Subscript& subscript : subscripts) subscript.position = Mapped(subscript.position);
    return subscripts;
  }

  void RecordAccess(const Op& access) {
    const ValueId mask = Mapped(ir::MaskOf(access));
    const auto [last, first] = ContentsOf(access.opcode);
    Raise(access, last, last_, mask);
    Raise(access, first, first_, mask);
    if (MayClash(access)) RecordClash(access, mask);
  }

  // Each element of the tile leaves its number where it is stored, and looks whether it is still
  // there when all have.
  void RecordClash(const Op& scatter, ValueId mask) {
    const int32_t stamp = shadow_params_[{scatter.index, ShadowContent::kStamp}];
    const ValueId own = ElementNumbers(scatter.type.shape);
    builder_.Store(stamp, MappedSubscripts(scatter), own, mask);
    const ValueId seen = builder_.Load(stamp, MappedSubscripts(scatter), own, mask);
    Raise(scatter, ShadowContent::kClash, last_,
          builder_.Elementwise(Opcode::kNotEqual, {seen, own}));
  }

  // Makes the shadow's elements at the access at least `number`, where the mask is true.
  void Raise(const Op& access, ShadowContent content, ValueId number, ValueId mask) {
    ValueId raised = Spread(number, access.type.shape);
    if (mask != ir::kNoValue) {
      const ValueId none = Spread(zero_, access.type.shape);
      raised = builder_.Elementwise(Opcode::kSelect, {mask, raised, none});
    }
    builder_.Atomic(Opcode::kAtomicMaximum, shadow_params_[{access.index, content}],
                    MappedSubscripts(access), {raised}, /*has_result=*/false);
  }

  ValueId Spread(ValueId scalar, const std::vector<int64_t>& shape) {
    return shape.empty() ? scalar : builder_.Broadcast(scalar, shape);
  }

  // 0, 1, 2 ... in the order of rows, as u32.
  ValueId ElementNumbers(const std::vector<int64_t>& shape) {
    ValueId sum = ir::kNoValue;
    int64_t distance = 1;
    for (size_t side = shape.size(); side-- > 0;) {
      ValueId numbers = builder_.Cast(builder_.Iota(shape[side]), ir::DType::kU32);
      if (distance > 1) {
        const ValueId factor = builder_.Constant(ir::DType::kU32, distance);
        numbers = builder_.Elementwise(Opcode::kMul, {numbers, Spread(factor, {shape[side]})});
      }
      if (shape.size() > 1) {
        std::vector<int64_t> thin(shape.size(), 1);
        thin[side] = shape[side];
        numbers = builder_.Broadcast(builder_.Reshape(numbers, thin), shape);
      }
      sum = sum == ir::kNoValue ? numbers : builder_.Elementwise(Opcode::kAdd, {sum, numbers});
      distance *= shape[side];
    }
    return sum;
  }

  const ir::Function& function_;
  std::set<int32_t> left_out_;  // tensors that need no shadows
  ir::Builder builder_;
  std::vector<ValueId> values_;  // in the recording, by ValueId in the original
  std::map<Key, std::set<int32_t>> lines_;
  std::map<Key, int32_t> shadow_params_;
  std::vector<Shadow> shadows_;
  ValueId zero_ = ir::kNoValue;
  ValueId last_ = ir::kNoValue;
  ValueId first_ = ir::kNoValue;
};

}  // namespace

Recording Record(const ir::Function& function, const std::set<int32_t>& proved) {
  return Recorder(function, proved).Run();
}

}  // namespace phobos::compiler::passes
