// SPDX-License-Identifier: Apache-2.0
#include "client/launch/cuda/capture.h"

namespace phobos::launch::cuda {

StatusOr<bool> IsCaptured(const CudaDriver& driver, Stream stream) {
  CaptureStatus status = kCaptureNone;
  const Result result = driver->capture_status(stream, &status);
  if (result == kStreamCaptureImplicit) return true;
  if (result != kSuccess) return driver.Error("cuStreamIsCapturing", result);
  return status != kCaptureNone;
}

}  // namespace phobos::launch::cuda
