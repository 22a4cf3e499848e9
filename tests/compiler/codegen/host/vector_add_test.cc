// SPDX-License-Identifier: Apache-2.0
//
// The vector add, compiled, loaded and run: the whole path of the host back end in its shortest
// form.
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "compiler/codegen/host/host.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/verifier.h"
#include "gtest/gtest.h"

namespace phobos::compiler::host {
namespace {

using Entry = void (*)(const uint64_t*, const int64_t*, int64_t, int64_t, void*);

ir::Function VectorAdd(int64_t block) {
  ir::Builder b(ir::Function{.name = "add"});
  const ir::Dim n{.extent = b.AddExtent("N")};
  const int32_t x = b.AddTensor("x", ir::DType::kF32, {n});
  const int32_t y = b.AddTensor("y", ir::DType::kF32, {n});
  const int32_t out = b.AddTensor("out", ir::DType::kF32, {n});
  const ir::ValueId base = b.Elementwise(ir::Opcode::kMul, {b.BlockId(0), b.Int(block)});
  const ir::ValueId sum = b.Elementwise(ir::Opcode::kAdd, {b.Load(x, {ir::SliceAt(base, block)}),
                                                           b.Load(y, {ir::SliceAt(base, block)})});
  b.Store(out, {ir::SliceAt(base, block)}, sum);
  return b.Finish();
}

TEST(VectorAddTest, RunsAndGivesTheSameBytesEachTime) {
  const ir::Function function = VectorAdd(256);
  ASSERT_TRUE(ir::Verify(function).ok());
  const absl::StatusOr<Chip> chip = ResolveChip("native");
  ASSERT_TRUE(chip.ok()) << chip.status();
  const absl::StatusOr<Artifact> artifact = Compile(function, *chip);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_EQ(artifact->scratch_bytes, 0);
  EXPECT_EQ(Compile(function, *chip)->shared_object, artifact->shared_object);

  const std::string path = std::string(getenv("TEST_TMPDIR")) + "/add.so";
  std::ofstream(path, std::ios::binary) << artifact->shared_object;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, artifact->entry.c_str()));
  ASSERT_NE(entry, nullptr) << dlerror();

  constexpr int64_t kCount = 1000;
  std::vector<float> x(kCount), y(kCount), out(kCount + 1, -1.0f);
  for (int64_t i = 0; i < kCount; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 0.5f;
  }
  const uint64_t slots[] = {reinterpret_cast<uint64_t>(x.data()),
                            reinterpret_cast<uint64_t>(y.data()),
                            reinterpret_cast<uint64_t>(out.data()), kCount};
  const int64_t grid[] = {4, 1, 1};
  entry(slots, grid, 0, 4, nullptr);
  for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(out[i], x[i] + 0.5f) << i;
  EXPECT_EQ(out[kCount], -1.0f);
  dlclose(library);
}

}  // namespace
}  // namespace phobos::compiler::host
