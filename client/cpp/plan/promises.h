// SPDX-License-Identifier: Apache-2.0
//
// Promises: what a launch of one variant with one set of extents must keep. Extents are judged
// once, when it is made; addresses, scalars and the grid at each launch, in nanoseconds. Immutable,
// any thread.
#ifndef PHOBOS_CLIENT_CPP_PLAN_PROMISES_H_
#define PHOBOS_CLIENT_CPP_PLAN_PROMISES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cpp/gpu/addresses.h"
#include "client/launch/condition.h"
#include "client/launch/status.h"
#include "client/stub/wire/types.h"

namespace phobos {

using Description = std::shared_ptr<const KernelDescription>;

// "N=1024, M=7": the key's extents, for messages.
std::string KeyText(const KernelDescription& description, const std::vector<int64_t>& extents);

// Bytes of each tensor parameter at these extents, 0 for a scalar. InvalidArgument: more than there
// can be. REQUIRES: one value an extent, none negative.
StatusOr<std::vector<int64_t>> TensorBytes(const KernelDescription& description,
                                           const std::vector<int64_t>& extents);

// InvalidArgument: not one value an extent, a negative one, or one over 2^48 - 1.
Status CheckExtents(const KernelDescription& description, const std::vector<int64_t>& extents);

// The tensor parameters that have bytes at these extents. REQUIRES and errors: as TensorBytes.
StatusOr<std::vector<CardAddresses::Tensor>> TensorsWithBytes(const KernelDescription& description,
                                                              const std::vector<int64_t>& extents);

// Whether those are in the card's memory; else all are in the host's, where they may be there.
// InvalidArgument names the one that is elsewhere. `values`: one a parameter.
StatusOr<bool> AreOnCard(Gpu& gpu, const KernelDescription& description,
                         const std::vector<int64_t>& extents, const std::vector<uint64_t>& values,
                         bool may_be_on_host);

class Promises {
 public:
  // FailedPrecondition: this variant is not for these extents (a constraint, 32-bit offsets),
  // another may be. InvalidArgument: the extents break a promise of the kernel, so no variant is.
  static StatusOr<Promises> Make(Description description, int32_t variant,
                                 std::vector<int64_t> extents);

  // What no variant may break, of the tensors' addresses alone: none is null, each keeps its
  // alignment, and what is written overlaps nothing. `values`: one a parameter. REQUIRES: extents
  // that CheckExtents accepts.
  static Status CheckTensors(const KernelDescription& description,
                             const std::vector<int64_t>& extents,
                             const std::vector<uint64_t>& values);

  // InvalidArgument names the promise, the parameter and the value. `values`: one a parameter.
  Status Check(const uint64_t* values, const Grid& grid) const;

  const KernelDescription& description() const { return *description_; }
  const std::vector<int64_t>& extents() const { return extents_; }

 private:
  struct Tensor {
    size_t parameter = 0;
    uint64_t bytes = 0;
    uint64_t alignment = 1;  // of the element, or promised
    bool is_written = false;
  };
  // A condition that needs a scalar or the grid.
  struct Pending {
    const Condition* condition = nullptr;
    std::vector<launch::ConditionOp> program;
  };

  Promises() = default;
  Status CheckGrid(const Grid& grid) const;
  static std::vector<Tensor> TensorsOf(const KernelDescription& description,
                                       const std::vector<int64_t>& bytes);
  static Status CheckAddresses(const KernelDescription& description,
                               const std::vector<Tensor>& tensors, const uint64_t* values);
  static Status Overlap(const KernelDescription& description, const Tensor& written,
                        const Tensor& other);
  Status CheckPending(const Pending& pending, const uint64_t* values, const Grid& grid) const;

  Description description_;
  std::vector<int64_t> extents_;
  std::vector<Tensor> tensors_;
  const VariantSettings* variant_ = nullptr;  // into description_
  std::vector<Pending> pending_;
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_PLAN_PROMISES_H_
