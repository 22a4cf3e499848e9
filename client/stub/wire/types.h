// SPDX-License-Identifier: Apache-2.0
//
// The values of the wire (types.proto, manifest.proto) as plain structs, in the standard library
// alone: what the client's rooms and their users hold. Field by field as in proto/, where each is
// explained; an enum keeps a number that it does not know. Encoding is in codec.h. Values, any
// thread.
#ifndef PHOBOS_CLIENT_STUB_WIRE_TYPES_H_
#define PHOBOS_CLIENT_STUB_WIRE_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/launch/grid.h"

namespace phobos {

using launch::Grid;

enum class DType : int32_t {
  kUnspecified = 0,
  kF16 = 1,
  kBF16 = 2,
  kF32 = 3,
  kF64 = 4,
  kI8 = 5,
  kI16 = 6,
  kI32 = 7,
  kI64 = 8,
  kU8 = 9,
  kU16 = 10,
  kU32 = 11,
  kU64 = 12,
  kBool = 13,
};

// Bytes of one element; 0 for a type that is not known here.
int64_t ElementBytes(DType dtype);

struct Constant {
  std::string name;
  std::variant<std::monostate, int64_t, double, bool, std::string> value;
};

struct Dimension {
  std::string extent;  // empty: literal
  int64_t literal = 0;
};

struct Parameter {
  std::string name;
  DType dtype = DType::kUnspecified;
  bool is_tensor = false;
  std::vector<Dimension> dims;
  bool is_read = false;
  bool is_written = false;
  int64_t aligned_bytes = 0;
};

struct ExtentPromise {
  std::string extent;
  int64_t multiple = 0;
};

struct ConditionStep {
  int32_t code = 0;
  int64_t int_value = 0;
  double float_value = 0;
  std::string name;
};

struct Condition {
  std::string text;
  int32_t line = 0;
  bool is_assumption = false;
  std::vector<ConditionStep> program;
};

struct VariantSettings {
  int32_t index = 0;
  std::vector<Constant> settings;
  std::string excluded_reason;
  int32_t threads = 0;
  int32_t index_bits = 0;
};

struct KernelDescription {
  std::string kernel;
  std::string canonical_source;
  std::string source_digest;
  std::vector<Parameter> parameters;
  std::vector<std::string> extents;
  std::vector<std::string> key;
  std::vector<ExtentPromise> extent_promises;
  std::vector<Condition> conditions;
  std::vector<VariantSettings> variants;
  int32_t grid_dims_used = 0;
  int32_t line = 0;
};

enum class RaceVerdict : int32_t { kUnspecified = 0, kRaceFree = 1, kRace = 2, kUnproven = 3 };

struct Artifact {
  std::string file;
  std::string digest;
  std::string entry;
  int64_t scratch_bytes = 0;
  std::vector<std::string> cpu_features;
  int32_t registers = 0;
  int64_t shared_memory_bytes = 0;
  int64_t spill_bytes = 0;
  int64_t size_bytes = 0;
  int32_t threads = 0;                      // GPU: of a block
  int64_t dynamic_shared_memory_bytes = 0;  // GPU: a block's, given at the launch
};

struct Device {
  std::string uuid;
  std::string card_name;
  std::string chip;
  int32_t threads = 0;
  int64_t flush_bytes = 0;
  std::string driver;
  int64_t memory_bytes = 0;
  std::string card_uuid;
};

struct KernelRef {
  std::string text_digest;
  std::string kernel;
  std::string source_text;
  std::string file_name;
};

struct Extent {
  std::string name;
  int64_t value = 0;
};

struct Scalar {
  std::string name;
  std::string bits;
};

enum class TieBreak : int32_t { kUnspecified = 0, kFastest = 1, kFirstWithinNoise = 2 };

struct TuneOptions {
  std::optional<double> rtol;
  std::optional<double> atol;
  std::optional<bool> flush_l2;
  TieBreak tie_break = TieBreak::kUnspecified;
};

enum class VariantStatus : int32_t {
  kUnspecified = 0,
  kTimed = 1,
  kExcluded = 2,
  kCompileError = 3,
  kRace = 4,
  kRaceCheckFailed = 5,
  kUnsupported = 6,
  kIndexOverflow = 7,
  kGridError = 8,
  kOutOfBounds = 9,
  kWrongResult = 10,
  kCrashed = 11,
  kTimedOut = 12,
  kOutOfMemory = 13,
};

struct VariantResult {
  int32_t index = 0;
  std::vector<Constant> settings;
  VariantStatus status = VariantStatus::kUnspecified;
  std::string reason;
  std::vector<int64_t> samples_ns;
  int64_t best_ns = 0;
  int64_t median_ns = 0;
  double spread = 0;
  int64_t interquartile_ns = 0;
  int32_t registers = 0;
  int64_t shared_memory_bytes = 0;
  int64_t spill_bytes = 0;
  std::string artifact_digest;
  std::string race_detail;
  std::optional<Grid> grid;
  bool race_recorded = false;
  bool recording_died = false;
};

struct TimeSplit {
  int64_t queue_ns = 0;
  int64_t upload_ns = 0;
  int64_t compile_ns = 0;
  int64_t reference_ns = 0;
  int64_t check_ns = 0;
  int64_t warm_up_ns = 0;
  int64_t timing_ns = 0;
  int64_t total_ns = 0;
};

struct CardState {
  int32_t sm_clock_mhz = 0;
  int32_t memory_clock_mhz = 0;
  int32_t temperature_c = 0;
  int32_t power_mw = 0;
  std::string throttling;
};

struct Result {
  std::string kernel;
  std::string source_digest;
  std::vector<Extent> key;
  std::vector<Extent> extents;
  Device device;
  int32_t winner = 0;
  std::vector<Constant> winner_settings;
  int64_t best_ns = 0;
  std::vector<int32_t> ties;
  std::vector<VariantResult> variants;
  std::string compiler_fingerprint;
  TuneOptions options;
  TimeSplit split;
  bool contended = false;
  std::string lock;
  int32_t rounds = 0;
  int32_t repeated_rounds = 0;
  int32_t warm_up_launches = 0;
  int64_t timer_resolution_ns = 0;
  int64_t generation = 0;
  int64_t finished_unix_ms = 0;
  std::string asked_by;
  std::string key_digest;
  std::string key_text;
  std::string daemon_version;
  bool pinned = false;
  CardState state_before;
  CardState state_after;
  int64_t timer_floor_ns = 0;
  bool stale = false;
};

struct LaunchPlan {
  int32_t variant = 0;
  std::vector<Constant> settings;
  Artifact artifact;
  std::string artifact_path;
  std::string chip;
  int32_t threads = 0;
  std::vector<std::string> slots;
};

enum class ErrorReason : int32_t {
  kUnspecified = 0,
  kBadSource = 1,
  kUnknownKernel = 2,
  kBadArgument = 3,
  kNoWinner = 4,
  kNoDevice = 5,
  kOutOfMemory = 6,
  kTimeout = 7,
  kReferenceFailed = 8,
  kCancelled = 9,
  kNotPermitted = 10,
  kDraining = 11,
  kLimit = 12,
  kRace = 13,
  kMachine = 14,
};

// What a Status of the client's rooms may carry besides code and message (client/launch/status.h).
struct ErrorDetail {
  ErrorReason reason = ErrorReason::kUnspecified;
  std::string kernel;
  std::string key;
  std::string remedy;
  std::vector<VariantResult> variants;
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_STUB_WIRE_TYPES_H_
