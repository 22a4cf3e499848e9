// SPDX-License-Identifier: Apache-2.0
//
// Stream capture, as whoever launches must mind it: whether a stream is being captured, and leave
// for this thread to allocate, load and wait all the same while some other thread captures one.
// Any thread.
#ifndef PHOBOS_CLIENT_LAUNCH_CUDA_CAPTURE_H_
#define PHOBOS_CLIENT_LAUNCH_CUDA_CAPTURE_H_

#include "client/launch/cuda/driver.h"
#include "client/launch/status.h"

namespace phobos::launch::cuda {

// Whether what is queued on the stream becomes part of a graph instead of being run. The stream 0
// counts as captured while a stream that waits for it is. REQUIRES: a context is current.
StatusOr<bool> IsCaptured(const CudaDriver& driver, Stream stream);

// While it lives, calls of this thread that a capture elsewhere in the process forbids are allowed.
// Not for calls on a stream that is captured itself.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const CudaDriver& driver) : driver_(driver) { Exchange(); }
  ~RelaxedCapture() { Exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void Exchange() { driver_->exchange_capture_mode(&mode_); }

  const CudaDriver& driver_;
  CaptureMode mode_ = kCaptureRelaxed;  // the thread's own while this lives
};

}  // namespace phobos::launch::cuda

#endif  // PHOBOS_CLIENT_LAUNCH_CUDA_CAPTURE_H_
