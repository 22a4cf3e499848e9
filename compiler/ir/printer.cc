// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/printer.h"

#include <charconv>
#include <iterator>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace phobos::compiler::ir {
namespace {

// In the order of Opcode.
constexpr std::string_view kNames[] = {
    "constant",   "block_id",   "grid_size",  "extent",     "scalar",     "iota",
    "read",       "loop_index", "broadcast",  "reshape",    "transpose",  "join",
    "interleave", "add",        "sub",        "mul",        "div",        "floordiv",
    "mod",        "powi",       "neg",        "abs",        "min",        "max",
    "mulhi",      "fma",        "shl",        "shr",        "and",        "or",
    "xor",        "not",        "random_u32", "exp",        "exp2",       "expm1",
    "log",        "log2",       "log1p",      "pow",        "sqrt",       "rsqrt",
    "sin",        "cos",        "tanh",       "erf",        "sigmoid",    "floor",
    "ceil",       "round",      "isnan",      "isinf",      "eq",         "ne",
    "lt",         "le",         "gt",         "ge",         "select",     "cast",
    "bitcast",    "sum",        "prod",       "reduce_max", "reduce_min", "argmax",
    "argmin",     "cumsum",     "dot",        "load",       "store",      "atomic_add",
    "atomic_max", "atomic_min", "atomic_and", "atomic_or",  "atomic_xor", "atomic_cas",
    "print",      "declare",    "write",      "for",        "while",      "if",
    "yield",      "break",      "continue",   "return",     "assume",     "stage",
};
static_assert(std::size(kNames) == static_cast<size_t>(Opcode::kStage) + 1);

std::string ValueName(ValueId value) {
  return value == kNoValue ? std::string("none") : absl::StrCat("%", value);
}

std::string Values(const std::vector<ValueId>& values) {
  return absl::StrJoin(values, ", ",
                       [](std::string* out, ValueId v) { absl::StrAppend(out, ValueName(v)); });
}

// The shortest text that reads back as the same double.
std::string DoubleText(double value) {
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end);
}

std::string ConstantText(const Op& op) {
  if (const double* value = std::get_if<double>(&op.constant)) return DoubleText(*value);
  const int64_t bits = std::get<int64_t>(op.constant);
  if (op.type.dtype == DType::kBool) return bits != 0 ? "true" : "false";
  if (op.type.dtype == DType::kU64) return absl::StrCat(static_cast<uint64_t>(bits));
  return absl::StrCat(bits);
}

std::string AxisName(int32_t axis) {
  constexpr const char* kNames[] = {"x", "y", "z"};
  return axis >= 0 && axis < 3 ? kNames[axis] : "?";
}

// Indices may be wrong in a function that the verifier is about to complain of.
std::string ParamName(const Function& function, int32_t index) {
  if (index < 0 || index >= static_cast<int32_t>(function.params.size())) return "?";
  return function.params[index].name;
}

std::string ExtentName(const Function& function, int32_t index) {
  if (index < 0 || index >= static_cast<int32_t>(function.extents.size())) return "?";
  return function.extents[index].name;
}

// A variable by number and name: two may share a name.
std::string VarName(const Function& function, int32_t index) {
  if (index < 0 || index >= static_cast<int32_t>(function.vars.size())) return "$?";
  return absl::StrCat("$", index, ":", function.vars[index].name);
}

std::string SubscriptText(const Subscript& subscript) {
  std::string position = ValueName(subscript.position);
  switch (subscript.kind) {
    case Subscript::Kind::kElement:
      return position;
    case Subscript::Kind::kSlice:
      return absl::StrCat(position, ":+", subscript.length);
    case Subscript::Kind::kGather:
      return absl::StrCat("gather ", position);
  }
  return "?";
}

std::string AccessText(const Function& function, const Op& op) {
  return absl::StrCat(ParamName(function, op.index), "[",
                      absl::StrJoin(op.subscripts, ", ",
                                    [](std::string* out, const Subscript& s) {
                                      absl::StrAppend(out, SubscriptText(s));
                                    }),
                      "]");
}

ValueId OperandAt(const Op& op, size_t i) {
  return i < op.operands.size() ? op.operands[i] : kNoValue;
}

std::string LoadText(const Function& function, const Op& op) {
  std::string text = absl::StrCat("load ", AccessText(function, op));
  if (OperandAt(op, 0) != kNoValue) {
    absl::StrAppend(&text, " fill ", ValueName(OperandAt(op, 0)));
  }
  if (OperandAt(op, 1) != kNoValue) {
    absl::StrAppend(&text, " mask ", ValueName(OperandAt(op, 1)));
  }
  return text;
}

std::string StoreText(const Function& function, const Op& op) {
  std::string text =
      absl::StrCat("store ", AccessText(function, op), ", ", ValueName(OperandAt(op, 0)));
  if (OperandAt(op, 1) != kNoValue) {
    absl::StrAppend(&text, " mask ", ValueName(OperandAt(op, 1)));
  }
  return text;
}

std::string DotText(const Op& op) {
  std::string text =
      absl::StrCat("dot ", ValueName(OperandAt(op, 0)), ", ", ValueName(OperandAt(op, 1)));
  if (OperandAt(op, 2) != kNoValue) {
    absl::StrAppend(&text, " acc ", ValueName(OperandAt(op, 2)));
  }
  if (op.axis != 0) absl::StrAppend(&text, " transposed");
  if (op.index == static_cast<int32_t>(Precision::kTf32)) absl::StrAppend(&text, " tf32");
  if (op.index == static_cast<int32_t>(Precision::kF16)) absl::StrAppend(&text, " f16");
  return text;
}

std::string PrintText(const Op& op) {
  std::string text = "print";
  for (size_t i = 0; i < op.texts.size(); ++i) {
    if (i > 0) absl::StrAppend(&text, ", ", ValueName(OperandAt(op, i - 1)), ",");
    absl::StrAppend(&text, " \"", absl::CEscape(op.texts[i]), "\"");
  }
  return text;
}

std::string ForText(const Op& op) {
  std::string text =
      absl::StrCat("for loop", op.index, " = ", ValueName(OperandAt(op, 0)), " to ",
                   ValueName(OperandAt(op, 1)), " step ", ValueName(OperandAt(op, 2)));
  if (op.unroll != 1) absl::StrAppend(&text, " unroll ", op.unroll);
  if (op.stages != 1) absl::StrAppend(&text, " stages ", op.stages);
  return text;
}

// What stands after "%result: type = ", or the whole line of an op without a result.
std::string OpText(const Function& function, const Op& op) {
  const std::string name(Name(op.opcode));
  switch (op.opcode) {
    case Opcode::kConstant:
      return absl::StrCat(name, " ", ConstantText(op));
    case Opcode::kBlockId:
    case Opcode::kGridSize:
      return absl::StrCat(name, " ", AxisName(op.axis));
    case Opcode::kExtent:
      return absl::StrCat(name, " ", ExtentName(function, op.index));
    case Opcode::kScalarParam:
      return absl::StrCat(name, " ", ParamName(function, op.index));
    case Opcode::kReadVar:
      return absl::StrCat(name, " ", VarName(function, op.index));
    case Opcode::kDeclareVar:
    case Opcode::kWriteVar:
      return absl::StrCat(name, " ", VarName(function, op.index), ", ", Values(op.operands));
    case Opcode::kLoopIndex:
      return absl::StrCat(name, " loop", op.index);
    case Opcode::kTranspose:
      return absl::StrCat(name, " ", Values(op.operands), ", [",
                          absl::StrJoin(op.permutation, ", "), "]");
    case Opcode::kCumulativeSum:
      return absl::StrCat(name, " ", Values(op.operands), " axis ", op.axis,
                          op.index > 0 ? absl::StrCat(" pieces ", op.index) : "");
    case Opcode::kPowInt:
      return absl::StrCat(name, " ", Values(op.operands), ", ", op.index);
    case Opcode::kDot:
      return DotText(op);
    case Opcode::kLoad:
      return LoadText(function, op);
    case Opcode::kStore:
      return StoreText(function, op);
    case Opcode::kPrint:
      return PrintText(op);
    case Opcode::kFor:
      return ForText(op);
    default:
      if (IsReduction(op.opcode)) {
        return absl::StrCat(name, " ", Values(op.operands), " axis ", op.axis, " lanes ", op.index,
                            op.is_near ? " near" : "");
      }
      if (IsAtomic(op.opcode)) {
        return absl::StrCat(name, " ", AccessText(function, op), ", ", Values(op.operands));
      }
      return op.operands.empty() ? name : absl::StrCat(name, " ", Values(op.operands));
  }
}

std::string DimText(const Function& function, const Dim& dim) {
  return dim.extent >= 0 ? ExtentName(function, dim.extent) : absl::StrCat(dim.literal);
}

std::string ParamText(const Function& function, const Param& param) {
  std::string text = absl::StrCat(param.name, ": ", std::string(Name(param.dtype)));
  if (param.is_tensor) {
    absl::StrAppend(&text, "[",
                    absl::StrJoin(param.dims, ", ",
                                  [&](std::string* out, const Dim& dim) {
                                    absl::StrAppend(out, DimText(function, dim));
                                  }),
                    "]");
  }
  if (param.aligned_bytes > 1) absl::StrAppend(&text, " aligned ", param.aligned_bytes);
  if (param.is_read) absl::StrAppend(&text, " in");
  if (param.is_written) absl::StrAppend(&text, " out");
  return text;
}

// Whether the extents are in the order in which the parameters name them.
bool ParamsNameExtentsInOrder(const Function& function) {
  int32_t named = 0;
  for (const Param& param : function.params) {
    for (const Dim& dim : param.dims) {
      if (dim.extent > named) return false;
      if (dim.extent == named) ++named;
    }
  }
  return named == static_cast<int32_t>(function.extents.size());
}

std::string SettingText(std::string_view value) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._";
  if (!value.empty() && value.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(value);
  }
  return absl::StrCat("\"", absl::CEscape(std::string(value)), "\"");
}

// "xz" for the first and third.
std::string GridText(int32_t dims) {
  std::string text;
  for (int32_t axis = 0; axis < 3; ++axis) {
    if ((dims >> axis) & 1) text += AxisName(axis);
  }
  return text.empty() ? "none" : text;
}

std::string HeaderText(const Function& function) {
  std::string text = absl::StrCat("kernel ", function.name, "(",
                                  absl::StrJoin(function.params, ", ",
                                                [&](std::string* out, const Param& param) {
                                                  absl::StrAppend(out, ParamText(function, param));
                                                }),
                                  ")");
  if (!ParamsNameExtentsInOrder(function)) {
    absl::StrAppend(&text, " extents [",
                    absl::StrJoin(function.extents, ", ",
                                  [](std::string* out, const Extent& extent) {
                                    absl::StrAppend(out, extent.name);
                                  }),
                    "]");
  }
  for (const auto& [name, value] : function.settings) {
    absl::StrAppend(&text, " ", name, "=", SettingText(value));
  }
  for (const Extent& extent : function.extents) {
    if (extent.multiple > 1) {
      absl::StrAppend(&text, " ", extent.name, ":multiple=", extent.multiple);
    }
  }
  absl::StrAppend(&text, " threads=", function.threads, " index_bits=", function.index_bits);
  if (function.min_blocks != 0) absl::StrAppend(&text, " min_blocks=", function.min_blocks);
  if (function.grid_dims_used != 7) {
    absl::StrAppend(&text, " grid=", GridText(function.grid_dims_used));
  }
  if (function.fast_math) absl::StrAppend(&text, " fast_math");
  return text;
}

void PrintBlock(const Function& function, const Block& block, int depth, std::string* out);

void PrintOp(const Function& function, const Op& op, int depth, std::string* out) {
  absl::StrAppend(out, std::string(2 * depth, ' '), Print(function, op));
  for (size_t i = 0; i < op.regions.size(); ++i) {
    // An `if` without an else is shown without one.
    if (op.opcode == Opcode::kIf && i == 1 && op.regions[1].empty()) break;
    if (i > 0) absl::StrAppend(out, op.opcode == Opcode::kIf ? " else" : " do");
    absl::StrAppend(out, " {\n");
    PrintBlock(function, op.regions[i], depth + 1, out);
    absl::StrAppend(out, std::string(2 * depth, ' '), "}");
  }
  absl::StrAppend(out, "\n");
}

void PrintBlock(const Function& function, const Block& block, int depth, std::string* out) {
  for (const Op& op : block) PrintOp(function, op, depth, out);
}

}  // namespace

std::string Print(const Function& function, const Op& op) {
  if (op.result == kNoValue) return OpText(function, op);
  return absl::StrCat(ValueName(op.result), ": ", op.type.ToString(), " = ", OpText(function, op));
}

std::string Print(const Function& function) {
  std::string out = absl::StrCat(HeaderText(function), "\n");
  PrintBlock(function, function.body, 1, &out);
  return out;
}

int PrintedAxes(const Function& function) {
  if ((function.grid_dims_used & 4) != 0) return 3;
  return (function.grid_dims_used & 2) != 0 ? 2 : 1;
}

std::string PrintFormat(const Function& function, const std::vector<const Op*>& definitions,
                        const Op& print) {
  std::string format = absl::StrCat(function.name, " block ");
  for (int axis = 0; axis < PrintedAxes(function); ++axis) {
    absl::StrAppend(&format, axis > 0 ? ", " : "", "{i64}");
  }
  format += ": ";
  for (size_t i = 0; i < print.texts.size(); ++i) {
    absl::StrAppend(&format, absl::StrReplaceAll(print.texts[i], {{"{", "{{"}}));
    if (i == print.operands.size()) break;
    absl::StrAppend(&format, "{", definitions[print.operands[i]]->type.ToString(), "}");
  }
  return format + "\n";
}

std::string_view Name(Opcode opcode) { return kNames[static_cast<size_t>(opcode)]; }

std::optional<Opcode> OpcodeNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<Opcode>(i);
  }
  return std::nullopt;
}

}  // namespace phobos::compiler::ir
