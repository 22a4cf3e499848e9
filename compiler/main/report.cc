// SPDX-License-Identifier: Apache-2.0
#include "compiler/main/report.h"

#include <algorithm>
#include <map>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "base/concat.h"

namespace phobos::compiler {
namespace {

constexpr size_t kShownChoices = 16;

// Rows of cells whose columns line up.
class Table {
 public:
  // `right`: the indexes of columns of numbers.
  explicit Table(std::vector<size_t> right) : right_(std::move(right)) {}

  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  // Each line after `indent`, without blanks at its end.
  std::string Text(std::string_view indent) const {
    std::vector<size_t> widths;
    for (const std::vector<std::string>& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string out;
    for (const std::vector<std::string>& row : rows_) {
      std::string line(indent);
      for (size_t i = 0; i < row.size(); ++i) {
        if (widths[i] == 0) continue;
        const std::string blanks(widths[i] - row[i].size(), ' ');
        const bool is_right = std::find(right_.begin(), right_.end(), i) != right_.end();
        Append(&line, is_right ? blanks : "", row[i], is_right ? "" : blanks, "  ");
      }
      while (!line.empty() && line.back() == ' ') line.pop_back();
      Append(&out, line, "\n");
    }
    return out;
  }

 private:
  std::vector<size_t> right_;
  std::vector<std::vector<std::string>> rows_;
};

std::string TypeName(const v1::Parameter& parameter) {
  const std::string dtype =
      absl::AsciiStrToLower(v1::DType_Name(parameter.dtype()).substr(sizeof("DTYPE_") - 1));
  if (!parameter.is_tensor()) return dtype;
  std::string dims;
  for (const v1::Dimension& dim : parameter.dims()) {
    Append(&dims, dims.empty() ? "" : ", ",
           dim.extent().empty() ? Concat(dim.literal()) : dim.extent());
  }
  return Concat(dtype, "[", dims, "]");
}

std::string Use(const v1::Parameter& parameter) {
  if (!parameter.is_tensor()) return "scalar";
  if (parameter.is_read()) return parameter.is_written() ? "read and written" : "read";
  return parameter.is_written() ? "written" : "not used";
}

std::string Choices(const sema::TunedConstant& constant) {
  std::string out;
  for (size_t i = 0; i < std::min(constant.choices.size(), kShownChoices); ++i) {
    Append(&out, out.empty() ? "" : " ", sema::ToString(constant.choices[i]));
  }
  if (constant.choices.size() > kShownChoices)
    Append(&out, " ... (", constant.choices.size(), " values)");
  return out;
}

std::string LiteralOrName(const sema::LiteralOrTuned& value) {
  const auto* literal = std::get_if<int64_t>(&value);
  return literal != nullptr ? Concat(*literal) : std::get<std::string>(value);
}

std::string SpaceSize(const v1::KernelDescription& description) {
  const auto is_excluded = [](const v1::VariantSettings& variant) {
    return !variant.excluded_reason().empty();
  };
  const int64_t excluded =
      std::count_if(description.variants().begin(), description.variants().end(), is_excluded);
  const int count = description.variants_size();
  std::string out = Concat(count, count == 1 ? " variant" : " variants");
  if (excluded > 0) Append(&out, ", ", excluded, " of them excluded");
  return out;
}

std::string GridDims(int32_t used) {
  std::string out;
  for (int axis = 0; axis < 3; ++axis) {
    if ((used >> axis) & 1) Append(&out, out.empty() ? "" : " ", std::string(1, "xyz"[axis]));
  }
  return out.empty() ? "none: a launch has one block" : out;
}

std::string SettingsText(const google::protobuf::RepeatedPtrField<v1::Constant>& settings) {
  std::string out;
  for (const v1::Constant& constant : settings) {
    sema::ConstantValue value = constant.int_value();
    if (constant.has_float_value()) value = constant.float_value();
    if (constant.has_bool_value()) value = constant.bool_value();
    if (constant.has_string_value()) value = constant.string_value();
    Append(&out, out.empty() ? "" : " ", constant.name(), "=", sema::ToString(value));
  }
  return out;
}

std::string_view StatusText(v1::VariantStatus status) {
  switch (status) {
    case v1::VARIANT_STATUS_COMPILED:
      return "compiled";
    case v1::VARIANT_STATUS_COMPILE_ERROR:
      return "error";
    case v1::VARIANT_STATUS_RACE:
      return "race";
    case v1::VARIANT_STATUS_UNSUPPORTED:
      return "unsupported";
    case v1::VARIANT_STATUS_EXCLUDED:
      return "excluded";
    default:
      return "unknown";
  }
}

std::string_view RaceText(v1::RaceVerdict verdict) {
  switch (verdict) {
    case v1::RACE_VERDICT_RACE_FREE:
      return "race free";
    case v1::RACE_VERDICT_RACE:
      return "race";
    case v1::RACE_VERDICT_UNPROVEN:
      return "unproven";
    default:
      return "";
  }
}

// Why a variant is not plainly good; of a race the witness.
const std::string& ReasonOf(const v1::Variant& variant) {
  return variant.reason().empty() ? variant.race_detail() : variant.reason();
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Each reason of several lines in full, with the variants that share it.
std::string FullReasons(const v1::Manifest& manifest) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<int>> variants;
  for (const v1::Variant& variant : manifest.variants()) {
    const std::string& reason = ReasonOf(variant);
    if (reason.find('\n') == std::string::npos) continue;
    if (variants.count(reason) == 0) order.push_back(reason);
    variants[reason].push_back(variant.index());
  }
  std::string out;
  for (const std::string& reason : order) {
    const std::vector<int>& which = variants[reason];
    Append(&out, "\nvariant ", which[0]);
    if (which.size() > 1)
      Append(&out, " and ", which.size() - 1, which.size() == 2 ? " other" : " others");
    Append(&out, ":\n", reason, "\n");
  }
  return out;
}

}  // namespace

std::string DescriptionPage(std::string_view file_name, const sema::Kernel& kernel,
                            const v1::KernelDescription& description) {
  Table parameters({});
  for (const v1::Parameter& parameter : description.parameters()) {
    parameters.Add({parameter.name(), TypeName(parameter), Use(parameter),
                    parameter.aligned_bytes() == 0
                        ? ""
                        : Concat("aligned to ", parameter.aligned_bytes(), " bytes")});
  }
  std::string extents;
  for (const ir::Extent& extent : kernel.extents) {
    Append(&extents, extents.empty() ? "" : ", ", extent.name);
    if (extent.multiple > 1) Append(&extents, " (a multiple of ", extent.multiple, ")");
  }
  std::string key;
  for (const std::string& name : description.key()) Append(&key, key.empty() ? "" : ", ", name);
  Table facts({});
  facts.Add({"extents", extents.empty() ? "none" : extents});
  facts.Add({"key", key.empty() ? "none: one winner for all extents" : key});
  facts.Add({"grid", GridDims(description.grid_dims_used())});
  facts.Add({"threads", LiteralOrName(kernel.threads)});
  facts.Add({"index bits", LiteralOrName(kernel.index_bits)});
  if (kernel.fast_math) facts.Add({"fast math", "yes"});
  facts.Add({"space", SpaceSize(description)});
  facts.Add({"digest", description.source_digest()});
  Table space({});
  for (const sema::TunedConstant& constant : kernel.space)
    space.Add({constant.name, Choices(constant)});
  Table conditions({1});
  for (const sema::Condition& condition : kernel.conditions) {
    conditions.Add({condition.is_assumption ? "assume" : "constraint",
                    Concat("line ", condition.line), condition.text,
                    condition.only_constants ? "decided now" : "decided at each launch"});
  }
  std::string out = Concat("kernel ", kernel.name, " (", file_name, ":", description.line(),
                           ")\n\nparameters\n", parameters.Text("  "), "\n", facts.Text(""));
  if (!kernel.space.empty())
    Append(&out, "\nsearch space, the last varying fastest\n", space.Text("  "));
  if (!kernel.conditions.empty()) Append(&out, "\nconditions\n", conditions.Text("  "));
  return out;
}

std::string ManifestTable(const v1::Manifest& manifest) {
  Table table({0, 4, 5});
  table.Add({"variant", "settings", "status", manifest.races_checked() ? "races" : "", "bytes",
             "compile", "reason"});
  int compiled = 0;
  for (const v1::Variant& variant : manifest.variants()) {
    const bool is_compiled = variant.status() == v1::VARIANT_STATUS_COMPILED;
    compiled += is_compiled ? 1 : 0;
    table.Add({Concat(variant.index()), SettingsText(variant.settings()),
               std::string(StatusText(variant.status())),
               std::string(RaceText(variant.race_verdict())),
               is_compiled ? Concat(variant.artifact().size_bytes()) : "",
               absl::StrFormat("%.1f ms", static_cast<double>(variant.compile_ns()) / 1e6),
               FirstLine(ReasonOf(variant))});
  }
  return Concat("kernel ", manifest.description().kernel(), " for ", manifest.chip(), ": ",
                compiled, " of ", manifest.variants_size(),
                manifest.variants_size() == 1 ? " variant" : " variants", " compiled\n\n",
                table.Text(""), FullReasons(manifest));
}

}  // namespace phobos::compiler
