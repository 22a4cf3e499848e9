// SPDX-License-Identifier: Apache-2.0
//
// The vector add as a tune sees it: description, compiled space, arguments, grids; for tests. One
// thread.
#ifndef PHOBOS_TESTS_DAEMON_TUNER_ADD_KERNEL_H_
#define PHOBOS_TESTS_DAEMON_TUNER_ADD_KERNEL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/compile/runner.h"
#include "daemon/tuner/arguments.h"
#include "daemon/tuner/tune.h"

namespace phobos::tuner {

struct AddKernel {
  // out[N] = x[N] + y[N] in `variants` variants, x[i] = i mod 1000, y[i] = 2, out = -1.
  AddKernel(int64_t n, int variants) : pool(int64_t{4} << 30) {
    spec.description.set_kernel("add");
    spec.description.set_source_digest("digest");
    for (const char* name : {"x", "y", "out"}) {
      compiler::v1::Parameter& parameter = *spec.description.add_parameters();
      parameter.set_name(name);
      parameter.set_dtype(compiler::v1::DTYPE_F32);
      parameter.set_is_tensor(true);
      parameter.add_dims()->set_extent("N");
      parameter.set_is_written(name == std::string("out"));
      parameter.set_is_read(name != std::string("out"));
      space.slots.push_back(name);
    }
    space.slots.push_back("extent:N");
    space.compiler_fingerprint = "test compiler";
    spec.description.add_extents("N");
    spec.description.set_grid_dims_used(1);
    v1::Extent& extent = spec.extents.emplace_back();
    extent.set_name("N"), extent.set_value(n);
    spec.options.set_flush_l2(true);
    spec.options.set_tie_break(v1::TIE_BREAK_FASTEST);
    for (int i = 0; i < variants; ++i) AddVariant(i, n);
    std::vector<float> x(static_cast<size_t>(n)), y(x.size(), 2.0f), out(x.size(), -1.0f), want(x);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i % 1000);
      want[i] = x[i] + 2.0f;
    }
    arguments = *Arguments::Copy(
        pool, 1000, {{"x", Bytes(x), 16}, {"y", Bytes(y), 16}, {"out", Bytes(out), 64}});
    (void)arguments->CopyExpected({{"out", Bytes(want), 0}});
  }

  void AddVariant(int index, int64_t n) {
    compiler::v1::VariantSettings& settings = *spec.description.add_variants();
    settings.set_index(index);
    settings.set_threads(256);
    settings.set_index_bits(32);
    compiler::v1::Constant& block = *settings.add_settings();
    block.set_name("BLOCK");
    block.set_int_value(index);
    compile::CompiledVariant& compiled = space.variants.emplace_back();
    compiled.variant.set_index(index);
    compiled.variant.set_status(compiler::v1::VARIANT_STATUS_COMPILED);
    compiled.variant.set_race_verdict(compiler::v1::RACE_VERDICT_RACE_FREE);
    compiled.variant.mutable_artifact()->set_entry("add");
    v1::VariantGrid& grid = spec.grids.emplace_back();
    grid.set_variant(index);
    grid.mutable_grid()->set_x((n + 1023) / 1024);
    grid.mutable_grid()->set_y(1);
    grid.mutable_grid()->set_z(1);
  }

  // The variant as one whose races only its race-recording form can tell.
  void LeaveUnproven(int variant) {
    compiler::v1::Variant& compiled = space.variants[static_cast<size_t>(variant)].variant;
    compiled.set_race_verdict(compiler::v1::RACE_VERDICT_UNPROVEN);
    compiled.set_race_detail("out[idx] at line 9");
    compiled.mutable_recording()->mutable_artifact()->set_entry("add");
    for (const auto content :
         {compiler::v1::Shadow::LAST_WRITE, compiler::v1::Shadow::FIRST_WRITE}) {
      compiler::v1::Shadow& shadow = *compiled.mutable_recording()->add_shadows();
      shadow.set_parameter("out");
      shadow.set_content(content);
      shadow.add_places("add.py:9");
    }
  }

  static absl::Span<const std::byte> Bytes(const std::vector<float>& values) {
    return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(float)};
  }

  Spec spec;
  compile::CompiledSpace space;
  CopyPool pool;
  std::unique_ptr<Arguments> arguments;
};

}  // namespace phobos::tuner

#endif  // PHOBOS_TESTS_DAEMON_TUNER_ADD_KERNEL_H_
