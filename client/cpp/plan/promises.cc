// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/plan/promises.h"

#include <stdio.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "client/cpp/plan/number.h"
#include "client/launch/grid.h"

namespace phobos {
namespace {

using launch::ConditionOp;
using launch::Number;

constexpr int64_t kMostElements32 = std::numeric_limits<int32_t>::max();
// No tensor that has elements has a longer side; the compiler's race check counts on it.
constexpr int64_t kMostExtent = (int64_t{1} << 48) - 1;
constexpr std::string_view kGridNames[] = {"grid_x", "grid_y", "grid_z"};

std::string Quoted(const Condition& condition) {
  const char* what = condition.is_assumption ? "ph.assume(" : "@ph.constraint(";
  return what + condition.text + ") at line " + std::to_string(condition.line);
}

Status WithRemedy(Code code, std::string message, std::string remedy) {
  auto detail = std::make_shared<ErrorDetail>();
  detail->remedy = std::move(remedy);
  return Status(code, std::move(message), std::move(detail));
}

// What the kernel's text promises of its arguments is not so.
Status NotAsPromised(std::string message) {
  return WithRemedy(
      Code::kInvalidArgument, std::move(message),
      "Give arguments that are as the kernel promises, or take the promise out of the "
      "kernel.");
}

std::string Hex(uint64_t value) {
  char text[32];
  snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string Text(const Number& number) {
  if (const int64_t* whole = std::get_if<int64_t>(&number)) return std::to_string(*whole);
  char text[32];
  snprintf(text, sizeof(text), "%.17g", std::get<double>(number));
  return text;
}

std::vector<ConditionOp> ProgramOf(const Condition& condition) {
  std::vector<ConditionOp> program;
  for (const ConditionStep& step : condition.program) {
    ConditionOp op;
    op.code = step.code;
    op.name = step.name;
    if (step.code == ConditionOp::kPushFloat) {
      op.number = step.float_value;
    } else {
      op.number = step.int_value;
    }
    program.push_back(std::move(op));
  }
  return program;
}

// Values of a condition's names: constants and extents always, scalars and the grid once `values`
// and `grid` are there.
class Names {
 public:
  Names(const KernelDescription& description, const VariantSettings& variant,
        const std::vector<int64_t>& extents, const uint64_t* values, const Grid* grid)
      : description_(description),
        variant_(variant),
        extents_(extents),
        values_(values),
        grid_(grid) {}

  std::optional<Number> Find(std::string_view name) const {
    for (size_t i = 0; i < description_.extents.size(); ++i) {
      if (description_.extents[i] == name) return Number(extents_[i]);
    }
    for (const Constant& constant : variant_.settings) {
      if (constant.name == name) return ValueOf(constant);
    }
    if (values_ == nullptr) return std::nullopt;
    for (size_t i = 0; i < description_.parameters.size(); ++i) {
      const Parameter& parameter = description_.parameters[i];
      if (parameter.name != name || parameter.is_tensor) continue;
      return ScalarNumber(parameter.dtype, values_[i]);
    }
    const int64_t sides[] = {grid_->x, grid_->y, grid_->z};
    for (size_t i = 0; i < 3; ++i) {
      if (kGridNames[i] == name) return Number(sides[i]);
    }
    return std::nullopt;
  }

  StatusOr<bool> Hold(const std::vector<ConditionOp>& program) const {
    return launch::Holds(program, [this](std::string_view name) -> StatusOr<Number> {
      const std::optional<Number> value = Find(name);
      if (value.has_value()) return *value;
      return Status(Code::kInvalidArgument, "a condition of the kernel names '" +
                                                std::string(name) + "', which has no value here");
    });
  }

  // "N=7, alpha=0.5" for those that the program names.
  std::string Describe(const std::vector<ConditionOp>& program) const {
    std::string text;
    for (const ConditionOp& op : program) {
      if (op.code != ConditionOp::kPushName || text.find(op.name + "=") != std::string::npos)
        continue;
      const std::optional<Number> value = Find(op.name);
      if (!value.has_value()) continue;
      text += (text.empty() ? "" : ", ") + op.name + "=" + Text(*value);
    }
    return text;
  }

 private:
  static std::optional<Number> ValueOf(const Constant& constant) {
    if (const int64_t* whole = std::get_if<int64_t>(&constant.value)) return Number(*whole);
    if (const double* real = std::get_if<double>(&constant.value)) return Number(*real);
    if (const bool* truth = std::get_if<bool>(&constant.value)) return Number(int64_t{*truth});
    return std::nullopt;
  }

  const KernelDescription& description_;
  const VariantSettings& variant_;
  const std::vector<int64_t>& extents_;
  const uint64_t* const values_;
  const Grid* const grid_;
};

// Whether the condition can be decided without scalars and grid.
bool IsKnown(const std::vector<ConditionOp>& program, const Names& names) {
  return std::all_of(program.begin(), program.end(), [&](const ConditionOp& op) {
    return op.code != ConditionOp::kPushName || names.Find(op.name).has_value();
  });
}

StatusOr<int64_t> Elements(const KernelDescription& description, const Parameter& parameter,
                           const std::vector<int64_t>& extents) {
  int64_t elements = 1;
  for (const Dimension& dimension : parameter.dims) {
    int64_t side = dimension.literal;
    if (!dimension.extent.empty()) {
      const auto found =
          std::find(description.extents.begin(), description.extents.end(), dimension.extent);
      if (found == description.extents.end()) {
        return Status(Code::kInternal, "the description of " + description.kernel +
                                           " has no extent " + dimension.extent);
      }
      side = extents[static_cast<size_t>(found - description.extents.begin())];
    }
    if (__builtin_mul_overflow(elements, side, &elements)) {
      return Status(Code::kInvalidArgument,
                    parameter.name + " would have more than 2^63 - 1 elements");
    }
  }
  return elements;
}

Status CheckExtentPromises(const KernelDescription& description,
                           const std::vector<int64_t>& extents) {
  for (const ExtentPromise& promise : description.extent_promises) {
    for (size_t i = 0; i < extents.size(); ++i) {
      if (description.extents[i] != promise.extent || promise.multiple <= 0) continue;
      if (extents[i] % promise.multiple == 0) continue;
      return NotAsPromised(promise.extent + "=" + std::to_string(extents[i]) +
                           " is not a multiple of " + std::to_string(promise.multiple) +
                           ", as @ph.aligned(" + promise.extent + "=" +
                           std::to_string(promise.multiple) + ") promises");
    }
  }
  return Status();
}

Status Broken(const Condition& condition, const Names& names,
              const std::vector<ConditionOp>& program) {
  const std::string message = Quoted(condition) + " does not hold: " + names.Describe(program);
  if (condition.is_assumption) return NotAsPromised(message);
  return WithRemedy(
      Code::kFailedPrecondition, message,
      "Launch with arguments for which it holds, or give @ph.autotune values of which "
      "some meet it there.");
}

}  // namespace

std::string KeyText(const KernelDescription& description, const std::vector<int64_t>& extents) {
  std::string text;
  for (const std::string& name : description.key) {
    for (size_t i = 0; i < description.extents.size() && i < extents.size(); ++i) {
      if (description.extents[i] != name) continue;
      text += (text.empty() ? "" : ", ") + name + "=" + std::to_string(extents[i]);
    }
  }
  return text;
}

StatusOr<std::vector<int64_t>> TensorBytes(const KernelDescription& description,
                                           const std::vector<int64_t>& extents) {
  std::vector<int64_t> all;
  for (const Parameter& parameter : description.parameters) {
    int64_t bytes = 0;
    if (parameter.is_tensor) {
      const StatusOr<int64_t> elements = Elements(description, parameter, extents);
      if (!elements.ok()) return elements.status();
      if (__builtin_mul_overflow(*elements, ElementBytes(parameter.dtype), &bytes)) {
        return Status(Code::kInvalidArgument,
                      parameter.name + " would have more than 2^63 - 1 bytes");
      }
    }
    all.push_back(bytes);
  }
  return all;
}

StatusOr<std::vector<CardAddresses::Tensor>> TensorsWithBytes(const KernelDescription& description,
                                                              const std::vector<int64_t>& extents) {
  const StatusOr<std::vector<int64_t>> bytes = TensorBytes(description, extents);
  if (!bytes.ok()) return bytes.status();
  std::vector<CardAddresses::Tensor> tensors;
  for (size_t i = 0; i < bytes->size(); ++i) {
    if ((*bytes)[i] > 0) tensors.push_back({i, description.parameters[i].name});
  }
  return tensors;
}

StatusOr<bool> AreOnCard(Gpu& gpu, const KernelDescription& description,
                         const std::vector<int64_t>& extents, const std::vector<uint64_t>& values,
                         bool may_be_on_host) {
  StatusOr<std::vector<CardAddresses::Tensor>> tensors = TensorsWithBytes(description, extents);
  if (!tensors.ok()) return tensors.status();
  const CardAddresses addresses(gpu, *std::move(tensors));
  if (may_be_on_host) {
    const StatusOr<bool> are_on_host = addresses.AreOnHost(values.data());
    if (!are_on_host.ok()) return are_on_host.status();
    if (*are_on_host) return false;
  }
  if (Status status = addresses.Check(values.data()); !status.ok()) return status;
  return true;
}

Status CheckExtents(const KernelDescription& description, const std::vector<int64_t>& extents) {
  if (extents.size() != description.extents.size()) {
    return Status(Code::kInvalidArgument,
                  description.kernel + " has " + std::to_string(description.extents.size()) +
                      " extents, but " + std::to_string(extents.size()) + " values were given");
  }
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] >= 0 && extents[i] <= kMostExtent) continue;
    const char* why = extents[i] < 0 ? " is negative" : " is more than 2^48 - 1";
    return Status(Code::kInvalidArgument,
                  description.extents[i] + "=" + std::to_string(extents[i]) + why);
  }
  return Status();
}

StatusOr<Promises> Promises::Make(Description description, int32_t variant,
                                  std::vector<int64_t> extents) {
  if (Status status = CheckExtents(*description, extents); !status.ok()) return status;
  if (Status status = CheckExtentPromises(*description, extents); !status.ok()) return status;
  const StatusOr<std::vector<int64_t>> bytes = TensorBytes(*description, extents);
  if (!bytes.ok()) return bytes.status();
  if (variant < 0 || static_cast<size_t>(variant) >= description->variants.size()) {
    return Status(Code::kInvalidArgument, description->kernel + " has no variant " +
                                              std::to_string(variant) + "; it has " +
                                              std::to_string(description->variants.size()));
  }
  Promises promises;
  promises.variant_ = &description->variants[static_cast<size_t>(variant)];
  if (!promises.variant_->excluded_reason.empty()) {
    return Status(Code::kFailedPrecondition, promises.variant_->excluded_reason);
  }
  for (size_t i = 0; i < description->parameters.size(); ++i) {
    const Parameter& parameter = description->parameters[i];
    if (!parameter.is_tensor) continue;
    const int64_t element = std::max<int64_t>(1, ElementBytes(parameter.dtype));
    const int64_t elements = (*bytes)[i] / element;
    if (promises.variant_->index_bits == 32 && elements > kMostElements32) {
      return Status(Code::kFailedPrecondition,
                    parameter.name + " has " + std::to_string(elements) +
                        " elements; a variant with 32-bit offsets reaches " +
                        std::to_string(kMostElements32));
    }
  }
  promises.tensors_ = TensorsOf(*description, *bytes);
  const Names names(*description, *promises.variant_, extents, nullptr, nullptr);
  for (const Condition& condition : description->conditions) {
    std::vector<ConditionOp> program = ProgramOf(condition);
    if (!IsKnown(program, names)) {
      promises.pending_.push_back({&condition, std::move(program)});
      continue;
    }
    const StatusOr<bool> holds = names.Hold(program);
    if (!holds.ok()) return holds.status();
    if (!*holds) return Broken(condition, names, program);
  }
  promises.description_ = std::move(description);
  promises.extents_ = std::move(extents);
  return promises;
}

Status Promises::Check(const uint64_t* values, const Grid& grid) const {
  if (Status status = CheckGrid(grid); !status.ok()) return status;
  if (Status status = CheckAddresses(*description_, tensors_, values); !status.ok()) return status;
  for (const Pending& pending : pending_) {
    if (Status status = CheckPending(pending, values, grid); !status.ok()) return status;
  }
  return Status();
}

Status Promises::CheckGrid(const Grid& grid) const {
  const int64_t sides[] = {grid.x, grid.y, grid.z};
  for (int i = 0; i < 3; ++i) {
    if (sides[i] <= 1 || (description_->grid_dims_used >> i & 1) != 0) continue;
    const char axis = static_cast<char>('x' + i);
    return Status(Code::kInvalidArgument,
                  "grid (" + std::to_string(grid.x) + ", " + std::to_string(grid.y) + ", " +
                      std::to_string(grid.z) + "): the kernel never reads ph.ctx.block." + axis +
                      ", so all blocks along " + axis + " would do the same; it must be 1");
  }
  return Status();
}

std::vector<Promises::Tensor> Promises::TensorsOf(const KernelDescription& description,
                                                  const std::vector<int64_t>& bytes) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < description.parameters.size(); ++i) {
    const Parameter& parameter = description.parameters[i];
    if (!parameter.is_tensor) continue;
    const int64_t alignment =
        std::max({int64_t{1}, ElementBytes(parameter.dtype), parameter.aligned_bytes});
    tensors.push_back({i, static_cast<uint64_t>(bytes[i]), static_cast<uint64_t>(alignment),
                       parameter.is_written});
  }
  return tensors;
}

Status Promises::CheckTensors(const KernelDescription& description,
                              const std::vector<int64_t>& extents,
                              const std::vector<uint64_t>& values) {
  const StatusOr<std::vector<int64_t>> bytes = TensorBytes(description, extents);
  if (!bytes.ok()) return bytes.status();
  return CheckAddresses(description, TensorsOf(description, *bytes), values.data());
}

Status Promises::CheckAddresses(const KernelDescription& description,
                                const std::vector<Tensor>& tensors, const uint64_t* values) {
  for (const Tensor& tensor : tensors) {
    const uint64_t address = values[tensor.parameter];
    if (tensor.bytes == 0) continue;
    if (address != 0 && address % tensor.alignment == 0) continue;
    const Parameter& parameter = description.parameters[tensor.parameter];
    if (address == 0) {
      return Status(Code::kInvalidArgument, parameter.name + " is at address 0");
    }
    const std::string multiple = parameter.name + ": address " + Hex(address) +
                                 " is not a multiple of " + std::to_string(tensor.alignment) +
                                 " bytes, ";
    if (parameter.aligned_bytes < static_cast<int64_t>(tensor.alignment)) {
      return Status(Code::kInvalidArgument, multiple + "the size of its elements");
    }
    return NotAsPromised(multiple + "as @ph.aligned(" + parameter.name + "=" +
                         std::to_string(parameter.aligned_bytes) + ") promises");
  }
  for (const Tensor& written : tensors) {
    if (!written.is_written || written.bytes == 0) continue;
    const uint64_t begin = values[written.parameter];
    for (const Tensor& other : tensors) {
      if (other.parameter == written.parameter || other.bytes == 0) continue;
      const uint64_t other_begin = values[other.parameter];
      if (begin < other_begin + other.bytes && other_begin < begin + written.bytes) {
        return Overlap(description, written, other);
      }
    }
  }
  return Status();
}

Status Promises::Overlap(const KernelDescription& description, const Tensor& written,
                         const Tensor& other) {
  const std::string& name = description.parameters[written.parameter].name;
  return WithRemedy(Code::kInvalidArgument,
                    name + ", which the kernel writes, overlaps " +
                        description.parameters[other.parameter].name +
                        " in memory; give it an array of its own",
                    "give it an array of its own");
}

Status Promises::CheckPending(const Pending& pending, const uint64_t* values,
                              const Grid& grid) const {
  const Names names(*description_, *variant_, extents_, values, &grid);
  const StatusOr<bool> holds = names.Hold(pending.program);
  if (!holds.ok()) return holds.status();
  if (*holds) return Status();
  const Status broken = Broken(*pending.condition, names, pending.program);
  return Status(Code::kInvalidArgument, broken.message(), broken.detail());
}

}  // namespace phobos
