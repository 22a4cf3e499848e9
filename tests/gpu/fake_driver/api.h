// SPDX-License-Identifier: Apache-2.0
//
// What all exported functions of the stand-in driver do first, and the declaration of each from the
// one list. Any thread.
#ifndef PHOBOS_TESTS_GPU_FAKE_DRIVER_API_H_
#define PHOBOS_TESTS_GPU_FAKE_DRIVER_API_H_

#include <string>
#include <vector>

#include "client/launch/cuda/functions.h"
#include "tests/gpu/fake_driver/card/world.h"

namespace phobos::launch::cuda {

#define PHOBOS_FAKE_DECLARE(field, name, suffix, parameters) \
  extern "C" Result name##suffix parameters;
PHOBOS_CUDA_FUNCTIONS(PHOBOS_FAKE_DECLARE)
#undef PHOBOS_FAKE_DECLARE

}  // namespace phobos::launch::cuda

namespace phobos::fake {

// The contexts of this thread, the current one last, and how it minds captures.
struct ThreadState {
  std::vector<cuda::Context> contexts;
  cuda::CaptureMode capture_mode = cuda::kCaptureGlobal;
};
ThreadState& ThisThread();

// What a call needs.
enum class Need {
  kNothing,
  kInit,       // cuInit was called
  kContext,    // a context is current
  kNoCapture,  // and no stream is being captured, unless the thread is relaxed about that
};

// Runs `body` unless the script, the state of the process or a need that is not met says otherwise.
template <typename Body>
cuda::Result Call(const char* name, Need need, const std::string& what, Body body) {
  World& world = World::Get();
  world.CountCall();
  const cuda::Result condition = world.Condition();
  if (condition != cuda::kSuccess) return condition;
  if (const int scripted = world.trace.Enter(name, what); scripted != 0) {
    const auto result = static_cast<cuda::Result>(scripted);
    // The errors that a real process never gets over.
    if (scripted >= 700 && scripted < 720 && result != cuda::kLaunchOutOfResources) {
      world.Lose(scripted);
    }
    return result;
  }
  if (need == Need::kNothing) return body(world);
  if (!world.is_initialized.load()) return cuda::kNotInitialized;
  if (need == Need::kInit) return body(world);
  if (ThisThread().contexts.empty()) return cuda::kInvalidContext;
  if (need == Need::kNoCapture && world.captures.load() > 0 &&
      ThisThread().capture_mode != cuda::kCaptureRelaxed) {
    return cuda::kStreamCaptureUnsupported;
  }
  return body(world);
}

}  // namespace phobos::fake

// For tests: lets a stream be captured (a CaptureStatus), which takes launches and does not run
// them.
extern "C" void phobos_fake_set_capture(phobos::launch::cuda::Stream stream, int status);

#endif  // PHOBOS_TESTS_GPU_FAKE_DRIVER_API_H_
