// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/codegen/random/source_text.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/equality.h"
#include "compiler/ir/printer.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;
using ir::Op;
using ir::Opcode;
using ir::ValueId;

// Between its operands.
const std::map<Opcode, std::string> kOperators = {
    {Opcode::kAdd, "+"},        {Opcode::kSub, "-"},          {Opcode::kMul, "*"},
    {Opcode::kDiv, "/"},        {Opcode::kFloorDiv, "//"},    {Opcode::kMod, "%"},
    {Opcode::kAnd, "&"},        {Opcode::kOr, "|"},           {Opcode::kXor, "^"},
    {Opcode::kShiftLeft, "<<"}, {Opcode::kShiftRight, ">>"},  {Opcode::kEqual, "=="},
    {Opcode::kNotEqual, "!="},  {Opcode::kLess, "<"},         {Opcode::kLessEqual, "<="},
    {Opcode::kGreater, ">"},    {Opcode::kGreaterEqual, ">="}};

// Of built-ins whose name is not that of the opcode.
const std::map<Opcode, std::string> kBuiltIns = {
    {Opcode::kMinimum, "minimum"}, {Opcode::kMaximum, "maximum"}, {Opcode::kSelect, "where"}};

std::string TypeName(DType dtype) { return absl::StrCat("ph.", std::string(ir::Name(dtype))); }

std::string NumberText(double number) {
  if (std::isnan(number)) return "ph.nan";
  if (std::isinf(number)) return number < 0 ? "-ph.inf" : "ph.inf";
  char text[32];
  const auto result =
      std::to_chars(text, text + sizeof text, number, std::chars_format::scientific);
  return std::string(text, result.ptr);
}

std::string ConstantText(const Op& op) {
  if (const double* number = std::get_if<double>(&op.constant)) return NumberText(*number);
  const int64_t bits = std::get<int64_t>(op.constant);
  if (op.type.dtype == DType::kBool) return bits != 0 ? "True" : "False";
  if (op.type.dtype == DType::kU64) return absl::StrCat(static_cast<uint64_t>(bits));
  return absl::StrCat(bits);
}

std::string AxisOf(const Op& op) { return std::string(1, "xyz"[op.axis]); }

class Writer {
 public:
  explicit Writer(const ir::Function& function)
      : function_(function), definitions_(ir::DefinitionsOf(function)) {}

  std::string Run() {
    text_ = "import phobos.lang as ph\n\n@ph.kernel\n";
    WritePromises();
    absl::StrAppend(&text_, "@ph.index_bits(", function_.index_bits, ")\ndef ", function_.name, "(",
                    absl::StrJoin(function_.params, ", ",
                                  [this](std::string* out, const ir::Param& param) {
                                    absl::StrAppend(out, param.name, ": ", ParamType(param));
                                  }),
                    "):\n");
    WriteBlock(function_.body, 1);
    return text_;
  }

 private:
  // One a line. An extent that no tensor has is none to the language.
  void WritePromises() {
    std::set<int32_t> extents;
    for (const ir::Param& param : function_.params) {
      for (const ir::Dim& dim : param.dims) extents.insert(dim.extent);
      WritePromise(param.name, param.aligned_bytes);
    }
    extents.erase(-1);
    for (int32_t extent : extents) {
      WritePromise(function_.extents[extent].name, function_.extents[extent].multiple);
    }
  }

  void WritePromise(const std::string& name, int64_t multiple) {
    if (multiple > 1) absl::StrAppend(&text_, "@ph.aligned(", name, "=", multiple, ")\n");
  }

  std::string ParamType(const ir::Param& param) const {
    if (!param.is_tensor) return TypeName(param.dtype);
    return absl::StrCat(
        "ph.tensor[", TypeName(param.dtype), "][",
        absl::StrJoin(param.dims, ", ",
                      [this](std::string* out, const ir::Dim& dim) {
                        absl::StrAppend(out, dim.extent >= 0 ? function_.extents[dim.extent].name
                                                             : absl::StrCat(dim.literal));
                      }),
        "]");
  }

  void WriteLine(int depth, const std::string& line) {
    absl::StrAppend(&text_, std::string(4 * depth, ' '), line, "\n");
  }

  void WriteBlock(const ir::Block& block, int depth) {
    if (block.empty()) WriteLine(depth, "pass");
    for (const Op& op : block) WriteOp(op, depth);
  }

  void WriteOp(const Op& op, int depth) {
    switch (op.opcode) {
      case Opcode::kConstant:
        WriteLine(depth, absl::StrCat(ValueName(op.result), ": ", TypeName(op.type.dtype), " = ",
                                      ConstantText(op)));
        return;
      case Opcode::kStore:
        WriteLine(depth, StoreText(op));
        return;
      case Opcode::kDeclareVar:
        WriteLine(depth, absl::StrCat(VarName(op), ": ph.var = ", ValueName(op.operands[0])));
        return;
      case Opcode::kWriteVar:
        WriteLine(depth, absl::StrCat(VarName(op), " = ", ValueName(op.operands[0])));
        return;
      case Opcode::kFor:
        WriteLine(depth, ForText(op));
        WriteBlock(op.regions[0], depth + 1);
        return;
      case Opcode::kWhile:
        WriteLine(depth, "while True:");
        WriteBlock(op.regions[0], depth + 1);
        WriteBlock(op.regions[1], depth + 1);
        return;
      case Opcode::kYield:
        WriteLine(depth, absl::StrCat("if not ", ValueName(op.operands[0]), ":"));
        WriteLine(depth + 1, "break");
        return;
      case Opcode::kIf:
        WriteLine(depth, absl::StrCat("if ", ValueName(op.operands[0]), ":"));
        WriteBlock(op.regions[0], depth + 1);
        WriteLine(depth, "else:");
        WriteBlock(op.regions[1], depth + 1);
        return;
      case Opcode::kAssume:  // is true anyway, and may stand at the top alone
        return;
      case Opcode::kBreak:
      case Opcode::kContinue:
      case Opcode::kReturn:
        WriteLine(depth, std::string(ir::Name(op.opcode)));
        return;
      default:
        WriteLine(depth, absl::StrCat(ValueName(op.result), ": ph.let = ", ExpressionOf(op)));
    }
  }

  std::string ExpressionOf(const Op& op) const {
    switch (op.opcode) {
      case Opcode::kBlockId:
        return absl::StrCat("ph.ctx.block.", AxisOf(op));
      case Opcode::kGridSize:
        return absl::StrCat("ph.ctx.grid.", AxisOf(op));
      case Opcode::kExtent:
        return function_.extents[op.index].name;
      case Opcode::kScalarParam:
        return function_.params[op.index].name;
      case Opcode::kReadVar:
        return VarName(op);
      case Opcode::kLoopIndex:
        return absl::StrCat("i", op.index);
      case Opcode::kIota:
        return absl::StrCat("ph.iota(", op.type.shape[0], ")");
      case Opcode::kBroadcast:
        return BroadcastText(op);
      case Opcode::kPowInt:
        return absl::StrCat(ValueName(op.operands[0]), " ** ", op.index);
      case Opcode::kNegate:
        return absl::StrCat("-", ValueName(op.operands[0]));
      case Opcode::kNot:
        return absl::StrCat("~", ValueName(op.operands[0]));
      case Opcode::kCast:
      case Opcode::kBitcast:
        return absl::StrCat("ph.", std::string(ir::Name(op.opcode)), "(", ValueName(op.operands[0]),
                            ", ", TypeName(op.type.dtype), ")");
      case Opcode::kLoad:
        return LoadText(op);
      case Opcode::kDot:
        return DotText(op);
      default:
        break;
    }
    if (const auto found = kOperators.find(op.opcode); found != kOperators.end()) {
      return absl::StrCat(ValueName(op.operands[0]), " ", found->second, " ",
                          ValueName(op.operands[1]));
    }
    const auto named = kBuiltIns.find(op.opcode);
    return absl::StrCat(
        "ph.", named != kBuiltIns.end() ? named->second : std::string(ir::Name(op.opcode)), "(",
        absl::StrJoin(op.operands, ", ",
                      [](std::string* out, ValueId v) { absl::StrAppend(out, ValueName(v)); }),
        ")");
  }

  std::string BroadcastText(const Op& op) const {
    const std::string value = ValueName(op.operands[0]);
    const std::string sides = absl::StrJoin(op.type.shape, ", ");
    if (definitions_[op.operands[0]]->type.is_scalar()) {
      if (op.type.is_scalar()) return value;
      return absl::StrCat("ph.full(", TypeName(op.type.dtype), ", ", value, ", ", sides, ")");
    }
    return absl::StrCat("ph.where(ph.full(ph.bool, True, ", sides, "), ", value, ", ", value, ")");
  }

  std::string AccessText(const Op& op) const {
    return absl::StrCat(function_.params[op.index].name, "[",
                        absl::StrJoin(op.subscripts, ", ",
                                      [](std::string* out, const ir::Subscript& subscript) {
                                        absl::StrAppend(out, ValueName(subscript.position));
                                        if (subscript.kind == ir::Subscript::Kind::kSlice) {
                                          absl::StrAppend(out, ":+", subscript.length);
                                        }
                                      }),
                        "]");
  }

  std::string LoadText(const Op& op) const {
    std::string text = absl::StrCat("ph.load(", AccessText(op));
    if (op.operands[0] != ir::kNoValue) {
      absl::StrAppend(&text, ", fill=", ValueName(op.operands[0]));
    }
    if (op.operands[1] != ir::kNoValue) {
      absl::StrAppend(&text, ", mask=", ValueName(op.operands[1]));
    }
    return text + ")";
  }

  std::string StoreText(const Op& op) const {
    const std::string value = ValueName(op.operands[0]);
    if (op.operands[1] == ir::kNoValue) return absl::StrCat(AccessText(op), " = ", value);
    return absl::StrCat("ph.store(", AccessText(op), ", ", value,
                        ", mask=", ValueName(op.operands[1]), ")");
  }

  std::string DotText(const Op& op) const {
    constexpr const char* kPrecisions[] = {"exact", "tf32", "f16"};
    std::string text = absl::StrCat(op.axis == 0 ? "ph.dot(" : "ph.dot_t(",
                                    ValueName(op.operands[0]), ", ", ValueName(op.operands[1]));
    if (op.index != 0) absl::StrAppend(&text, ", precision=\"", kPrecisions[op.index], "\"");
    text += ")";
    if (op.operands[2] == ir::kNoValue) return text;
    return absl::StrCat(ValueName(op.operands[2]), " + ", text);
  }

  std::string ForText(const Op& op) const {
    std::string text =
        absl::StrCat("for i", op.index, " in ph.range(", ValueName(op.operands[0]), ", ",
                     ValueName(op.operands[1]), ", ", ConstantText(*definitions_[op.operands[2]]));
    if (op.unroll != 1) absl::StrAppend(&text, ", unroll=", op.unroll);
    if (op.stages != 1) absl::StrAppend(&text, ", stages=", op.stages);
    return text + "):";
  }

  static std::string ValueName(ValueId value) { return absl::StrCat("v", value); }
  static std::string VarName(const Op& op) { return absl::StrCat("w", op.index); }

  const ir::Function& function_;
  const std::vector<const Op*> definitions_;
  std::string text_;
};

}  // namespace

std::string SourceOf(const ir::Function& function) { return Writer(function).Run(); }

}  // namespace phobos::compiler::testing
