// SPDX-License-Identifier: Apache-2.0
//
// Random kernels, compiled and interpreted. A failure prints its seed, the kernel as text, which
// ir/text/parser.h reads, and the launch. $PHOBOS_TEST_SEED is the first seed (default 0),
// $PHOBOS_TEST_COUNT how many there are (default 300).
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled.h"
#include "tests/compiler/codegen/random_kernel.h"

namespace phobos::compiler::testing {
namespace {

std::string LaunchText(const RandomKernel& kernel) {
  std::string text = absl::StrCat("# grid ", absl::StrJoin(kernel.launch.grid, ", "));
  for (size_t p = 0; p < kernel.function.params.size(); ++p) {
    absl::StrAppend(&text, "\n# ", kernel.function.params[p].name, ": sides [",
                    absl::StrJoin(kernel.launch.arguments[p].sides, ", "), "]");
  }
  return text;
}

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* text = getenv(variable);
  return text != nullptr ? strtoull(text, nullptr, 10) : otherwise;
}

void Count(const ir::Block& block, std::set<ir::Opcode>* opcodes, std::set<size_t>* ranks) {
  for (const ir::Op& op : block) {
    opcodes->insert(op.opcode);
    if (op.result != ir::kNoValue) ranks->insert(op.type.shape.size());
    for (const ir::Block& region : op.regions) Count(region, opcodes, ranks);
  }
}

// A new operation is one that MakeRandomKernel has to make too.
TEST(RandomTest, EveryOpcodeIsTried) {
  std::set<ir::Opcode> opcodes = {ir::Opcode::kStage};  // only passes make it
  std::set<size_t> ranks;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Count(MakeRandomKernel(seed).function.body, &opcodes, &ranks);
  }
  for (int i = 0; i <= static_cast<int>(ir::Opcode::kStage); ++i) {
    const auto opcode = static_cast<ir::Opcode>(i);
    EXPECT_EQ(opcodes.count(opcode), 1u) << ir::Name(opcode);
  }
  EXPECT_EQ(ranks, (std::set<size_t>{0, 1, 2, 3, 4}));
}

TEST(RandomTest, CompiledKernelsDoWhatTheInterpreterDoes) {
  const uint64_t begin = NumberFrom("PHOBOS_TEST_SEED", 0);
  const uint64_t end = begin + NumberFrom("PHOBOS_TEST_COUNT", 300);
  for (uint64_t seed = begin; seed < end; ++seed) {
    const RandomKernel kernel = MakeRandomKernel(seed);
    const absl::Status status = ir::Verify(kernel.function);
    ASSERT_TRUE(status.ok()) << status << "\n" << ir::Print(kernel.function);
    EXPECT_EQ(Differences(kernel.function, kernel.launch, kernel.ulps), "")
        << "# seed " << seed << "\n"
        << LaunchText(kernel) << "\n"
        << ir::Print(kernel.function);
  }
}

}  // namespace
}  // namespace phobos::compiler::testing
