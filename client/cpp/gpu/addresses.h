// SPDX-License-Identifier: Apache-2.0
//
// CardAddresses: whether the tensors of launches are in the memory of the card that runs them. The
// driver is asked about an address once: asking at every launch would cost more than the launch.
// Any thread.
#ifndef PHOBOS_CLIENT_CPP_GPU_ADDRESSES_H_
#define PHOBOS_CLIENT_CPP_GPU_ADDRESSES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cpp/gpu/gpu.h"
#include "client/launch/status.h"

namespace phobos {

class CardAddresses {
 public:
  struct Tensor {
    size_t value = 0;  // index into a launch's values
    std::string name;
  };
  // `gpu` must outlive it. `tensors`: those with bytes.
  CardAddresses(Gpu& gpu, std::vector<Tensor> tensors);

  // InvalidArgument names the tensor that is the host's, or another card's.
  Status Check(const uint64_t* values) const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (values[tensors_[i].value] == seen_[i].load(std::memory_order_relaxed)) continue;
      return CheckNew(values);
    }
    return Status();
  }

  // Whether all of them are the host's. Errors: the driver's.
  StatusOr<bool> AreOnHost(const uint64_t* values) const;

 private:
  Status CheckNew(const uint64_t* values) const;

  Gpu& gpu_;
  const std::vector<Tensor> tensors_;
  const std::unique_ptr<std::atomic<uint64_t>[]> seen_;  // one a tensor: the last one found good
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_GPU_ADDRESSES_H_
