// SPDX-License-Identifier: Apache-2.0
#include "compiler/main/selection.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <variant>

#include "absl/strings/numbers.h"
#include "base/concat.h"

namespace phobos::compiler {
namespace {

// Messages that are shown at once.
constexpr size_t kMaxErrors = 20;

// Whether `text`, as a shell hands it over, is this choice.
bool IsWritten(const sema::ConstantValue& choice, std::string_view text) {
  if (const auto* word = std::get_if<std::string>(&choice)) {
    const bool is_quoted =
        text.size() >= 2 && text.front() == text.back() && (text[0] == '"' || text[0] == '\'');
    return text == *word || (is_quoted && text.substr(1, text.size() - 2) == *word);
  }
  if (sema::ToString(choice) == text) return true;
  double number = 0;
  const auto* value = std::get_if<double>(&choice);
  return value != nullptr && absl::SimpleAtod(ForAbseil(text), &number) && number == *value;
}

absl::StatusOr<int64_t> IndexOfSettings(const sema::Kernel& kernel, const Options& options) {
  for (const auto& [name, value] : options.settings) {
    std::string names;
    bool is_known = false;
    for (const sema::TunedConstant& constant : kernel.space) {
      Append(&names, names.empty() ? "" : ", ", constant.name);
      is_known |= constant.name == name;
    }
    if (is_known) continue;
    return absl::InvalidArgumentError(
        Concat("--set ", name, ": '", kernel.name, "' has no such constant; ",
               names.empty() ? "it has none at all" : Concat("it has ", names)));
  }
  int64_t index = 0;
  for (const sema::TunedConstant& constant : kernel.space) {
    size_t choice = 0;
    for (const auto& [name, value] : options.settings) {
      if (name != constant.name) continue;
      std::string all;
      for (const sema::ConstantValue& c : constant.choices)
        Append(&all, all.empty() ? "" : ", ", sema::ToString(c));
      while (choice < constant.choices.size() && !IsWritten(constant.choices[choice], value))
        ++choice;
      if (choice == constant.choices.size()) {
        return absl::InvalidArgumentError(
            Concat("--set ", name, "=", value, ": the choices are ", all));
      }
    }
    index = index * static_cast<int64_t>(constant.choices.size()) + static_cast<int64_t>(choice);
  }
  return index;
}

std::vector<int64_t> Range(int64_t first, int64_t last) {
  std::vector<int64_t> indexes(last - first + 1);
  std::iota(indexes.begin(), indexes.end(), first);
  return indexes;
}

}  // namespace

absl::Status ErrorsOf(const sema::Analysis& analysis, const Options& options) {
  // A function that several kernels call is at fault once.
  std::vector<std::string> messages;
  for (const sema::WrongFunction& wrong : analysis.wrong) {
    const bool is_asked_for = options.kernel.empty() || wrong.name.empty() ||
                              (wrong.is_kernel && wrong.name == options.kernel);
    if (!is_asked_for) continue;
    const std::string message(wrong.error.message());
    if (std::find(messages.begin(), messages.end(), message) == messages.end()) {
      messages.push_back(message);
    }
  }
  if (messages.empty()) return absl::OkStatus();
  const size_t shown = std::min(messages.size(), kMaxErrors);
  std::string text = messages[0];
  for (size_t i = 1; i < shown; ++i) Append(&text, "\n", messages[i]);
  if (messages.size() > 1) Append(&text, "\n", messages.size(), " errors");
  if (shown < messages.size()) Append(&text, ", the first ", shown, " are shown");
  return absl::InvalidArgumentError(text);
}

absl::StatusOr<const sema::Kernel*> SelectKernel(const sema::Analysis& analysis,
                                                 const Options& options) {
  const std::vector<sema::Kernel>& kernels = analysis.kernels;
  if (options.kernel.empty() && kernels.size() == 1) return &kernels[0];
  std::string names;
  for (const sema::Kernel& kernel : kernels) {
    if (kernel.name == options.kernel) return &kernel;
    Append(&names, names.empty() ? "" : ", ", kernel.name);
  }
  for (const sema::WrongFunction& wrong : analysis.wrong) {
    if (wrong.is_kernel) Append(&names, names.empty() ? "" : ", ", wrong.name);
  }
  if (options.kernel.empty()) {
    return absl::InvalidArgumentError(
        Concat("the file has ", kernels.size(), " kernels; choose one with --kernel: ", names));
  }
  return absl::InvalidArgumentError(
      Concat("the file has no kernel '", options.kernel, "' at its top level; it has ", names));
}

absl::StatusOr<std::vector<int64_t>> SelectVariants(const sema::Kernel& kernel,
                                                    const Options& options) {
  const int64_t count = kernel.variant_count();
  switch (options.selection) {
    case Options::Selection::kFirst:
      return std::vector<int64_t>{0};
    case Options::Selection::kAll:
      return Range(0, count - 1);
    case Options::Selection::kRange:
      if (options.last < count) return Range(options.first, options.last);
      return absl::InvalidArgumentError(Concat("--variants ", options.first, "-", options.last,
                                               ": '", kernel.name, "' has ", count,
                                               " variants, 0 to ", count - 1));
    case Options::Selection::kSet: {
      const absl::StatusOr<int64_t> index = IndexOfSettings(kernel, options);
      if (!index.ok()) return index.status();
      return std::vector<int64_t>{*index};
    }
  }
  return absl::InternalError("unreached");
}

}  // namespace phobos::compiler
