// SPDX-License-Identifier: Apache-2.0
//
// CudaDriver: the CUDA driver of this machine, loaded when it is first asked for, or the reason why
// there is none. Not a device and not a context: it makes none. Immutable once loaded; any thread.
// A forked child of a process that loaded it cannot use CUDA: every call then fails, which Error
// explains.
#ifndef PHOBOS_CLIENT_LAUNCH_CUDA_DRIVER_H_
#define PHOBOS_CLIENT_LAUNCH_CUDA_DRIVER_H_

#include <memory>
#include <string>

#include "client/launch/cuda/functions.h"
#include "client/launch/status.h"

namespace phobos::launch::cuda {

// cuDriverGetVersion of the oldest driver that is used: 12.0.
inline constexpr int kOldestVersion = 12000;

// Whether the context, and with it all that the process has on the card, is lost: each later call
// gives the same error until the process ends.
bool IsSticky(Result result);

// "12.4" of 12040.
std::string VersionText(int version);

class CudaDriver {
 public:
  // Loads libcuda.so.1, or what $PHOBOS_CUDA_LIBRARY names, and starts it (cuInit, some 0.2 s the
  // first time in a process). The library stays in the process. Unavailable: there is no driver, it
  // is too old, there is no device, or none that we may use; the message says which and what to do.
  static StatusOr<std::shared_ptr<const CudaDriver>> Load();

  // The functions, by the names of functions.h.
  const Functions* operator->() const { return &functions_; }

  int version() const { return version_; }  // as cuDriverGetVersion: 12040 is 12.4

  // OK for kSuccess. Else what went wrong, once and for all: the call's name, the driver's name of
  // the result, and what to do about it where we know. Aborted: IsSticky, the process must end;
  // ResourceExhausted: no memory on the card; FailedPrecondition: this card or driver cannot do it;
  // InvalidArgument: the image is bad; Unavailable: the card cannot be had now; Internal: the rest.
  // `detail`: more of it, from a log of the driver say; may be empty.
  Status Error(const char* call, Result result, const std::string& detail = "") const;

 private:
  CudaDriver() = default;
  Functions functions_;
  int version_ = 0;
};

// Keeps a context current on this thread for as long as it lives.
class ScopedContext {
 public:
  ScopedContext(const CudaDriver& driver, Context context) : driver_(driver) {
    is_pushed_ = driver_->push_context(context) == kSuccess;
  }
  ~ScopedContext() {
    Context popped = nullptr;
    if (is_pushed_) driver_->pop_context(&popped);
  }
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

  // False: the context is lost, and what follows will say so.
  bool is_current() const { return is_pushed_; }

 private:
  const CudaDriver& driver_;
  bool is_pushed_ = false;
};

}  // namespace phobos::launch::cuda

#endif  // PHOBOS_CLIENT_LAUNCH_CUDA_DRIVER_H_
