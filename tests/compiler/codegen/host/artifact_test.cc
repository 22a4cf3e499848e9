// SPDX-License-Identifier: Apache-2.0
//
// What the host back end promises of its artifacts beside their results: what they need, that equal
// inputs give equal bytes, also from several threads at once, and which chips there are.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "compiler/codegen/host/host.h"
#include "compiler/ir/builder.h"
#include "gtest/gtest.h"

namespace phobos::compiler::host {
namespace {

using ir::DType;
using ir::Opcode;
using ir::SliceAt;
using ir::ValueId;

// Built-ins, divisions, conversions and a scatter: what could want a library.
ir::Function Demanding(int64_t block) {
  ir::Builder b(ir::Function{.name = "d\xc3\xa9mon"});
  const ir::Dim n{.extent = b.AddExtent("N")};
  const int32_t x = b.AddTensor("x", DType::kF64, {n});
  const int32_t half = b.AddTensor("half", DType::kBF16, {n});
  const int32_t whole = b.AddTensor("whole", DType::kU64, {n});
  const ir::Subscript place = SliceAt(b.BlockId(0), block);
  ValueId v = b.Load(x, {place});
  for (Opcode opcode : {Opcode::kExp, Opcode::kLog, Opcode::kSin, Opcode::kErf, Opcode::kRound}) {
    v = b.Elementwise(opcode, {v});
  }
  v = b.Elementwise(Opcode::kPow, {v, b.Load(x, {place})});
  v = b.Elementwise(Opcode::kMod, {v, b.Load(x, {place})});
  const ValueId integer = b.Cast(v, DType::kU64);
  b.Store(half, {place}, b.Cast(v, DType::kBF16));
  b.Store(whole, {place}, b.Elementwise(Opcode::kFloorDiv, {integer, b.Load(whole, {place})}));
  return b.Finish();
}

TEST(ArtifactTest, NeedsNoLibraryAndNoSymbol) {
  for (const char* chip : {"x86-64-v3", "x86-64-v4"}) {
    const auto artifact = Compile(Demanding(100), *ResolveChip(chip));
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    const char* bytes = artifact->shared_object.data();
    Elf64_Ehdr header;
    std::memcpy(&header, bytes, sizeof header);
    ASSERT_EQ(std::memcmp(header.e_ident, ELFMAG, SELFMAG), 0);
    int symbols = 0;
    for (int i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr section;
      std::memcpy(&section, bytes + header.e_shoff + i * sizeof section, sizeof section);
      for (uint64_t at = 0; section.sh_type == SHT_DYNAMIC && at < section.sh_size;
           at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        std::memcpy(&entry, bytes + section.sh_offset + at, sizeof entry);
        EXPECT_NE(entry.d_tag, DT_NEEDED);
        EXPECT_NE(entry.d_tag, DT_TEXTREL);
      }
      // The first symbol is the empty one.
      for (uint64_t at = sizeof(Elf64_Sym); section.sh_type == SHT_DYNSYM && at < section.sh_size;
           at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, bytes + section.sh_offset + at, sizeof symbol);
        EXPECT_NE(symbol.st_shndx, SHN_UNDEF);
        ++symbols;
      }
      EXPECT_NE(section.sh_type, static_cast<uint32_t>(SHT_SYMTAB));
    }
    EXPECT_EQ(symbols, 1);
  }
}

TEST(ArtifactTest, EqualInputsGiveEqualBytesOnAnyThread) {
  const Chip chip = *ResolveChip("x86-64-v3");
  const auto want = Compile(Demanding(64), chip);
  ASSERT_TRUE(want.ok()) << want.status();
  EXPECT_NE(Compile(Demanding(128), chip)->shared_object, want->shared_object);
  std::vector<std::string> got(8);
  std::vector<std::thread> threads;
  for (std::string& bytes : got) {
    threads.emplace_back([&] { bytes = Compile(Demanding(64), chip)->shared_object; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& bytes : got) EXPECT_EQ(bytes, want->shared_object);
}

TEST(ChipTest, LevelsNameWhatTheyNeed) {
  const auto level3 = ResolveChip("x86-64-v3");
  ASSERT_TRUE(level3.ok());
  EXPECT_EQ(level3->vector_bytes, 32);
  EXPECT_EQ(level3->features,
            (std::vector<std::string>{"avx", "avx2", "bmi", "bmi2", "crc32", "f16c", "fma", "lzcnt",
                                      "movbe", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}));
  const auto level4 = ResolveChip("x86-64-v4");
  ASSERT_TRUE(level4.ok());
  EXPECT_EQ(level4->vector_bytes, 64);
  EXPECT_TRUE(std::includes(level4->features.begin(), level4->features.end(),
                            level3->features.begin(), level3->features.end()));
  EXPECT_TRUE(std::count(level4->features.begin(), level4->features.end(), "avx512vl"));
}

TEST(ChipTest, NativeIsALevel) {
  const auto chip = ResolveChip("native");
  ASSERT_TRUE(chip.ok()) << chip.status();
  EXPECT_TRUE(chip->name == "x86-64-v3" || chip->name == "x86-64-v4") << chip->name;
}

TEST(ChipTest, CpusByName) {
  EXPECT_EQ(ResolveChip("haswell")->vector_bytes, 32);
  EXPECT_EQ(ResolveChip("znver4")->vector_bytes, 64);
  EXPECT_TRUE(Compile(Demanding(32), *ResolveChip("skylake-avx512")).ok());
}

TEST(ChipTest, OthersAreRefusedWithTheNamesThereAre) {
  for (const char* name : {"sm_90", "x86-64-v2", "nehalem", "", "pentium"}) {
    const auto chip = ResolveChip(name);
    EXPECT_EQ(chip.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(chip.status().message());
    EXPECT_NE(message.find(std::string("\"") + name + "\""), std::string::npos) << message;
    EXPECT_NE(message.find("x86-64-v4"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace phobos::compiler::host
