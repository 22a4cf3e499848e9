// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/join/hand_over.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "daemon/engine/kernels.h"
#include "daemon/error/error.h"

namespace phobos::engine {
namespace {

// Buffers start on pages of their own, so that no two share one.
constexpr int64_t kAlignment = 4096;
constexpr size_t kIpcHandleBytes = 64;

absl::Status BadArgument(const std::string& message) {
  return error::Make(absl::StatusCode::kInvalidArgument, tuner::v1::ERROR_REASON_BAD_ARGUMENT,
                     message);
}

const tuner::v1::BufferRequest* Find(const HandOver& hand_over, const std::string& parameter) {
  for (const tuner::v1::BufferRequest& buffer : hand_over.buffers) {
    if (buffer.parameter() == parameter) return &buffer;
  }
  return nullptr;
}

bool Names(const BufferRefs& refs, const std::string& parameter) {
  return std::any_of(refs.begin(), refs.end(),
                     [&](const auto& ref) { return ref.parameter() == parameter; });
}

// Says nothing of the handle's bytes: they are a secret.
absl::Status CheckForeign(const tuner::v1::BufferRef& ref, bool takes_cuda_ipc) {
  if (!takes_cuda_ipc) {
    return BadArgument(absl::StrCat("tensor ", ref.parameter(),
                                    " came as a CUDA IPC handle, which Lead did not ask for"));
  }
  if (ref.cuda_ipc_handle().size() == kIpcHandleBytes && ref.offset_bytes() >= 0) {
    return absl::OkStatus();
  }
  return BadArgument(absl::StrCat("the CUDA IPC handle of ", ref.parameter(), " must have ",
                                  kIpcHandleBytes, " bytes, and its offset must not be negative"));
}

// Takes `bytes` of the segment, aligned, and returns where. Sizes are far from overflow:
// PlanHandOver stops at the limit.
int64_t Take(int64_t bytes, int64_t& end) {
  const int64_t begin = end;
  end += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return begin;
}

}  // namespace

absl::StatusOr<HandOver> PlanHandOver(const compiler::v1::KernelDescription& description,
                                      const tuner::v1::Open& open, int64_t copy_limit) {
  const std::vector<tuner::v1::Extent> extents(open.extents().begin(), open.extents().end());
  HandOver hand_over;
  for (const compiler::v1::Parameter& parameter : description.parameters()) {
    if (!parameter.is_tensor()) continue;
    ASSIGN_OR_RETURN(const int64_t bytes, TensorBytes(parameter, extents));
    const int copies = parameter.is_written() ? 2 : 1;
    if (bytes > (copy_limit - hand_over.bytes) / copies) {
      return error::Make(
          absl::StatusCode::kResourceExhausted, tuner::v1::ERROR_REASON_OUT_OF_MEMORY,
          absl::StrCat("the arguments and the reference's answers need more than the ", copy_limit,
                       " bytes that the daemon may copy (", parameter.name(), " alone has ", bytes,
                       ")"),
          "tune at a smaller size, or raise --copy-bytes");
    }
    tuner::v1::BufferRequest& buffer = hand_over.buffers.emplace_back();
    buffer.set_parameter(parameter.name());
    buffer.set_bytes(bytes);
    buffer.set_is_written(parameter.is_written());
    buffer.set_offset_bytes(Take(bytes, hand_over.bytes));
    if (parameter.is_written()) buffer.set_expected_offset_bytes(Take(bytes, hand_over.bytes));
  }
  if (open.tensor_bytes_size() == 0) return hand_over;
  if (open.tensor_bytes_size() != static_cast<int>(hand_over.buffers.size())) {
    return BadArgument(absl::StrCat("the kernel has ", hand_over.buffers.size(),
                                    " tensor parameters; ", open.tensor_bytes_size(),
                                    " sizes were sent"));
  }
  for (size_t i = 0; i < hand_over.buffers.size(); ++i) {
    if (open.tensor_bytes(i) == hand_over.buffers[i].bytes()) continue;
    return BadArgument(absl::StrCat("tensor ", hand_over.buffers[i].parameter(), " has ",
                                    hand_over.buffers[i].bytes(), " bytes by its extents, not ",
                                    open.tensor_bytes(i)));
  }
  return hand_over;
}

std::vector<int32_t> WantedVariants(const compiler::v1::KernelDescription& description) {
  std::vector<int32_t> wanted;
  for (const compiler::v1::VariantSettings& variant : description.variants()) {
    if (variant.excluded_reason().empty()) wanted.push_back(variant.index());
  }
  return wanted;
}

absl::Status CheckGrids(const compiler::v1::KernelDescription& description,
                        const tuner::v1::Args& args) {
  const std::vector<int32_t> wanted = WantedVariants(description);
  std::vector<int32_t> sent;
  for (const tuner::v1::VariantGrid& grid : args.grids()) {
    if (grid.has_grid() == !grid.error().empty()) {
      return BadArgument(absl::StrCat("variant ", grid.variant(),
                                      " needs either a grid or the error of its grid"));
    }
    sent.push_back(grid.variant());
  }
  std::sort(sent.begin(), sent.end());
  if (sent != wanted) {
    return BadArgument(absl::StrCat("send one grid for each of the ", wanted.size(),
                                    " variants that Lead names; ", sent.size(), " were sent"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<tuner::TensorBytes>> Locate(const HandOver& hand_over,
                                                       const BufferRefs& refs, uint64_t segment,
                                                       absl::Span<const std::byte> memory,
                                                       bool takes_cuda_ipc) {
  std::vector<tuner::TensorBytes> located;
  const auto size = static_cast<int64_t>(memory.size());
  for (const tuner::v1::BufferRef& ref : refs) {
    const tuner::v1::BufferRequest* buffer = Find(hand_over, ref.parameter());
    if (buffer == nullptr) {
      return BadArgument(
          absl::StrCat("the kernel has no tensor parameter '", ref.parameter(), "'"));
    }
    const bool is_repeated = std::any_of(located.begin(), located.end(), [&](const auto& other) {
      return other.parameter == ref.parameter();
    });
    const bool is_foreign = !ref.cuda_ipc_handle().empty();
    if (is_foreign) RETURN_IF_ERROR(CheckForeign(ref, takes_cuda_ipc));
    if (is_repeated || ref.segment() != (is_foreign ? 0 : segment) ||
        ref.bytes() != buffer->bytes()) {
      return BadArgument(absl::StrCat("tensor ", ref.parameter(), " must be sent once, with ",
                                      buffer->bytes(), " bytes, in segment ", segment));
    }
    if (ref.address_mod_256() < 0 || ref.address_mod_256() > 255) {
      return BadArgument(absl::StrCat("address_mod_256 of ", ref.parameter(), " is not in 0..255"));
    }
    if (is_foreign) {
      tuner::TensorBytes& tensor = located.emplace_back();
      tensor.parameter = ref.parameter();
      tensor.address_mod_256 = ref.address_mod_256();
      tensor.foreign = {ref.cuda_ipc_handle(), ref.offset_bytes(), ref.bytes()};
      continue;
    }
    // Written so that nothing overflows: bytes is the tensor's own, not negative and within the
    // limit.
    if (ref.offset_bytes() < 0 || ref.bytes() > size || ref.offset_bytes() > size - ref.bytes()) {
      return BadArgument(absl::StrCat("tensor ", ref.parameter(), " lies outside its segment"));
    }
    located.push_back({ref.parameter(),
                       memory.subspan(ref.offset_bytes(), ref.bytes()),
                       ref.address_mod_256(),
                       {}});
  }
  return located;
}

absl::Status CheckAllThere(const HandOver& hand_over, const BufferRefs& refs, bool only_written) {
  for (const tuner::v1::BufferRequest& buffer : hand_over.buffers) {
    if ((only_written && !buffer.is_written()) || Names(refs, buffer.parameter())) continue;
    return BadArgument(absl::StrCat(only_written ? "the reference's answer for " : "tensor ",
                                    buffer.parameter(), " is missing"));
  }
  return absl::OkStatus();
}

}  // namespace phobos::engine
