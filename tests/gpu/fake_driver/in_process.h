// SPDX-License-Identifier: Apache-2.0
//
// For tests on the stand-in driver: runs a test's body in a process of its own, because a process
// has one driver for its life; and writes PTX whose host twin is a function of
// tests/daemon/artifacts:kernels.so. The test's BUILD rule has both libraries as `data`.
#ifndef PHOBOS_TESTS_GPU_FAKE_DRIVER_IN_PROCESS_H_
#define PHOBOS_TESTS_GPU_FAKE_DRIVER_IN_PROCESS_H_

#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace phobos::fake {

inline std::string FromRoot(const std::string& path) {
  char folder[4096];
  return std::string(getcwd(folder, sizeof(folder))) + "/" + path;
}

inline std::string Temporary(const std::string& name) {
  return ::testing::TempDir() + "/" + std::to_string(getpid()) + "." + name;
}

// Runs `body` in a child with that script; its failed expectations are the test's. Gives the calls
// it made, as the trace has them but for the process number.
inline std::vector<std::string> InProcess(const std::string& script,
                                          const std::function<void()>& body) {
  const std::string script_path = Temporary("script"), trace_path = Temporary("trace");
  std::ofstream(script_path) << script;
  remove(trace_path.c_str());
  const pid_t child = fork();
  if (child == 0) {
    setenv("PHOBOS_CUDA_LIBRARY", FromRoot("tests/gpu/fake_driver/libcuda.so").c_str(), 1);
    setenv("PHOBOS_NVML_LIBRARY", FromRoot("tests/gpu/fake_driver/libnvidia-ml.so").c_str(), 1);
    setenv("PHOBOS_FAKE_CUDA_SCRIPT", script_path.c_str(), 1);
    setenv("PHOBOS_FAKE_CUDA_TRACE", trace_path.c_str(), 1);
    body();
    fflush(nullptr);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "the body failed, see above";
  std::vector<std::string> calls;
  std::ifstream trace(trace_path);
  for (std::string line; std::getline(trace, line);) {
    calls.push_back(line.substr(line.find(' ') + 1));
  }
  remove(script_path.c_str());
  remove(trace_path.c_str());
  return calls;
}

// PTX with so many slots, called `header` for the script, e.g. "add BLOCK=512". An empty twin: the
// kernel does nothing.
inline std::string Ptx(const std::string& header, int slots, const std::string& twin,
                       int threads = 128) {
  std::string text = "// phobos-tuner: " + header +
                     "\n.version 7.8\n.target sm_80\n.address_size 64\n.visible .entry kernel(\n";
  for (int i = 0; i < slots; ++i) {
    text += "  .param .u64 p" + std::to_string(i) + (i + 1 < slots ? ",\n" : "\n");
  }
  text += ")\n.maxntid " + std::to_string(threads) + "\n{\n  ret;\n}\n";
  if (!twin.empty()) {
    text += "// host-twin: " + FromRoot("tests/daemon/artifacts/kernels.so") + " " + twin + " 0 " +
            std::to_string(threads) + "\n";
  }
  return text;
}

}  // namespace phobos::fake

#endif  // PHOBOS_TESTS_GPU_FAKE_DRIVER_IN_PROCESS_H_
