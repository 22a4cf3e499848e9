// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/text/parser.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/text/scanner.h"

namespace phobos::compiler::ir {
namespace {

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
// What a function of the language stays far below, and its readers have memory and stack for.
constexpr int64_t kMaxValue = 1 << 20;
constexpr int64_t kMaxVariable = 1 << 16;
constexpr int64_t kMaxLoop = 1 << 16;
constexpr int64_t kMaxTileElements = 1 << 20;
constexpr size_t kMaxRank = 8;
constexpr int kMaxDepth = 600;

bool IsName(std::string_view word) { return !word.empty() && (word[0] < '0' || word[0] > '9'); }

// Whether `text` is a number of the type, whole.
template <typename Number>
bool IsRead(std::string_view text, Number* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

template <typename Named>
int32_t IndexOf(const std::vector<Named>& all, std::string_view name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
  return found == all.end() ? -1 : static_cast<int32_t>(found - all.begin());
}

class Parser {
 public:
  explicit Parser(std::string_view text) : scanner_(text) {}

  absl::StatusOr<Function> Run() {
    scanner_.TakeLineEnds();
    RETURN_IF_ERROR(ReadSignature());
    RETURN_IF_ERROR(ReadOptions());
    RETURN_IF_ERROR(EndLine());
    RETURN_IF_ERROR(ReadBlock(&function_.body, 0));
    if (!scanner_.IsAtEnd()) return scanner_.Error("this belongs to no region");
    return std::move(function_);
  }

 private:
  // ---- The first line.

  absl::StatusOr<std::string> ReadName(std::string_view of_what) {
    const std::string_view word = scanner_.Word();
    if (IsName(word)) return std::string(word);
    return scanner_.Refuse(absl::StrCat("the name of ", std::string(of_what), " is missing"));
  }

  absl::StatusOr<DType> ReadDType() {
    const std::string_view word = scanner_.Word();
    if (const std::optional<DType> dtype = DTypeNamed(word)) return *dtype;
    return scanner_.Refuse(absl::StrCat("`", std::string(word), "` is no element type"));
  }

  absl::Status ReadSignature() {
    if (!scanner_.TakeWord("kernel")) return scanner_.Error("a function begins with `kernel`");
    ASSIGN_OR_RETURN(function_.name, ReadName("the kernel"));
    RETURN_IF_ERROR(scanner_.Expect("("));
    while (!scanner_.Take(")")) {
      if (!function_.params.empty()) RETURN_IF_ERROR(scanner_.Expect(","));
      RETURN_IF_ERROR(ReadParam());
    }
    if (!scanner_.Take("extents [")) return absl::OkStatus();
    // A list in another order than that of the parameters, or with more.
    std::vector<Extent> listed;
    while (!scanner_.Take("]")) {
      if (!listed.empty()) RETURN_IF_ERROR(scanner_.Expect(","));
      ASSIGN_OR_RETURN(std::string name, ReadName("an extent"));
      if (IndexOf(listed, name) >= 0) return scanner_.Refuse("an extent is listed twice");
      listed.push_back({std::move(name)});
    }
    for (Param& param : function_.params) {
      for (Dim& dim : param.dims) {
        if (dim.extent < 0) continue;
        dim.extent = IndexOf(listed, function_.extents[dim.extent].name);
        if (dim.extent < 0) return scanner_.Error("an extent of a parameter is not listed");
      }
    }
    function_.extents = std::move(listed);
    return absl::OkStatus();
  }

  absl::Status ReadParam() {
    Param param;
    ASSIGN_OR_RETURN(param.name, ReadName("a parameter"));
    RETURN_IF_ERROR(scanner_.Expect(":"));
    ASSIGN_OR_RETURN(param.dtype, ReadDType());
    param.is_tensor = scanner_.Take("[");
    while (param.is_tensor && !scanner_.Take("]")) {
      if (!param.dims.empty()) RETURN_IF_ERROR(scanner_.Expect(","));
      ASSIGN_OR_RETURN(const Dim dim, ReadDim());
      param.dims.push_back(dim);
    }
    if (scanner_.TakeWord("aligned")) {
      ASSIGN_OR_RETURN(param.aligned_bytes, scanner_.Integer(1, kMaxInt64));
    }
    param.is_read = scanner_.TakeWord("in");
    param.is_written = scanner_.TakeWord("out");
    function_.params.push_back(std::move(param));
    return absl::OkStatus();
  }

  absl::StatusOr<Dim> ReadDim() {
    const absl::StatusOr<int64_t> literal = scanner_.Integer(0, kMaxInt64);
    if (literal.ok()) return Dim{-1, *literal};
    ASSIGN_OR_RETURN(std::string name, ReadName("an extent"));
    const int32_t known = IndexOf(function_.extents, name);
    if (known >= 0) return Dim{known};
    function_.extents.push_back({std::move(name)});
    return Dim{static_cast<int32_t>(function_.extents.size()) - 1};
  }

  // Settings and promises as they come, then the options of the function.
  absl::Status ReadOptions() {
    while (!scanner_.IsAtLineEnd() && !function_.fast_math) {
      ASSIGN_OR_RETURN(std::string name, ReadName("a setting"));
      if (scanner_.Take(":multiple=")) {
        const int32_t extent = IndexOf(function_.extents, name);
        if (extent < 0) return scanner_.Refuse(absl::StrCat("there is no extent ", name));
        ASSIGN_OR_RETURN(function_.extents[extent].multiple, scanner_.Integer(1, kMaxInt64));
      } else if (scanner_.Take("=\"")) {
        ASSIGN_OR_RETURN(std::string value, scanner_.RestOfQuoted());
        function_.settings.emplace_back(std::move(name), std::move(value));
      } else if (scanner_.Take("=")) {
        function_.settings.emplace_back(std::move(name), scanner_.Until(""));
      } else if (name == "fast_math") {
        function_.fast_math = true;
      } else {
        return scanner_.Error(absl::StrCat("the value of ", name, " is missing"));
      }
    }
    return TakeOptions();
  }

  // Takes the options off the end of the settings, among which ReadOptions put them.
  absl::Status TakeOptions() {
    if (const std::optional<std::string> grid = TakeLast("grid")) {
      function_.grid_dims_used = 0;
      for (char axis : *grid == "none" ? std::string() : *grid) {
        if (axis < 'x' || axis > 'z') return scanner_.Error("grid= takes x, y and z, or none");
        function_.grid_dims_used |= 1 << (axis - 'x');
      }
    }
    RETURN_IF_ERROR(TakeNumber("min_blocks", &function_.min_blocks));
    RETURN_IF_ERROR(TakeNumber("index_bits", &function_.index_bits));
    return TakeNumber("threads", &function_.threads);
  }

  std::optional<std::string> TakeLast(std::string_view name) {
    auto& settings = function_.settings;
    if (settings.empty() || settings.back().first != name) return std::nullopt;
    std::string value = std::move(settings.back().second);
    settings.pop_back();
    return value;
  }

  absl::Status TakeNumber(std::string_view name, int32_t* number) {
    const std::optional<std::string> text = TakeLast(name);
    if (!text.has_value()) return absl::OkStatus();
    Scanner value(*text);
    const absl::StatusOr<int64_t> read = value.Integer(0, kMaxInt32);
    if (!read.ok() || !value.IsAtEnd()) {
      return scanner_.Error(absl::StrCat(std::string(name), "= takes a whole number"));
    }
    *number = static_cast<int32_t>(*read);
    return absl::OkStatus();
  }

  // ---- Ops.

  absl::Status EndLine() {
    if (!scanner_.IsAtLineEnd()) return scanner_.Error("the line should end here");
    scanner_.TakeLineEnds();
    return absl::OkStatus();
  }

  // The ops up to the `}` of the region, or to the end of the text.
  absl::Status ReadBlock(Block* block, int depth) {
    if (depth > kMaxDepth) {
      return scanner_.Error(absl::StrCat("regions are nested deeper than ", kMaxDepth));
    }
    while (!scanner_.IsAtEnd() && !scanner_.StandsNext("}")) {
      Op op{};
      op.line = scanner_.line();
      op.column = scanner_.column();
      RETURN_IF_ERROR(ReadOp(&op, depth));
      block->push_back(std::move(op));
      RETURN_IF_ERROR(EndLine());
    }
    return absl::OkStatus();
  }

  absl::Status ReadOp(Op* op, int depth) {
    if (scanner_.StandsNext("%")) {
      ASSIGN_OR_RETURN(op->result, ReadValue());
      RETURN_IF_ERROR(scanner_.Expect(":"));
      ASSIGN_OR_RETURN(op->type, ReadType());
      RETURN_IF_ERROR(scanner_.Expect("="));
    }
    const std::string_view name = scanner_.Word();
    const std::optional<Opcode> opcode = OpcodeNamed(name);
    if (!opcode.has_value()) {
      return scanner_.Refuse(absl::StrCat("`", std::string(name), "` is no operation"));
    }
    op->opcode = *opcode;
    RETURN_IF_ERROR(ReadRest(op, depth));
    if (op->result != kNoValue) {
      types_.resize(std::max(types_.size(), static_cast<size_t>(op->result) + 1));
      types_[op->result] = op->type;
      function_.value_count = static_cast<int32_t>(types_.size());
    }
    return absl::OkStatus();
  }

  // What stands behind the opcode: a case for each that printer.cc has one for.
  absl::Status ReadRest(Op* op, int depth) {
    switch (op->opcode) {
      case Opcode::kConstant:
        return ReadConstant(op);
      case Opcode::kBlockId:
      case Opcode::kGridSize:
        return ReadAxis(op);
      case Opcode::kExtent:
        return ReadIndex(function_.extents, "extent", op);
      case Opcode::kScalarParam:
        return ReadIndex(function_.params, "parameter", op);
      case Opcode::kReadVar:
        return ReadVariable(op);
      case Opcode::kDeclareVar:
      case Opcode::kWriteVar:
        return ReadWrite(op);
      case Opcode::kLoopIndex:
        return ReadLoop(op);
      case Opcode::kTranspose:
        return ReadTranspose(op);
      case Opcode::kCumulativeSum:
        return ReadScan(op);
      case Opcode::kPowInt:
        return ReadPower(op);
      case Opcode::kDot:
        return ReadDot(op);
      case Opcode::kLoad:
        return ReadLoad(op);
      case Opcode::kStore:
        return ReadStore(op);
      case Opcode::kPrint:
        return ReadPrint(op);
      case Opcode::kFor:
        RETURN_IF_ERROR(ReadFor(op));
        return ReadRegion(op, depth);
      case Opcode::kWhile:
        RETURN_IF_ERROR(ReadRegion(op, depth));
        if (!scanner_.TakeWord("do")) return scanner_.Error("`do` is missing");
        return ReadRegion(op, depth);
      case Opcode::kIf:
        return ReadIf(op, depth);
      default:
        if (IsReduction(op->opcode)) return ReadReduction(op);
        return IsAtomic(op->opcode) ? ReadAtomic(op) : ReadOperands(op);
    }
  }

  absl::StatusOr<ValueId> ReadValue() {
    if (scanner_.TakeWord("none")) return kNoValue;
    RETURN_IF_ERROR(scanner_.Expect("%"));
    ASSIGN_OR_RETURN(const int64_t value, scanner_.Integer(0, kMaxValue));
    return static_cast<ValueId>(value);
  }

  absl::Status ReadOperand(Op* op) {
    ASSIGN_OR_RETURN(const ValueId value, ReadValue());
    op->operands.push_back(value);
    return absl::OkStatus();
  }

  absl::Status ReadOperands(Op* op) {
    if (scanner_.IsAtLineEnd()) return absl::OkStatus();
    do {
      RETURN_IF_ERROR(ReadOperand(op));
    } while (scanner_.Take(","));
    return absl::OkStatus();
  }

  // `word` and an operand, or kNoValue.
  absl::Status ReadOptional(std::string_view word, Op* op) {
    if (scanner_.TakeWord(word)) return ReadOperand(op);
    op->operands.push_back(kNoValue);
    return absl::OkStatus();
  }

  absl::StatusOr<Type> ReadType() {
    Type type;
    ASSIGN_OR_RETURN(type.dtype, ReadDType());
    if (!scanner_.Take("[")) return type;
    int64_t elements = 1;
    do {
      ASSIGN_OR_RETURN(const int64_t side, scanner_.Integer(1, kMaxTileElements));
      type.shape.push_back(side);
      elements *= side;
      if (elements > kMaxTileElements || type.shape.size() > kMaxRank) {
        return scanner_.Error(absl::StrCat("a tile has at most ", kMaxTileElements,
                                           " elements and ", kMaxRank, " dimensions"));
      }
    } while (scanner_.Take(","));
    RETURN_IF_ERROR(scanner_.Expect("]"));
    return type;
  }

  absl::Status ReadConstant(Op* op) {
    const DType dtype = op->type.dtype;
    if (dtype == DType::kBool) {
      const bool is_true = scanner_.TakeWord("true");
      if (!is_true && !scanner_.TakeWord("false")) return scanner_.Error("write true or false");
      op->constant = int64_t{is_true};
      return absl::OkStatus();
    }
    const std::string_view text = scanner_.Until("");
    bool is_read = false;
    if (IsFloat(dtype)) {
      double value = 0;
      is_read = IsRead(text, &value);
      op->constant = value;
    } else if (dtype == DType::kU64) {
      uint64_t value = 0;
      is_read = IsRead(text, &value);
      op->constant = static_cast<int64_t>(value);
    } else {
      int64_t value = 0;
      is_read = IsRead(text, &value);
      op->constant = value;
    }
    if (is_read) return absl::OkStatus();
    return scanner_.Refuse(
        absl::StrCat("`", std::string(text), "` is no constant of type ", op->type.ToString()));
  }

  absl::Status ReadAxis(Op* op) {
    const std::string_view axis = scanner_.Word();
    if (axis != "x" && axis != "y" && axis != "z") return scanner_.Refuse("write x, y or z");
    op->axis = axis[0] - 'x';
    return absl::OkStatus();
  }

  template <typename Named>
  absl::Status ReadIndex(const std::vector<Named>& all, std::string_view what, Op* op) {
    ASSIGN_OR_RETURN(const std::string name, ReadName(what));
    op->index = IndexOf(all, name);
    if (op->index >= 0) return absl::OkStatus();
    return scanner_.Refuse(absl::StrCat("there is no ", std::string(what), " ", name));
  }

  // $NUMBER:NAME, which makes the variable known.
  absl::Status ReadVariable(Op* op) {
    RETURN_IF_ERROR(scanner_.Expect("$"));
    ASSIGN_OR_RETURN(const int64_t index, scanner_.Integer(0, kMaxVariable));
    RETURN_IF_ERROR(scanner_.Expect(":"));
    auto& vars = function_.vars;
    vars.resize(std::max(vars.size(), static_cast<size_t>(index) + 1));
    vars[index].name = scanner_.Word();
    op->index = static_cast<int32_t>(index);
    return absl::OkStatus();
  }

  absl::Status ReadWrite(Op* op) {
    RETURN_IF_ERROR(ReadVariable(op));
    RETURN_IF_ERROR(scanner_.Expect(","));
    RETURN_IF_ERROR(ReadOperand(op));
    if (op->opcode != Opcode::kDeclareVar) return absl::OkStatus();
    ASSIGN_OR_RETURN(function_.vars[op->index].type, TypeOf(op->operands[0]));
    return absl::OkStatus();
  }

  absl::StatusOr<Type> TypeOf(ValueId value) {
    if (value >= 0 && static_cast<size_t>(value) < types_.size()) return types_[value];
    return scanner_.Error("this uses a value that no line before it makes");
  }

  absl::Status ReadLoop(Op* op) {
    RETURN_IF_ERROR(scanner_.Expect("loop"));
    ASSIGN_OR_RETURN(const int64_t loop, scanner_.Integer(0, kMaxLoop));
    op->index = static_cast<int32_t>(loop);
    function_.loop_count = std::max(function_.loop_count, op->index + 1);
    return absl::OkStatus();
  }

  absl::Status ReadTranspose(Op* op) {
    RETURN_IF_ERROR(ReadOperand(op));
    RETURN_IF_ERROR(scanner_.Expect(","));
    RETURN_IF_ERROR(scanner_.Expect("["));
    do {
      ASSIGN_OR_RETURN(const int64_t side, scanner_.Integer(0, kMaxRank - 1));
      op->permutation.push_back(static_cast<int32_t>(side));
    } while (scanner_.Take(","));
    return scanner_.Expect("]");
  }

  absl::Status ReadReduction(Op* op) {
    RETURN_IF_ERROR(ReadOperand(op));
    RETURN_IF_ERROR(ReadAttribute("axis", &op->axis));
    RETURN_IF_ERROR(ReadAttribute("lanes", &op->index));
    op->is_near = scanner_.TakeWord("near");
    return absl::OkStatus();
  }

  absl::Status ReadScan(Op* op) {
    RETURN_IF_ERROR(ReadOperand(op));
    RETURN_IF_ERROR(ReadAttribute("axis", &op->axis));
    if (!scanner_.TakeWord("pieces")) return absl::OkStatus();
    ASSIGN_OR_RETURN(const int64_t elements, scanner_.Integer(1, kMaxTileElements));
    op->index = static_cast<int32_t>(elements);
    return absl::OkStatus();
  }

  // A word and its number.
  absl::Status ReadAttribute(std::string_view word, int32_t* number) {
    if (!scanner_.TakeWord(word)) {
      return scanner_.Error(absl::StrCat("`", std::string(word), "` is missing"));
    }
    ASSIGN_OR_RETURN(const int64_t read, scanner_.Integer(0, kMaxTileElements));
    *number = static_cast<int32_t>(read);
    return absl::OkStatus();
  }

  absl::Status ReadPower(Op* op) {
    RETURN_IF_ERROR(ReadOperand(op));
    RETURN_IF_ERROR(scanner_.Expect(","));
    ASSIGN_OR_RETURN(const int64_t power, scanner_.Integer(0, kMaxInt32));
    op->index = static_cast<int32_t>(power);
    return absl::OkStatus();
  }

  absl::Status ReadDot(Op* op) {
    RETURN_IF_ERROR(ReadOperand(op));
    RETURN_IF_ERROR(scanner_.Expect(","));
    RETURN_IF_ERROR(ReadOperand(op));
    RETURN_IF_ERROR(ReadOptional("acc", op));
    if (scanner_.TakeWord("transposed")) op->axis = 1;
    if (scanner_.TakeWord("tf32")) op->index = static_cast<int32_t>(Precision::kTf32);
    if (scanner_.TakeWord("f16")) op->index = static_cast<int32_t>(Precision::kF16);
    return absl::OkStatus();
  }

  absl::Status ReadAccess(Op* op) {
    RETURN_IF_ERROR(ReadIndex(function_.params, "parameter", op));
    RETURN_IF_ERROR(scanner_.Expect("["));
    do {
      ASSIGN_OR_RETURN(const Subscript subscript, ReadSubscript());
      op->subscripts.push_back(subscript);
    } while (scanner_.Take(","));
    return scanner_.Expect("]");
  }

  absl::StatusOr<Subscript> ReadSubscript() {
    Subscript subscript{Subscript::Kind::kElement};
    if (scanner_.TakeWord("gather")) subscript.kind = Subscript::Kind::kGather;
    ASSIGN_OR_RETURN(subscript.position, ReadValue());
    if (subscript.kind == Subscript::Kind::kElement && scanner_.Take(":+")) {
      subscript.kind = Subscript::Kind::kSlice;
      ASSIGN_OR_RETURN(subscript.length, scanner_.Integer(1, kMaxTileElements));
    }
    return subscript;
  }

  absl::Status ReadLoad(Op* op) {
    RETURN_IF_ERROR(ReadAccess(op));
    RETURN_IF_ERROR(ReadOptional("fill", op));
    return ReadOptional("mask", op);
  }

  absl::Status ReadStore(Op* op) {
    RETURN_IF_ERROR(ReadAccess(op));
    RETURN_IF_ERROR(scanner_.Expect(","));
    RETURN_IF_ERROR(ReadOperand(op));
    ASSIGN_OR_RETURN(op->type, TypeOf(op->operands[0]));
    return ReadOptional("mask", op);
  }

  absl::Status ReadAtomic(Op* op) {
    RETURN_IF_ERROR(ReadAccess(op));
    RETURN_IF_ERROR(scanner_.Expect(","));
    RETURN_IF_ERROR(ReadOperands(op));
    if (op->operands.empty()) return scanner_.Error("a value is missing");
    if (op->result != kNoValue) return absl::OkStatus();
    ASSIGN_OR_RETURN(op->type, TypeOf(op->operands[0]));
    return absl::OkStatus();
  }

  // A text, and as often as there are operands one of them and a text.
  absl::Status ReadPrint(Op* op) {
    for (;;) {
      RETURN_IF_ERROR(scanner_.Expect("\""));
      ASSIGN_OR_RETURN(std::string text, scanner_.RestOfQuoted());
      op->texts.push_back(std::move(text));
      if (!scanner_.Take(",")) return absl::OkStatus();
      RETURN_IF_ERROR(ReadOperand(op));
      RETURN_IF_ERROR(scanner_.Expect(","));
    }
  }

  absl::Status ReadFor(Op* op) {
    RETURN_IF_ERROR(ReadLoop(op));
    for (std::string_view word : {"=", "to", "step"}) {
      RETURN_IF_ERROR(scanner_.Expect(word));
      RETURN_IF_ERROR(ReadOperand(op));
    }
    for (const auto& [word, hint] : {std::pair("unroll", &op->unroll), {"stages", &op->stages}}) {
      if (!scanner_.TakeWord(word)) continue;
      ASSIGN_OR_RETURN(const int64_t number, scanner_.Integer(1, kMaxInt32));
      *hint = static_cast<int32_t>(number);
    }
    return absl::OkStatus();
  }

  absl::Status ReadIf(Op* op, int depth) {
    RETURN_IF_ERROR(ReadOperand(op));
    RETURN_IF_ERROR(ReadRegion(op, depth));
    if (scanner_.TakeWord("else")) return ReadRegion(op, depth);
    op->regions.emplace_back();
    return absl::OkStatus();
  }

  absl::Status ReadRegion(Op* op, int depth) {
    RETURN_IF_ERROR(scanner_.Expect("{"));
    RETURN_IF_ERROR(EndLine());
    RETURN_IF_ERROR(ReadBlock(&op->regions.emplace_back(), depth + 1));
    return scanner_.Expect("}");
  }

  Scanner scanner_;
  Function function_;
  std::vector<Type> types_;  // by ValueId, of the values so far
};

}  // namespace

absl::StatusOr<Function> Parse(std::string_view text) { return Parser(text).Run(); }

}  // namespace phobos::compiler::ir
