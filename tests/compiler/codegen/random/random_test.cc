// SPDX-License-Identifier: Apache-2.0
//
// Random kernels, compiled and interpreted. A failure prints its seed, the launch, and the kernel
// as IR, which ir/text/parser.h reads, and as source. $PHOBOS_TEST_SEED is the first seed (default
// 0), $PHOBOS_TEST_COUNT how many there are (default 150).
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/equality.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"
#include "tests/compiler/codegen/random/random_kernel.h"
#include "tests/compiler/codegen/random/source_text.h"
#include "tests/compiler/sema/lower/lowered.h"

namespace phobos::compiler::testing {
namespace {

// What source_text.h writes.
constexpr Forms kWritten = {.arranges = false};
constexpr uint64_t kDefaultCount = 150;

std::string LaunchText(const RandomKernel& kernel) {
  std::string text = absl::StrCat("# grid ", absl::StrJoin(kernel.launch.grid, ", "));
  for (size_t p = 0; p < kernel.function.params.size(); ++p) {
    absl::StrAppend(&text, "\n# ", kernel.function.params[p].name, ": sides [",
                    absl::StrJoin(kernel.launch.arguments[p].sides, ", "), "]");
  }
  return text;
}

// Every other kernel stores each row past the caches, however small, wherever that is possible.
std::vector<host::Chip> ChipsFor(uint64_t seed) {
  std::vector<host::Chip> chips = ChipsUnderTest();
  for (host::Chip& chip : chips) {
    if (seed % 2 == 1) chip.streamed_bytes = chip.streamed_row_bytes = 1;
  }
  return chips;
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
  // Only passes make a kStage; see print_test.cc for the other.
  std::set<ir::Opcode> opcodes = {ir::Opcode::kStage, ir::Opcode::kPrint};
  for (int i = 0; i <= static_cast<int>(ir::Opcode::kStage); ++i) {
    const auto opcode = static_cast<ir::Opcode>(i);
    if (ir::IsAtomic(opcode)) opcodes.insert(opcode);  // see atomic_test.cc
  }
  std::set<size_t> ranks;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Count(MakeRandomKernel(seed).function.body, &opcodes, &ranks);
  }
  for (int i = 0; i <= static_cast<int>(ir::Opcode::kStage); ++i) {
    const auto opcode = static_cast<ir::Opcode>(i);
    EXPECT_EQ(opcodes.count(opcode), 1u) << ir::Name(opcode);
  }
  EXPECT_EQ(ranks, (std::set<size_t>{0, 1, 2, 3, 4}));
}

// The sides of 1 that a product has, of "mkn".
std::string ShortSides(const ir::Type& a, const ir::Type& product) {
  const int64_t sides[] = {a.shape[a.shape.size() - 2], a.shape.back(), product.shape.back()};
  std::string text;
  for (size_t i = 0; i < 3; ++i) text += sides[i] == 1 ? "mkn"[i] : '-';
  return text;
}

TEST(RandomTest, ProductsOfEveryKindAreTried) {
  for (const Forms& forms : {Forms{}, kWritten}) {
    std::set<std::string> kinds, sides;
    for (uint64_t seed = 0; seed < 1200; ++seed) {
      const RandomKernel kernel = MakeRandomKernel(seed, forms);
      const std::vector<const ir::Op*> definitions = ir::DefinitionsOf(kernel.function);
      for (const ir::Op* op : definitions) {
        if (op == nullptr || op->opcode != ir::Opcode::kDot) continue;
        const ir::Type& a = definitions[op->operands[0]]->type;
        const bool adds = op->operands[2] != ir::kNoValue;
        kinds.insert(absl::StrCat(std::string(ir::Name(a.dtype)), " ", op->axis, op->index, adds));
        sides.insert(ShortSides(a, op->type));
      }
    }
    // Six types and two more precisions, by dot and dot_t, with and without what they add to.
    EXPECT_EQ(kinds.size(), 8u * 2 * 2) << absl::StrJoin(kinds, ", ");
    EXPECT_EQ(sides.size(), 8u) << absl::StrJoin(sides, ", ");
  }
}

TEST(RandomTest, PromisesAreMadeAndKept) {
  std::set<int64_t> multiples, alignments;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomKernel kernel = MakeRandomKernel(seed);
    const auto extents = ExtentsOf(kernel.function, kernel.launch);
    ASSERT_TRUE(extents.ok()) << extents.status();
    for (size_t i = 0; i < extents->size(); ++i) {
      const int64_t multiple = kernel.function.extents[i].multiple;
      multiples.insert(multiple);
      EXPECT_EQ((*extents)[i] % multiple, 0) << "# seed " << seed;
    }
    for (const ir::Param& param : kernel.function.params) alignments.insert(param.aligned_bytes);
  }
  EXPECT_EQ(multiples, (std::set<int64_t>{1, 4, 8, 12, 16}));
  EXPECT_EQ(alignments, (std::set<int64_t>{1, 2, 4, 8, 16, 32, 64}));
}

TEST(RandomTest, CompiledKernelsDoWhatTheInterpreterDoes) {
  const uint64_t begin = NumberFrom("PHOBOS_TEST_SEED", 0);
  const uint64_t end = begin + NumberFrom("PHOBOS_TEST_COUNT", kDefaultCount);
  for (uint64_t seed = begin; seed < end; ++seed) {
    const RandomKernel kernel = MakeRandomKernel(seed);
    const absl::Status status = ir::Verify(kernel.function);
    ASSERT_TRUE(status.ok()) << status << "\n" << ir::Print(kernel.function);
    EXPECT_EQ(Differences(kernel.function, kernel.launch, kernel.ulps, ChipsFor(seed)), "")
        << "# seed " << seed << "\n"
        << LaunchText(kernel) << "\n"
        << ir::Print(kernel.function) << "\n"
        << SourceOf(kernel.function);
  }
}

// The same kernels by way of the front end: what Lower makes of the source does what the function
// did that the source was written from, interpreted and compiled.
TEST(RandomTest, LoweredSourcesDoWhatTheInterpreterDoes) {
  const uint64_t begin = NumberFrom("PHOBOS_TEST_SEED", 0);
  const uint64_t end = begin + NumberFrom("PHOBOS_TEST_COUNT", kDefaultCount) / 3;
  for (uint64_t seed = begin; seed < end; ++seed) {
    RandomKernel kernel = MakeRandomKernel(seed, kWritten);
    const std::string source = SourceOf(kernel.function);
    const auto lowered = sema::LowerFile(source);
    ASSERT_TRUE(lowered.ok()) << lowered.status() << "\n# seed " << seed << "\n" << source;
    // A dimension of the grid that no line reads has one block.
    for (int axis = 0; axis < 3; ++axis) {
      if (((lowered->grid_dims_used >> axis) & 1) == 0) kernel.launch.grid[axis] = 1;
    }
    const auto want = Interpret(kernel.function, kernel.launch);
    ASSERT_TRUE(want.ok()) << want.status();
    EXPECT_EQ(DifferencesFrom(*want, *lowered, kernel.launch, kernel.ulps, ChipsFor(seed)), "")
        << "# seed " << seed << "\n"
        << LaunchText(kernel) << "\n"
        << source << "\n"
        << ir::Print(kernel.function) << "\nlowered\n"
        << ir::Print(*lowered);
  }
}

}  // namespace
}  // namespace phobos::compiler::testing
