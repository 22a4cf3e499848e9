// SPDX-License-Identifier: Apache-2.0
//
// Race-recording forms of random kernels: compiled and interpreted they leave the same shadows, and
// in the kernel's own tensors what the kernel leaves there.
#include <cstddef>
#include <cstdint>

#include "compiler/ir/printer.h"
#include "compiler/passes/record.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"
#include "tests/compiler/codegen/random/random_kernel.h"

namespace phobos::compiler::testing {
namespace {

// With a shadow for each parameter that has one, all 0.
Launch WithShadows(const passes::Recording& recording, Launch launch) {
  for (const passes::Shadow& shadow : recording.shadows) {
    Argument zeros = launch.arguments[shadow.param];
    zeros.elements.assign(zeros.elements.size(), 0);
    launch.arguments.push_back(std::move(zeros));
  }
  return launch;
}

TEST(RecordedTest, RandomKernels) {
  int recorded = 0;
  for (uint64_t seed = 0; seed < 25; ++seed) {
    RandomKernel kernel = MakeRandomKernel(seed);
    const passes::Recording recording = passes::Record(kernel.function);
    const Launch launch = WithShadows(recording, kernel.launch);
    recorded += recording.shadows.empty() ? 0 : 1;
    kernel.ulps.resize(launch.arguments.size());
    EXPECT_EQ(Differences(recording.function, launch, kernel.ulps), "")
        << "# seed " << seed << "\n"
        << ir::Print(recording.function);
    const auto want = Interpret(kernel.function, kernel.launch);
    const auto got = Interpret(recording.function, launch);
    ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
    for (size_t i = 0; i < want->size(); ++i) {
      EXPECT_EQ((*want)[i].elements, (*got)[i].elements) << "# seed " << seed;
    }
  }
  EXPECT_GT(recorded, 20);
}

}  // namespace
}  // namespace phobos::compiler::testing
