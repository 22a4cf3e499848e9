// SPDX-License-Identifier: Apache-2.0
//
// Requests and answers of TunerService (tuner.proto) as plain structs, field by field as there.
// What is a oneof on the wire is a row of optionals here, of which one is set. Values, any thread.
#ifndef PHOBOS_CLIENT_STUB_WIRE_VERBS_H_
#define PHOBOS_CLIENT_STUB_WIRE_VERBS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/stub/wire/types.h"

namespace phobos::stub {

struct HelloRequest {
  int32_t wire_version = 0;
  std::string client;
  std::vector<std::string> capabilities;
};

struct HelloResponse {
  int32_t wire_version = 0;
  std::string daemon_version;
  std::vector<std::string> capabilities;
  std::vector<Device> devices;
  std::string side_socket;
  std::string cache_dir;
  std::string compiler_fingerprint;
  bool is_private = false;
  std::string redirect_socket;
};

struct LookupRequest {
  KernelRef kernel;
  std::string device_uuid;
  std::vector<Extent> extents;
  bool want_description = false;
  bool want_result = false;
};

struct Hit {
  LaunchPlan plan;
  std::optional<Result> result;
  std::optional<KernelDescription> description;
  int64_t generation = 0;
  std::string substitution;
  std::vector<Extent> recorded_extents;
};

struct Miss {
  std::optional<KernelDescription> description;
  std::string key;
};

struct NeedSource {};

struct LookupResponse {
  std::optional<Hit> hit;
  std::optional<Miss> miss;
  std::optional<NeedSource> need_source;
};

struct Open {
  KernelRef kernel;
  std::string device_uuid;
  std::vector<Extent> extents;
  std::vector<Scalar> scalars;
  TuneOptions options;
  int64_t newer_than_generation = 0;
  int64_t queue_timeout_ms = 0;
  int64_t run_timeout_ms = 0;
  int64_t upload_timeout_ms = 0;
  int64_t reference_timeout_ms = 0;
  std::vector<uint64_t> held_segments;
  std::vector<int64_t> tensor_bytes;
  bool follow_only = false;
};

struct BufferRef {
  std::string parameter;
  uint64_t segment = 0;
  int64_t offset_bytes = 0;
  int64_t bytes = 0;
  int32_t address_mod_256 = 0;
  std::string cuda_ipc_handle;
};

struct VariantGrid {
  int32_t variant = 0;
  std::optional<Grid> grid;
  std::string error;
};

struct Args {
  std::vector<VariantGrid> grids;
  std::vector<BufferRef> buffers;
};

struct Expected {
  std::vector<BufferRef> buffers;
  std::vector<BufferRef> replaced;
};

struct ReferenceFailed {
  std::string message;
};

struct TuneRequest {
  std::optional<Open> open;
  std::optional<Args> args;
  std::optional<Expected> expected;
  std::optional<ReferenceFailed> reference_failed;
};

struct SegmentGrant {
  uint64_t segment = 0;
  int64_t bytes = 0;
  std::string ticket;
};

struct BufferRequest {
  std::string parameter;
  uint64_t segment = 0;
  int64_t offset_bytes = 0;
  int64_t expected_offset_bytes = 0;
  int64_t bytes = 0;
  bool is_written = false;
};

struct Follow {
  std::string job_id;
};

struct Lead {
  std::string job_id;
  std::vector<SegmentGrant> segments;
  std::vector<BufferRequest> buffers;
  std::optional<KernelDescription> description;
  std::vector<int32_t> variants;
  bool takes_cuda_ipc = false;
};

struct ArgsOwned {};

enum class Phase : int32_t {
  kUnspecified = 0,
  kQueued = 1,
  kCompile = 2,
  kUpload = 3,
  kReference = 4,
  kCheck = 5,
  kWarmUp = 6,
  kTiming = 7,
  kStore = 8,
};

struct Progress {
  Phase phase = Phase::kUnspecified;
  int32_t done = 0;
  int32_t total = 0;
  int64_t best_ns = 0;
  int32_t best_variant = 0;
  int32_t queue_position = 0;
  int64_t estimate_ms = 0;
  std::string job_id;
  std::string note;
};

struct TuneDone {
  Result result;
  LaunchPlan plan;
  std::optional<KernelDescription> description;
  bool cached = false;
};

struct Queued {
  std::string job_id;
};

struct TuneEvent {
  std::optional<Hit> hit;
  std::optional<Follow> follow;
  std::optional<Lead> lead;
  std::optional<ArgsOwned> args_owned;
  std::optional<Progress> progress;
  std::optional<TuneDone> done;
  std::optional<NeedSource> need_source;
  std::optional<Queued> queued;
};

struct CompileRequest {
  KernelRef kernel;
  std::string device_uuid;
  int32_t variant = 0;
  bool want_description = false;
};

struct Compiled {
  LaunchPlan plan;
  RaceVerdict race_verdict = RaceVerdict::kUnspecified;
  std::string race_detail;
  std::optional<KernelDescription> description;
};

struct CompileResponse {
  std::optional<Compiled> compiled;
  std::optional<NeedSource> need_source;
};

struct GetArtifactRequest {
  std::string chip;
  std::string digest;
  std::string file;
};

struct ArtifactChunk {
  std::string bytes;
};

struct AdoptRequest {
  KernelRef kernel;
  Result result;
};

struct AdoptResponse {
  std::optional<int64_t> generation;
  std::optional<NeedSource> need_source;
};

}  // namespace phobos::stub

#endif  // PHOBOS_CLIENT_STUB_WIRE_VERBS_H_
