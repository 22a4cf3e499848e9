// SPDX-License-Identifier: Apache-2.0
//
// The worker process of tests: worker_main --worker=DEVICE --worker-socket=N.
#include <cstdlib>
#include <cstring>
#include <string>

#include "daemon/worker/supervisor.h"

int main(int argc, char** argv) {
  std::string device;
  int socket = -1;
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], "--worker=", 9) == 0) device = argv[i] + 9;
    if (strncmp(argv[i], "--worker-socket=", 16) == 0) socket = atoi(argv[i] + 16);
  }
  return phobos::worker::WorkerMain(socket, device);
}
