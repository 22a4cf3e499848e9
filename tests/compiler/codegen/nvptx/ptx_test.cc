// SPDX-License-Identifier: Apache-2.0
//
// The shape of the PTX that kernels give: how wide their accesses are, where threads wait, what is
// promised to the chip; and what is refused.
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/codegen/nvptx/nvptx.h"
#include "compiler/ir/builder.h"
#include "gtest/gtest.h"
#include "tests/compiler/sema/lower/lowered.h"

namespace phobos::compiler::nvptx {
namespace {

Chip Sm90() { return *ResolveChip("sm_90"); }

std::string PtxOf(const std::string& definition, const Chip& chip = Sm90()) {
  const auto function = sema::LowerFile(
      "from __future__ import annotations\nimport phobos.lang as ph\n\n@ph.kernel\n" + definition);
  if (!function.ok()) return std::string(function.status().message());
  const auto artifact = Compile(*function, chip);
  return artifact.ok() ? artifact->ptx : std::string(artifact.status().message());
}

int Count(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::string AddOf(const std::string& dtype, int block) {
  const std::string tensor = "ph.tensor[ph." + dtype + "][N]";
  const std::string slice = "[i:+" + std::to_string(block) + "]";
  return "def add(x: " + tensor + ", y: " + tensor + ", out: " + tensor +
         "):\n    i: ph.let = ph.ctx.block.x * " + std::to_string(block) + "\n    out" + slice +
         " = x" + slice + " + y" + slice + "\n";
}

TEST(PtxTest, AddLoadsAndStoresWholeVectors) {
  const std::string ptx = PtxOf(AddOf("f32", 1024));
  EXPECT_EQ(Count(ptx, "ld.global.nc.v4.f32"), 2) << ptx;
  EXPECT_EQ(Count(ptx, "st.global.v4.f32"), 1) << ptx;
  EXPECT_EQ(Count(ptx, "ld.global"), 10) << "and of four elements one by one, at the tensor's end";
  EXPECT_EQ(Count(ptx, "bar.sync"), 0);
  EXPECT_EQ(Count(ptx, ".local"), 0);
  EXPECT_EQ(Count(ptx, ".shared"), 0);
  EXPECT_EQ(Count(ptx, "call"), 0);
}

TEST(PtxTest, EveryTypeGetsSixteenBytesAThread) {
  EXPECT_EQ(Count(PtxOf(AddOf("f64", 1024)), "ld.global.nc.v2.f64"), 4);
  EXPECT_EQ(Count(PtxOf(AddOf("i64", 1024)), "ld.global.nc.v2.u64"), 4);
  for (const char* dtype : {"f16", "bf16", "i16", "u8", "i8"}) {
    EXPECT_EQ(Count(PtxOf(AddOf(dtype, 4096)), "ld.global.nc.v4.u32"), dtype[1] == '8' ? 2 : 4)
        << dtype;
    EXPECT_EQ(Count(PtxOf(AddOf(dtype, 4096)), "st.global.v4"), dtype[1] == '8' ? 1 : 2) << dtype;
  }
  const std::string mixed = PtxOf(
      "def k(x: ph.tensor[ph.u8][N], out: ph.tensor[ph.f32][N]):\n"
      "    out[0:+1024] = ph.cast(x[0:+1024], ph.f32)\n");
  EXPECT_EQ(Count(mixed, "ld.global.nc.u32"), 1) << "four elements\n" << mixed;
  EXPECT_EQ(Count(mixed, "st.global.v4.f32"), 1) << mixed;
}

// What is read once, by a kernel that writes little.
TEST(PtxTest, SomeLoadsStream) {
  const auto streams = [](const std::string& body, const std::string& out = "M") {
    const std::string ptx = PtxOf(
        "@ph.aligned(N=4)\ndef k(x: ph.tensor[ph.f32][M, N], w: ph.tensor[ph.f32][N], out: "
        "ph.tensor[ph.f32][" +
        out + "]):\n    i: ph.let = ph.ctx.block.x\n" + body);
    EXPECT_GT(Count(ptx, "ld.global"), 0) << ptx;
    return Count(ptx, "ld.global.cs.nc.v4.b32");
  };
  EXPECT_EQ(streams("    out[i] = ph.sum(x[i, 0:+2048])\n"), 2);
  EXPECT_EQ(streams("    s: ph.f32 = 0.0\n"
                    "    for j in ph.range(0, N, 2048):\n        s += ph.sum(x[i, j:+2048])\n"
                    "    out[i] = s\n"),
            2);
  EXPECT_EQ(streams("    for j in ph.range(i, M, ph.ctx.grid.x):\n"
                    "        out[j] = ph.sum(x[j, 0:+2048])\n"),
            2);
  EXPECT_EQ(streams("    out[i] = ph.sum(x[i, 0:+2048] * w[0:+2048])\n"), 2)
      << "w is every block's";
  EXPECT_EQ(streams("    out[i, 0:+2048] = x[i, 0:+2048] + w[0:+2048]\n", "M, N"), 0) << "writes";
  EXPECT_EQ(streams("    out[i] = ph.sum(ph.exp(x[i, 0:+2048] - ph.max(x[i, 0:+2048])))\n"), 0)
      << "twice";
  EXPECT_EQ(streams("    for j in ph.range(M):\n        out[j] = ph.sum(x[i, 0:+2048])\n"), 0)
      << "in every turn";
  EXPECT_EQ(streams("    out[i] = ph.sum(x[ph.ctx.block.y, 0:+2048])\n"), 0) << "by every i";
  const std::string doubles = PtxOf(
      "@ph.aligned(N=2)\ndef k(x: ph.tensor[ph.f64][M, N], out: ph.tensor[ph.f64][M]):\n"
      "    out[ph.ctx.block.x] = ph.sum(x[ph.ctx.block.x, 0:+1024])\n",
      *ResolveChip("sm_75"));
  EXPECT_EQ(Count(doubles, "ld.global.cs.nc.v4.b32"), 2) << doubles;
}

// What the chip has an instruction for, and what goes by compare and swap.
TEST(PtxTest, AtomicsAreTheChips) {
  const auto ptx_of = [](const std::string& dtype, const std::string& atomic) {
    return PtxOf("def k(x: ph.tensor[ph.i32][N], out: ph.tensor[ph." + dtype +
                     "][N]):\n    ph.atomic_" + atomic + "(out[x[0:+256]], 1)\n",
                 *ResolveChip("sm_75"));
  };
  for (const auto& [dtype, atomic, instruction] : {std::tuple("i32", "add", "atom.global.add.u32"),
                                                   {"i64", "max", "atom.global.max.s64"},
                                                   {"u32", "min", "atom.global.min.u32"},
                                                   {"u64", "xor", "atom.global.xor.b64"},
                                                   {"f32", "add", "atom.global.add.f32"},
                                                   {"f64", "add", "atom.global.add.f64"},
                                                   {"f32", "max", "atom.global.cas.b32"},
                                                   {"f16", "add", "atom.global.cas.b32"},
                                                   {"u8", "add", "atom.global.cas.b32"}}) {
    const std::string ptx = ptx_of(dtype, atomic);
    EXPECT_GE(Count(ptx, instruction), 1) << dtype << " " << atomic << "\n" << ptx;
    EXPECT_EQ(Count(ptx, "atom."), Count(ptx, instruction)) << dtype << " " << atomic;
  }
}

// Two of one kind whose results nobody asks for, in a loop: no thread waits. With a result on one
// element, the first thread tells it to the others.
TEST(PtxTest, AtomicsWaitOnlyWhereItShows) {
  const std::string counts =
      "def k(x: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N]):\n"
      "    for i in ph.range(0, N, 256):\n"
      "        ph.atomic_add(out[x[i:+256]], 1)\n"
      "        ph.atomic_add(out[0], 1)\n";
  EXPECT_EQ(Count(PtxOf(counts), "bar.sync"), 0) << PtxOf(counts);
  const std::string ticket =
      "def k(q: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N]):\n"
      "    out[0:+256] = ph.atomic_add(q[0], 1)\n";
  EXPECT_EQ(Count(PtxOf(ticket), "bar.sync"), 2) << PtxOf(ticket);
}

TEST(PtxTest, LargeTilesAreALoopOfFourVectors) {
  EXPECT_EQ(Count(PtxOf(AddOf("f32", 4096)), "st.global.v4.f32"), 4);
  EXPECT_EQ(Count(PtxOf(AddOf("f32", 65536)), "st.global.v4.f32"), 4);
}

TEST(PtxTest, NamesTheKernelTheChipAndTheSource) {
  ir::Function function = *sema::LowerFile(
      "from __future__ import annotations\nimport phobos.lang as ph\n\n@ph.kernel\n"
      "@ph.autotune(BLOCK=[64, 32, 16])\n@ph.launch(96, min_blocks=3)\n"
      "def scale(out: ph.tensor[ph.f32][N]):\n"
      "    out[0:+BLOCK] = out[0:+BLOCK] * 2.0\n");
  function.file_name = "dir/some kernel.py";
  for (const auto& [chip, target] : {std::pair("sm_75", "sm_75"),
                                     {"sm_80", "sm_80"},
                                     {"sm_86", "sm_86"},
                                     {"sm_87", "sm_86"},
                                     {"sm_89", "sm_89"},
                                     {"sm_90", "sm_90"},
                                     {"sm_120", "sm_90"}}) {
    const auto artifact = Compile(function, *ResolveChip(chip));
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    EXPECT_EQ(artifact->ptx.rfind("// phobos-tuner: scale BLOCK=64\n", 0), 0u) << artifact->ptx;
    EXPECT_EQ(Count(artifact->ptx, std::string(".target ") + target + "\n"), 1) << artifact->ptx;
    EXPECT_EQ(Count(artifact->ptx, ".visible .entry phobos_scale("), 1);
    EXPECT_EQ(artifact->entry, "phobos_scale");
    EXPECT_EQ(artifact->threads, 96);
    EXPECT_EQ(Count(artifact->ptx, ".maxntid 96, 1, 1"), 1);
    EXPECT_EQ(Count(artifact->ptx, ".minnctapersm 3"), 1);
    EXPECT_EQ(Count(artifact->ptx, "\"dir/some kernel.py\""), 1);
    EXPECT_GE(Count(artifact->ptx, ".loc\t1 8 "), 1) << artifact->ptx;
    EXPECT_EQ(Count(artifact->ptx, ".param .u64"), 2) << "a parameter of 8 bytes a slot";
  }
}

TEST(PtxTest, PromisesReplaceTests) {
  const std::string text =
      "def k(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):\n"
      "    i: ph.let = ph.ctx.block.x * 1024\n"
      "    out[i:+1024] = x[i:+1024]\n";
  EXPECT_EQ(Count(PtxOf(text), ", 15;"), 1) << PtxOf(text);
  EXPECT_EQ(Count(PtxOf("@ph.aligned(x=16, out=16)\n" + text), ", 15;"), 0);
  EXPECT_EQ(Count(PtxOf("@ph.aligned(x=16)\n" + text), ", 15;"), 1);
}

TEST(PtxTest, ThreadsWaitWhereTheyMeetOthersElements) {
  const std::string parameters = "def k(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):\n";
  // Each thread comes back to its own elements.
  EXPECT_EQ(Count(PtxOf(parameters + "    out[0:+1024] = x[0:+1024]\n"
                                     "    out[0:+1024] = out[0:+1024] * 2.0\n"
                                     "    for j in ph.range(9):\n"
                                     "        out[0:+1024] += x[j:+1024]\n"),
                  "bar.sync"),
            0);
  // And here to its neighbours': once before reading what was stored, once before storing over it.
  EXPECT_EQ(Count(PtxOf(parameters + "    out[0:+1024] = x[0:+1024]\n"
                                     "    out[0:+1024] = out[1:+1024]\n"),
                  "bar.sync"),
            2);
  // The index of the loop moves the elements on.
  EXPECT_GE(Count(PtxOf(parameters + "    for j in ph.range(9):\n"
                                     "        out[j:+1024] += x[0:+1024]\n"),
                  "bar.sync"),
            1);
  // One thread stores an element, all read it.
  EXPECT_EQ(Count(PtxOf(parameters + "    out[0] = x[0]\n    out[1:+64] = x[0:+64] * out[0]\n"),
                  "bar.sync"),
            2);
}

TEST(PtxTest, TileVariablesAreRegisters) {
  const std::string ptx = PtxOf(
      "def k(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N], n: ph.i32):\n"
      "    sum: ph.tile[ph.f32][2048] = 0.0\n"
      "    for j in ph.range(n):\n"
      "        sum += x[j * 2048:+2048]\n"
      "    out[0:+2048] = sum\n");
  EXPECT_EQ(Count(ptx, ".local"), 0) << ptx;
  EXPECT_EQ(Count(ptx, ".shared"), 0);
  EXPECT_EQ(Count(ptx, "ld.global.nc.v4.f32"), 2) << ptx;
}

TEST(PtxTest, NoContractionNoFlushingNoApproximation) {
  const std::string ptx = PtxOf(
      "def k(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):\n"
      "    a: ph.let = x[0:+256]\n"
      "    out[0:+256] = ph.sqrt(a * a + a / (a * a - 1.0)) + ph.exp(a)\n");
  EXPECT_GE(Count(ptx, "div.rn.f32"), 1) << ptx;
  EXPECT_GE(Count(ptx, "sqrt.rn.f32"), 1);
  EXPECT_GE(Count(ptx, "mul.rn.f32"), 1);
  EXPECT_EQ(Count(ptx, ".ftz"), 0);
  EXPECT_EQ(Count(ptx, ".approx"), 0);
}

const char kSoftmax[] =
    "def k(x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][M, N]):\n"
    "    row: ph.let = ph.ctx.block.x\n"
    "    v: ph.let = ph.load(x[row, 0:+2048], fill=-ph.inf)\n"
    "    e: ph.let = ph.exp(v - ph.max(v))\n"
    "    out[row, 0:+2048] = e * (1.0 / ph.sum(e))\n";

TEST(PtxTest, ASoftmaxLoadsItsRowOnceAndKeepsItInRegisters) {
  const std::string ptx = PtxOf(std::string("@ph.fast_math\n@ph.aligned(N=4)\n") + kSoftmax);
  EXPECT_EQ(Count(ptx, "ld.global.nc.v4.f32"), 2) << ptx;
  EXPECT_EQ(Count(ptx, "st.global.v4.f32"), 2) << ptx;
  EXPECT_EQ(Count(ptx, "ex2.approx.ftz.f32"), 8) << ptx;
  EXPECT_EQ(Count(ptx, ".local"), 0) << ptx;
  // A reduction: 5 exchanges in a warp, 3 between eight warps, one barrier.
  EXPECT_EQ(Count(ptx, "shfl.sync.bfly"), 2 * 8) << ptx;
  EXPECT_EQ(Count(ptx, "bar.sync"), 2) << ptx;
}

TEST(PtxTest, RowsAtAnyDistanceAreReadElementByElementSideBySide) {
  const std::string ptx = PtxOf(kSoftmax);
  EXPECT_EQ(Count(ptx, ".v4."), 0) << ptx;
  EXPECT_EQ(Count(ptx, ".approx"), 0) << ptx;
  // Inside and not.
  EXPECT_EQ(Count(ptx, "ld.global.nc.f32"), 2 * 8) << ptx;
}

TEST(PtxTest, ATransposeIsReadAndWrittenInVectors) {
  const std::string ptx = PtxOf(
      "@ph.aligned(M=4, N=4)\n"
      "def k(x: ph.tensor[ph.f32][M, N], out: ph.tensor[ph.f32][N, M]):\n"
      "    out[0:+32, 0:+32] = ph.transpose(x[0:+32, 0:+32])\n");
  EXPECT_EQ(Count(ptx, "ld.global.nc.v4.f32"), 1) << ptx;
  EXPECT_EQ(Count(ptx, "ld.shared.v4.f32"), 1) << ptx;
  EXPECT_EQ(Count(ptx, "st.global.v4.f32"), 1) << ptx;
  EXPECT_EQ(Count(ptx, "bar.sync"), 1) << ptx;
}

// A row added to each of the rows of a tile: all threads need elements that others hold.
ir::Function HeldRow(int64_t columns) {
  ir::Builder b(ir::Function{.name = "rows"});
  const ir::Dim n{.extent = b.AddExtent("N")};
  const int32_t x = b.AddTensor("x", ir::DType::kF64, {n});
  const int32_t out = b.AddTensor("out", ir::DType::kF64, {n, n});
  const ir::VarId row = b.Declare("row", b.Load(x, {ir::SliceAt(b.Int(0), columns)}));
  b.Store(out, {ir::SliceAt(b.Int(0), 2), ir::SliceAt(b.Int(0), columns)},
          b.Broadcast(b.Read(row), {2, columns}));
  return b.Finish();
}

TEST(LimitsTest, SharedMemoryIsCountedAndBounded) {
  const auto fits = Compile(HeldRow(6000), Sm90());
  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_EQ(fits->shared_memory_bytes, 48000);
  EXPECT_EQ(Count(fits->ptx, "bar.sync"), 1) << fits->ptx;
  EXPECT_EQ(fits->dynamic_shared_memory_bytes, 0);
  // More than a kernel can have by itself is given at the launch.
  const auto given = Compile(HeldRow(6145), Sm90());
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->shared_memory_bytes, 49168);
  EXPECT_EQ(given->dynamic_shared_memory_bytes, 49168);
  EXPECT_EQ(Count(given->ptx, ".extern .shared"), 1) << given->ptx;
  const auto does_not = Compile(HeldRow(29057), Sm90());
  EXPECT_EQ(does_not.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string message(does_not.status().message());
  EXPECT_NE(message.find("232464 bytes"), std::string::npos) << message;
  EXPECT_NE(message.find("232448 on sm_90"), std::string::npos) << message;
}

TEST(LimitsTest, MinBlocksMustFitTheMultiprocessor) {
  ir::Function function = HeldRow(16);
  function.threads = 512;
  function.min_blocks = 3;
  EXPECT_TRUE(Compile(function, Sm90()).ok());
  EXPECT_TRUE(Compile(function, *ResolveChip("sm_86")).ok());
  const auto refused = Compile(function, *ResolveChip("sm_75"));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("1536"), std::string::npos) << refused.status();
  EXPECT_NE(refused.status().message().find("1024"), std::string::npos) << refused.status();
}

TEST(ChipTest, OthersAreRefusedWithTheNamesThereAre) {
  for (const char* name : {"sm_70", "sm_", "sm_9x", "sm_90a", "sm_-90", "native", ""}) {
    const auto chip = ResolveChip(name);
    EXPECT_EQ(chip.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_NE(chip.status().message().find("sm_75, sm_80, sm_86, sm_89, sm_90"), std::string::npos)
        << chip.status();
  }
}

TEST(PtxTest, EqualInputsGiveEqualTextOnAnyThread) {
  const ir::Function function = HeldRow(100);
  const std::string want = Compile(function, Sm90())->ptx;
  std::vector<std::string> got(4);
  std::vector<std::thread> threads;
  for (std::string& text : got) {
    threads.emplace_back([&] { text = Compile(function, Sm90())->ptx; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : got) EXPECT_EQ(text, want);
}

}  // namespace
}  // namespace phobos::compiler::nvptx
