// SPDX-License-Identifier: Apache-2.0
//
// Preloaded: arguments of a job that is still to begin, copied into the device's memory while the
// caller's reference runs. The token says whose they are: a job takes them by it, or copies the
// bytes itself. Lives in the worker process; the Device's thread.
#ifndef PHOBOS_DAEMON_WORKER_PRELOADED_H_
#define PHOBOS_DAEMON_WORKER_PRELOADED_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/device/device.h"
#include "daemon/worker/messages.pb.h"

namespace phobos::worker {

class Preloaded {
 public:
  // `device` must outlive it.
  explicit Preloaded(device::Device& device) : device_(device) {}

  // Makes room for the ranges of a memory of `size` bytes, in place of what was there under another
  // token. A device whose memory is the host's needs no copies: nothing is done. InvalidArgument: a
  // range outside the memory; ResourceExhausted: no room.
  absl::Status Reserve(const PreloadCall& call, int64_t size);

  // The room for the tensor of `bytes` at that offset, in the device's memory until the next
  // Reserve, Copy or KeepOnly; null: there is none. Who fills it says so by Add. REQUIRES, of Add:
  // there is room at that offset.
  std::byte* PlaceFor(uint64_t token, int64_t offset, int64_t bytes) const;
  void Add(int64_t offset);

  // Reserve, and copies what is not there yet. Errors: as Reserve.
  absl::Status Copy(const PreloadCall& call, absl::Span<const std::byte> memory);

  // Gives the memory back unless it is `token`'s.
  void KeepOnly(uint64_t token);

  // The device's copy of the tensor at that offset of the arguments' memory; null: there is none.
  const std::byte* Find(uint64_t token, int64_t offset) const;

 private:
  struct Room {
    std::byte* place = nullptr;
    int64_t bytes = 0;
    bool is_filled = false;
  };

  device::Device& device_;
  uint64_t token_ = 0;             // 0: nothing is held
  std::map<int64_t, Room> rooms_;  // by offset; of tensors with any bytes
};

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_PRELOADED_H_
