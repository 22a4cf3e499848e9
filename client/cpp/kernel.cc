// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/kernel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "client/stub/wire/words.h"

namespace phobos {
namespace {

// Launches of kernels with more parameters than this, which are rare, are bound anew.
constexpr size_t kFewArguments = 32;

Status Wrong(const Parameter& parameter, const std::string& what) {
  return Status(Code::kInvalidArgument, parameter.name + ": " + what);
}

// Takes one tensor's sides for the extents that they bind. `extents` holds -1 where none is bound
// yet.
Status BindShape(const KernelDescription& description, const Parameter& parameter,
                 const Argument& argument, std::vector<int64_t>& extents) {
  if (static_cast<size_t>(argument.rank) != parameter.dims.size()) {
    return Wrong(parameter, "an array of rank " + std::to_string(argument.rank) + " for one of " +
                                std::to_string(parameter.dims.size()));
  }
  for (size_t i = 0; i < parameter.dims.size(); ++i) {
    const Dimension& dimension = parameter.dims[i];
    const int64_t side = argument.shape[i];
    if (side < 0) return Wrong(parameter, "a side of " + std::to_string(side));
    if (dimension.extent.empty()) {
      if (side == dimension.literal) continue;
      return Wrong(parameter, "side " + std::to_string(i) + " is " + std::to_string(side) +
                                  ", the kernel wants " + std::to_string(dimension.literal));
    }
    const auto found =
        std::find(description.extents.begin(), description.extents.end(), dimension.extent);
    if (found == description.extents.end()) continue;
    int64_t& extent = extents[static_cast<size_t>(found - description.extents.begin())];
    if (extent >= 0 && extent != side) {
      return Wrong(parameter, dimension.extent + " is " + std::to_string(side) + " here but " +
                                  std::to_string(extent) + " in a parameter before");
    }
    extent = side;
  }
  return Status();
}

Status CheckKind(const Parameter& parameter, const Argument& argument) {
  const auto kind = [](bool is_tensor, DType dtype) {
    return (is_tensor ? "a tensor of " : "a scalar of ") + stub::Word(dtype);
  };
  if (argument.is_tensor == parameter.is_tensor && argument.dtype == parameter.dtype) {
    return Status();
  }
  return Wrong(parameter, kind(argument.is_tensor, argument.dtype) + " for " +
                              kind(parameter.is_tensor, parameter.dtype));
}

}  // namespace

int64_t Meta::operator[](std::string_view name) const {
  for (const Constant& constant : settings_) {
    if (constant.name != name) continue;
    if (const int64_t* whole = std::get_if<int64_t>(&constant.value)) return *whole;
    if (const bool* truth = std::get_if<bool>(&constant.value)) return *truth ? 1 : 0;
  }
  for (size_t i = 0; i < extent_names_.size(); ++i) {
    if (extent_names_[i] == name) return extents_[i];
  }
  if (unknown_.empty()) unknown_ = name;
  return 0;
}

int64_t ReferenceArguments::Extent(std::string_view name) const {
  const std::vector<std::string>& names = call_.description().extents;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return call_.extents()[i];
  }
  return 0;
}

ReferenceArguments::Found ReferenceArguments::Find(std::string_view name, DType dtype,
                                                   bool is_tensor) const {
  const std::vector<Parameter>& parameters = call_.description().parameters;
  const StatusOr<std::vector<int64_t>> bytes = TensorBytes(call_.description(), call_.extents());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    if (parameter.name != name) continue;
    if (parameter.dtype != dtype || parameter.is_tensor != is_tensor || !bytes.ok()) return {};
    const int64_t count = is_tensor ? (*bytes)[i] / ElementBytes(dtype) : 1;
    return {call_.arguments()[i], static_cast<size_t>(count)};
  }
  return {};
}

StatusOr<std::unique_ptr<Kernel>> Kernel::Open(std::shared_ptr<Client> client,
                                               KernelOptions options) {
  StatusOr<std::shared_ptr<PlanSource>> plans = PlanSource::Open(
      std::move(client), {options.source, options.file_name, options.name, options.device_uuid});
  if (!plans.ok()) return plans.status();
  return std::unique_ptr<Kernel>(new Kernel(*std::move(plans), std::move(options)));
}

Status Kernel::Launch(std::span<const Argument> arguments, const GridFunction& grid, void* stream) {
  if (const std::shared_ptr<const Last> last = last_.load();
      last != nullptr && last->Fits(arguments)) {
    std::array<uint64_t, kFewArguments> values;
    for (size_t i = 0; i < arguments.size(); ++i) values[i] = arguments[i].bits;
    const StatusOr<Plan::Outcome> outcome =
        LaunchPlan(*last->plan, last->description, last->extents, values.data(), grid, stream);
    if (!outcome.ok()) return outcome.status();
    if (*outcome == Plan::Outcome::kLaunched) return Status();
  }
  return LaunchAnew(arguments, grid, stream);
}

bool Kernel::Last::Fits(std::span<const Argument> others) const {
  return std::equal(arguments.begin(), arguments.end(), others.begin(), others.end(),
                    [](const Argument& mine, const Argument& other) {
                      return mine.dtype == other.dtype && mine.is_tensor == other.is_tensor &&
                             mine.rank == other.rank &&
                             std::equal(mine.shape, mine.shape + mine.rank, other.shape);
                    });
}

// Arguments of other shapes than the last launch's, or a plan that is out of date.
Status Kernel::LaunchAnew(std::span<const Argument> arguments, const GridFunction& grid,
                          void* stream) {
  const StatusOr<Description> description = plans_->Describe();
  if (!description.ok()) return description.status();
  const StatusOr<Bound> bound = Bind(**description, arguments);
  if (!bound.ok()) return bound.status();
  while (true) {
    std::shared_ptr<const Plan> plan = plans_->Present(bound->extents);
    if (plan == nullptr) {
      std::optional<TuneRequest> request;
      if (options_.reference) {
        StatusOr<TuneRequest> made =
            RequestFor(*description, *bound, grid, options_.reference, stream);
        if (!made.ok()) return made.status();
        request = *std::move(made);
      }
      StatusOr<Prepared> prepared = plans_->Prepare(
          bound->extents, options_.policy, request.has_value() ? &*request : nullptr, stream);
      if (!prepared.ok()) return prepared.status();
      plan = std::move(prepared->plan);
    }
    const StatusOr<Plan::Outcome> outcome =
        LaunchPlan(*plan, *description, bound->extents, bound->values.data(), grid, stream);
    if (!outcome.ok()) return outcome.status();
    if (*outcome != Plan::Outcome::kLaunched) continue;
    // First choices of a kernel that has a reference are to be replaced by a tune.
    if ((plan->facts().origin == Plan::Origin::kWinner || !options_.reference) &&
        arguments.size() <= kFewArguments) {
      last_.store(std::make_shared<const Last>(
          Last{*description, bound->extents, {arguments.begin(), arguments.end()}, plan}));
    }
    return Status();
  }
}

StatusOr<Plan::Outcome> Kernel::LaunchPlan(const Plan& plan, const Description& description,
                                           const std::vector<int64_t>& extents,
                                           const uint64_t* values, const GridFunction& grid,
                                           void* stream) {
  const StatusOr<Grid> blocks =
      GridOf(grid, Meta(plan.variant().settings, description->extents, extents));
  if (!blocks.ok()) return blocks.status();
  return plan.Launch(values, *blocks, stream);
}

StatusOr<Result> Kernel::Tune(std::span<const Argument> arguments, const GridFunction& grid,
                              const TuneCall& call) {
  const StatusOr<Description> description = plans_->Describe();
  if (!description.ok()) return description.status();
  const StatusOr<Bound> bound = Bind(**description, arguments);
  if (!bound.ok()) return bound.status();
  const Reference& reference = call.reference ? call.reference : options_.reference;
  if (!reference) {
    return Status(Code::kInvalidArgument,
                  plans_->kernel() + " has no reference; give one to tell right from wrong");
  }
  StatusOr<TuneRequest> request = RequestFor(*description, *bound, grid, reference, call.stream);
  if (!request.ok()) return request.status();
  if (call.rtol.has_value()) request->options.rtol = call.rtol;
  if (call.atol.has_value()) request->options.atol = call.atol;
  if (call.flush_l2.has_value()) request->options.flush_l2 = call.flush_l2;
  request->options.tie_break = call.tie_break;
  request->force = call.force;
  request->timeouts = call.timeouts;
  request->callbacks.progress = call.progress;
  StatusOr<Tuned> tuned = plans_->Tune(*request);
  last_.store(nullptr);
  if (!tuned.ok()) return tuned.status();
  return std::move(tuned->result);
}

StatusOr<Kernel::Bound> Kernel::Bind(const KernelDescription& description,
                                     std::span<const Argument> arguments) {
  if (arguments.size() != description.parameters.size()) {
    return Status(Code::kInvalidArgument,
                  description.kernel + " has " + std::to_string(description.parameters.size()) +
                      " parameters, but " + std::to_string(arguments.size()) +
                      " arguments were given");
  }
  Bound bound;
  bound.extents.assign(description.extents.size(), -1);
  bound.values.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = description.parameters[i];
    if (Status status = CheckKind(parameter, arguments[i]); !status.ok()) return status;
    bound.values.push_back(arguments[i].bits);
    if (!parameter.is_tensor) continue;
    if (Status status = BindShape(description, parameter, arguments[i], bound.extents);
        !status.ok()) {
      return status;
    }
  }
  return bound;
}

StatusOr<TuneRequest> Kernel::RequestFor(const Description& description, const Bound& bound,
                                         const GridFunction& grid, const Reference& reference,
                                         void* stream) const {
  if (!grid) return Status(Code::kInvalidArgument, "the grid function is empty");
  TuneRequest request;
  request.extents = bound.extents;
  request.values = bound.values;
  request.stream = stream;
  request.options.rtol = options_.rtol;
  request.options.atol = options_.atol;
  request.options.flush_l2 = options_.flush_l2;
  request.callbacks.grid = [grid, description, extents = bound.extents](
                               int32_t, const std::vector<Constant>& settings) {
    return GridOf(grid, Meta(settings, description->extents, extents));
  };
  request.callbacks.reference = [reference](ReferenceCall& call) {
    ReferenceArguments arguments(call);
    return reference(arguments);
  };
  return request;
}

StatusOr<Grid> Kernel::GridOf(const GridFunction& grid, const Meta& meta) {
  const Grid blocks = grid(meta);
  if (meta.unknown().empty()) return blocks;
  return Status(Code::kInvalidArgument, "the grid function asks for '" + meta.unknown() +
                                            "', which is no integer constant and no extent");
}

}  // namespace phobos
