// SPDX-License-Identifier: Apache-2.0
//
// The worker process of tests: worker_main --worker=DEVICE --worker-socket=N.
#include <cstdlib>
#include <cstring>
#include <string>

#include "daemon/worker/supervisor.h"

// In a build with a sanitizer a kernel that faults should end the process as it does without one:
// by its signal.
extern "C" const char* __asan_default_options() { return "handle_segv=0:detect_leaks=0"; }
extern "C" const char* __tsan_default_options() { return "handle_segv=0"; }
extern "C" const char* __ubsan_default_options() { return "handle_segv=0"; }

int main(int argc, char** argv) {
  std::string device;
  int socket = -1;
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], "--worker=", 9) == 0) device = argv[i] + 9;
    if (strncmp(argv[i], "--worker-socket=", 16) == 0) socket = atoi(argv[i] + 16);
  }
  return phobos::worker::WorkerMain(socket, device);
}
