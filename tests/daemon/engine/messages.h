// SPDX-License-Identifier: Apache-2.0
//
// What a client of the engine sends for a launch of the kernel add, and what it gets: a device, the
// kernel's description, the messages of a tune, a Result. For tests only; pure, any thread.
#ifndef PHOBOS_TESTS_DAEMON_ENGINE_MESSAGES_H_
#define PHOBOS_TESTS_DAEMON_ENGINE_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/digest.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"

namespace phobos::engine {

inline constexpr char kSource[] = "the text of kernel add";

inline tuner::v1::Device HostDevice() {
  tuner::v1::Device device;
  device.set_uuid("host");
  device.set_chip("x86-64-v3");
  device.set_card_name("Some CPU, 2 threads");
  device.set_driver("6.1");
  return device;
}

// add(x: f32[N], y: f32[N], out: f32[N], alpha: f32), BLOCK in {256, 512, 1024}; variant 2 is
// excluded by the space.
inline compiler::v1::KernelDescription AddDescription(const std::string& text = kSource) {
  compiler::v1::KernelDescription description;
  description.set_kernel("add");
  description.set_canonical_source(text);
  description.set_source_digest(Sha256Hex(text));
  for (const char* name : {"x", "y", "out"}) {
    compiler::v1::Parameter& parameter = *description.add_parameters();
    parameter.set_name(name);
    parameter.set_dtype(compiler::v1::DTYPE_F32);
    parameter.set_is_tensor(true);
    parameter.add_dims()->set_extent("N");
    parameter.set_is_written(parameter.name() == "out");
    parameter.set_is_read(parameter.name() != "out");
  }
  compiler::v1::Parameter& alpha = *description.add_parameters();
  alpha.set_name("alpha");
  alpha.set_dtype(compiler::v1::DTYPE_F32);
  description.add_extents("N");
  description.add_key("N");
  for (int i = 0; i < 3; ++i) {
    compiler::v1::VariantSettings& variant = *description.add_variants();
    variant.set_index(i);
    variant.set_threads(256);
    variant.set_index_bits(32);
    compiler::v1::Constant& block = *variant.add_settings();
    block.set_name("BLOCK");
    block.set_int_value(256 << i);
  }
  description.mutable_variants(2)->set_excluded_reason("BLOCK >= 1024");
  description.set_grid_dims_used(1);
  return description;
}

// What a client sends.
inline tuner::v1::Open OpenFor(int64_t n, const std::string& text = kSource) {
  tuner::v1::Open open;
  open.mutable_kernel()->set_text_digest(Sha256Hex(text));
  open.mutable_kernel()->set_kernel("add");
  open.set_device_uuid("host");
  tuner::v1::Extent& extent = *open.add_extents();
  extent.set_name("N");
  extent.set_value(n);
  tuner::v1::Scalar& alpha = *open.add_scalars();
  alpha.set_name("alpha");
  alpha.set_bits(std::string(4, '\0'));
  return open;
}

inline tuner::v1::Args ArgsFor(const tuner::v1::Lead& lead) {
  tuner::v1::Args args;
  for (const int32_t variant : lead.variants()) {
    tuner::v1::VariantGrid& grid = *args.add_grids();
    grid.set_variant(variant);
    grid.mutable_grid()->set_x(1);
    grid.mutable_grid()->set_y(1);
    grid.mutable_grid()->set_z(1);
  }
  for (const tuner::v1::BufferRequest& buffer : lead.buffers()) {
    tuner::v1::BufferRef& ref = *args.add_buffers();
    ref.set_parameter(buffer.parameter());
    ref.set_segment(buffer.segment());
    ref.set_offset_bytes(buffer.offset_bytes());
    ref.set_bytes(buffer.bytes());
  }
  return args;
}

inline constexpr size_t kHandleBytes = 64;

// Args of a caller whose tensors are all on the card.
inline tuner::v1::Args OnCard(const tuner::v1::Lead& lead) {
  tuner::v1::Args args = ArgsFor(lead);
  for (tuner::v1::BufferRef& ref : *args.mutable_buffers()) {
    ref.set_segment(0);
    ref.set_offset_bytes(512);
    ref.set_cuda_ipc_handle(std::string(kHandleBytes, 's'));
  }
  return args;
}

inline tuner::v1::Expected ExpectedFor(const tuner::v1::Lead& lead) {
  tuner::v1::Expected expected;
  for (const tuner::v1::BufferRequest& buffer : lead.buffers()) {
    if (!buffer.is_written()) continue;
    tuner::v1::BufferRef& ref = *expected.add_buffers();
    ref.set_parameter(buffer.parameter());
    ref.set_segment(buffer.segment());
    ref.set_offset_bytes(buffer.expected_offset_bytes());
    ref.set_bytes(buffer.bytes());
  }
  return expected;
}

// A Result in which variant `winner` of AddDescription won.
inline tuner::v1::Result ResultWith(int winner, int64_t best_ns = 1000) {
  tuner::v1::Result result;
  const compiler::v1::KernelDescription description = AddDescription();
  for (const compiler::v1::VariantSettings& settings : description.variants()) {
    tuner::v1::VariantResult& variant = *result.add_variants();
    variant.set_index(settings.index());
    *variant.mutable_settings() = settings.settings();
    if (!settings.excluded_reason().empty()) {
      variant.set_status(tuner::v1::VARIANT_STATUS_EXCLUDED);
      variant.set_reason(settings.excluded_reason());
      continue;
    }
    variant.set_status(tuner::v1::VARIANT_STATUS_TIMED);
    variant.set_best_ns(settings.index() == winner ? best_ns : 2 * best_ns);
    variant.add_samples_ns(variant.best_ns());
  }
  result.set_winner(winner);
  *result.mutable_winner_settings() = result.variants(winner).settings();
  result.set_best_ns(best_ns);
  return result;
}

}  // namespace phobos::engine

#endif  // PHOBOS_TESTS_DAEMON_ENGINE_MESSAGES_H_
