// SPDX-License-Identifier: Apache-2.0
//
// Staging: copies of many bytes between a card and ordinary memory of the host, by way of two
// pieces of pinned memory: while one travels, threads copy the other. The driver does the same in
// one thread, at a third of the speed. One thread, the stream's.
#ifndef PHOBOS_DAEMON_DEVICE_CUDA_COPY_STAGING_H_
#define PHOBOS_DAEMON_DEVICE_CUDA_COPY_STAGING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "client/launch/cuda/driver.h"
#include "daemon/device/cuda/card_stream.h"

namespace phobos::device {

class Staging {
 public:
  // `stream` must outlive it. Where no memory can be pinned, the driver copies.
  Staging(std::shared_ptr<const launch::cuda::CudaDriver> driver, CardStream& stream);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // In the stream's order; the host's memory may be used again when this returns, where the copy is
  // large. Errors as CardStream::Copy.
  absl::Status Upload(uint64_t to, const std::byte* from, int64_t bytes);
  // The same; what is large is there when this returns, the rest after Finish.
  absl::Status Download(std::byte* to, uint64_t from, int64_t bytes);

 private:
  struct Piece {
    std::byte* memory = nullptr;
    uint32_t mark = 0;  // of the last copy from or to it
  };
  bool IsWorthIt(int64_t bytes) const;
  // Queues the copy of a part into a piece.
  absl::Status Fetch(Piece& piece, uint64_t from, int64_t bytes);

  const std::shared_ptr<const launch::cuda::CudaDriver> driver_;
  CardStream& stream_;
  std::array<Piece, 2> pieces_;
};

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CUDA_COPY_STAGING_H_
