// SPDX-License-Identifier: Apache-2.0
//
// Every call of the stand-in driver, written down as a line of the file that
// $PHOBOS_FAKE_CUDA_TRACE names, "PID NAME WHAT", so that a test can prove in which order things
// happened and that nothing was allocated or loaded between samples; and the calls that the script
// lets fail. Questions that are asked again and again (cuStreamQuery) are not written down. Any
// thread, any process.
#ifndef PHOBOS_TESTS_GPU_FAKE_DRIVER_SCRIPT_TRACE_H_
#define PHOBOS_TESTS_GPU_FAKE_DRIVER_SCRIPT_TRACE_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "tests/gpu/fake_driver/script/script.h"

namespace phobos::fake {

class Trace {
 public:
  explicit Trace(const Script& script);

  // A call begins; gives the result that the script wants it to have, or 0.
  int Enter(const std::string& name, const std::string& what);

 private:
  const Script& script_;
  const int fd_;
  std::mutex mutex_;
  std::map<std::string, int64_t> counts_;
};

}  // namespace phobos::fake

#endif  // PHOBOS_TESTS_GPU_FAKE_DRIVER_SCRIPT_TRACE_H_
