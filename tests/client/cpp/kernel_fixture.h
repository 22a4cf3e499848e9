// SPDX-License-Identifier: Apache-2.0
//
// For tests of the C++ client's kernels: a fake tuner, kernels of it, arrays to launch them on, and
// the warnings that came. One thread.
#ifndef PHOBOS_TESTS_CLIENT_CPP_KERNEL_FIXTURE_H_
#define PHOBOS_TESTS_CLIENT_CPP_KERNEL_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/cpp/kernel.h"
#include "tests/client/cpp/fake_tuner.h"

namespace phobos::testing {

inline Grid AddGrid(const Meta& meta) {
  return {(meta["N"] + meta["BLOCK"] - 1) / meta["BLOCK"], 1, 1};
}

inline Status AddReference(ReferenceArguments& arguments) {
  const std::span<float> x = arguments.Tensor<float>("x"), y = arguments.Tensor<float>("y");
  std::vector<float> sum(x.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = x[i] + y[i];
  x[0] = -1;  // its copies are its own
  return arguments.Set<float>("out", sum);
}

class KernelFixture : public ::testing::Test {
 protected:
  KernelFixture() {
    unsetenv("PHOBOS_TUNE");
    unsetenv("PHOBOS_THREADS");
    options_.socket = tuner_.socket();
    options_.autostart = false;
    options_.warn = [this](const std::string& text) { warnings_.push_back(text); };
  }

  std::unique_ptr<Kernel> Open(bool with_reference, const std::string& policy = "") {
    if (client_ == nullptr) client_ = Client::Open(options_);
    KernelOptions options;
    options.source = kAddSource;
    options.file_name = "add.py";
    options.name = "add";
    options.policy = policy;
    if (with_reference) options.reference = AddReference;
    auto kernel = Kernel::Open(client_, options);
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    return *std::move(kernel);
  }

  // Arrays of one launch.
  struct Arrays {
    explicit Arrays(size_t n) : x(n), y(n), out(n, -7) {
      for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i), y[i] = 0.5f;
    }
    std::vector<Argument> Arguments() {
      const auto n = static_cast<int64_t>(x.size());
      return {Argument::Tensor(x.data(), {n}), Argument::Tensor(y.data(), {n}),
              Argument::Tensor(out.data(), {n})};
    }
    bool IsSum() const {
      for (size_t i = 0; i < out.size(); ++i) {
        if (out[i] != x[i] + y[i]) return false;
      }
      return true;
    }
    std::vector<float> x, y, out;
  };

  static std::string Launch(Kernel& kernel, Arrays& arrays) {
    const Status status = kernel.Launch(arrays.Arguments(), AddGrid);
    return status.ok() ? "ok" : status.message();
  }

  void WithoutDaemon() { tuner_.daemon().Stop(); }

  FakeTuner tuner_;
  ClientOptions options_;
  std::vector<std::string> warnings_;
  std::shared_ptr<Client> client_;
};

}  // namespace phobos::testing

#endif  // PHOBOS_TESTS_CLIENT_CPP_KERNEL_FIXTURE_H_
