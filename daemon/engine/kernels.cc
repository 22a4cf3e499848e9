// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/kernels.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "daemon/error/error.h"
#include "daemon/tuner/setup.h"
#include "daemon/worker/check/dtype.h"

namespace phobos::engine {
namespace {

// The kind under which texts are remembered. On disk: do not change.
constexpr char kSourceKind[] = "source";

// Texts and descriptions kept in memory.
constexpr size_t kRecentBytes = 2 << 20;

constexpr int64_t kMostTensorBytes = int64_t{1} << 62;

absl::Status BadArgument(const std::string& message) {
  return error::Make(absl::StatusCode::kInvalidArgument, tuner::v1::ERROR_REASON_BAD_ARGUMENT,
                     message);
}

size_t SizeOf(const Kernel& kernel) {
  return kernel.source.text.size() + kernel.description.SpaceUsedLong();
}

int64_t TimesGiven(absl::Span<const tuner::v1::Extent> extents, const std::string& name) {
  return std::count_if(extents.begin(), extents.end(),
                       [&](const auto& extent) { return extent.name() == name; });
}

}  // namespace

absl::StatusOr<KernelPtr> Kernels::Resolve(const tuner::v1::KernelRef& ref,
                                           cache::ResultStore& store) {
  const std::string name = absl::StrCat(ref.text_digest(), " ", ref.kernel());
  if (KernelPtr known = Recent(name); known != nullptr) return known;
  auto kernel = std::make_shared<Kernel>();
  kernel->source.file_name = ref.file_name();
  kernel->source.kernel = ref.kernel();
  if (!ref.source_text().empty()) {
    if (Sha256Hex(ref.source_text()) != ref.text_digest()) {
      return BadArgument("text_digest is not the SHA-256 of source_text");
    }
    kernel->source.text = ref.source_text();
  } else {
    ASSIGN_OR_RETURN(std::optional<std::string> text, store.Recall(kSourceKind, ref.text_digest()));
    if (!text.has_value()) return nullptr;
    kernel->source.text = *std::move(text);
  }
  absl::StatusOr<compiler::v1::KernelDescription> description =
      runner_.Describe(kernel->source, store);
  if (absl::IsNotFound(description.status())) {
    return error::About(
        error::Make(absl::StatusCode::kInvalidArgument, tuner::v1::ERROR_REASON_UNKNOWN_KERNEL,
                    std::string(description.status().message())),
        tuner::v1::ERROR_REASON_UNKNOWN_KERNEL, ref.kernel(), "");
  }
  if (!description.ok()) {
    const auto reason = absl::IsInvalidArgument(description.status())
                            ? tuner::v1::ERROR_REASON_BAD_SOURCE
                            : tuner::v1::ERROR_REASON_UNSPECIFIED;  // the daemon's own trouble
    return error::About(description.status(), reason, ref.kernel(), "");
  }
  kernel->description = *std::move(description);
  if (!ref.source_text().empty()) {
    // Where it cannot be kept (the status says why) the client is asked for it again.
    store.Remember(kSourceKind, ref.text_digest(), ref.source_text()).IgnoreError();
  }
  Keep(name, kernel);
  return kernel;
}

KernelPtr Kernels::Recent(const std::string& name) {
  const absl::MutexLock lock(&mutex_);
  const auto found = recent_.find(name);
  return found == recent_.end() ? nullptr : found->second;
}

void Kernels::Keep(const std::string& name, const KernelPtr& kernel) {
  const absl::MutexLock lock(&mutex_);
  if (!recent_.emplace(name, kernel).second) return;
  order_.push_back(name);
  bytes_ += SizeOf(*kernel);
  while (bytes_ > kRecentBytes && order_.size() > 1) {
    const auto oldest = recent_.find(order_.front());
    bytes_ -= SizeOf(*oldest->second);
    recent_.erase(oldest);
    order_.pop_front();
  }
}

absl::Status CheckExtents(const compiler::v1::KernelDescription& description,
                          absl::Span<const tuner::v1::Extent> extents) {
  RETURN_IF_ERROR(CheckKeyExtents(description, extents));
  for (const std::string& name : description.extents()) {
    if (TimesGiven(extents, name) == 1) continue;
    return BadArgument(absl::StrCat("extent ", name, " of kernel ", description.kernel(),
                                    " is not given; send each extent once"));
  }
  return absl::OkStatus();
}

absl::Status CheckKeyExtents(const compiler::v1::KernelDescription& description,
                             absl::Span<const tuner::v1::Extent> extents) {
  for (const std::string& name : description.key()) {
    if (TimesGiven(extents, name) == 1) continue;
    return BadArgument(absl::StrCat("extent ", name, " of the key of kernel ", description.kernel(),
                                    " is given ", TimesGiven(extents, name),
                                    " times; send it once"));
  }
  for (const tuner::v1::Extent& extent : extents) {
    const auto& names = description.extents();
    if (std::find(names.begin(), names.end(), extent.name()) == names.end()) {
      return BadArgument(absl::StrCat("kernel ", description.kernel(), " has no extent ",
                                      extent.name(), "; it has: ", absl::StrJoin(names, ", ")));
    }
    if (TimesGiven(extents, extent.name()) > 1) {
      return BadArgument(absl::StrCat("extent ", extent.name(), " is given more than once"));
    }
    if (extent.value() < 0) {
      return BadArgument(absl::StrCat("extent ", extent.name(), " is negative"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckScalars(const compiler::v1::KernelDescription& description,
                          absl::Span<const tuner::v1::Scalar> scalars) {
  size_t expected = 0;
  for (const compiler::v1::Parameter& parameter : description.parameters()) {
    if (parameter.is_tensor()) continue;
    ++expected;
    const size_t bytes = worker::ElementBytes(parameter.dtype());
    const int64_t fitting = std::count_if(scalars.begin(), scalars.end(), [&](const auto& scalar) {
      return scalar.name() == parameter.name() && scalar.bits().size() == bytes;
    });
    if (fitting != 1) {
      return BadArgument(absl::StrCat("scalar ", parameter.name(), " of kernel ",
                                      description.kernel(), " must be given once, in ", bytes,
                                      " bytes"));
    }
  }
  if (scalars.size() != expected) {
    return BadArgument(absl::StrCat("kernel ", description.kernel(), " has ", expected,
                                    " scalar parameters; ", scalars.size(), " are given"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TensorBytes(const compiler::v1::Parameter& parameter,
                                    absl::Span<const tuner::v1::Extent> extents) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> elements, tuner::ElementCount(parameter, extents));
  int64_t bytes = 0;
  const bool is_too_large =
      !elements.has_value() ||
      __builtin_mul_overflow(*elements, worker::ElementBytes(parameter.dtype()), &bytes) ||
      bytes > kMostTensorBytes;
  if (is_too_large) {
    return BadArgument(absl::StrCat("tensor ", parameter.name(), " has more than 2^62 bytes"));
  }
  return bytes;
}

}  // namespace phobos::engine
