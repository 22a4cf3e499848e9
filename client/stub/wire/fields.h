// SPDX-License-Identifier: Apache-2.0
//
// The fields of every message: number, name in proto/, member. Fields(f, m) calls f(number, name,
// member) for each of m's fields, in order; f.OneOf<T>(number, name, variant) for the alternatives
// of a variant. This one list is what messages are written by, read by and shown by. The numbers
// are the wire's: never changed (tests/client/stub/codec_test.cc holds them against protobuf).
#ifndef PHOBOS_CLIENT_STUB_WIRE_FIELDS_H_
#define PHOBOS_CLIENT_STUB_WIRE_FIELDS_H_

#include <concepts>
#include <type_traits>

#include "client/stub/wire/types.h"
#include "client/stub/wire/verbs.h"

namespace phobos::stub {

// M is Message, or const Message.
template <typename M, typename Message>
concept Is = std::same_as<std::remove_const_t<M>, Message>;

// A member of a protobuf oneof.
template <typename T>
struct Member {
  int number;
  const char* name;
  T& value;  // a std::optional
};
template <typename T>
Member(int, const char*, T&) -> Member<T>;

// The members of a oneof. A reader (an F with number_read(), 0 before it read) empties the others
// when it has read one: on the wire the last one counts.
template <typename F, typename... T>
void OneOf(F&& f, Member<T>... members) {
  (f(members.number, members.name, members.value), ...);
  if constexpr (requires { f.number_read(); }) {
    const int read = f.number_read();
    if (((members.number != read) && ...)) return;
    const auto empty = [read](auto& member) {
      if (member.number != read) member.value.reset();
    };
    (empty(members), ...);
  }
}

template <typename F, Is<Constant> M>
void Fields(F&& f, M& m) {
  f(1, "name", m.name);
  f.template OneOf<int64_t>(2, "int_value", m.value);
  f.template OneOf<double>(3, "float_value", m.value);
  f.template OneOf<bool>(4, "bool_value", m.value);
  f.template OneOf<std::string>(5, "string_value", m.value);
}

template <typename F, Is<Dimension> M>
void Fields(F&& f, M& m) {
  f(1, "extent", m.extent);
  f(2, "literal", m.literal);
}

template <typename F, Is<Parameter> M>
void Fields(F&& f, M& m) {
  f(1, "name", m.name);
  f(2, "dtype", m.dtype);
  f(3, "is_tensor", m.is_tensor);
  f(4, "dims", m.dims);
  f(5, "is_read", m.is_read);
  f(6, "is_written", m.is_written);
  f(7, "aligned_bytes", m.aligned_bytes);
}

template <typename F, Is<ExtentPromise> M>
void Fields(F&& f, M& m) {
  f(1, "extent", m.extent);
  f(2, "multiple", m.multiple);
}

template <typename F, Is<ConditionStep> M>
void Fields(F&& f, M& m) {
  f(1, "code", m.code);
  f(2, "int_value", m.int_value);
  f(3, "float_value", m.float_value);
  f(4, "name", m.name);
}

template <typename F, Is<Condition> M>
void Fields(F&& f, M& m) {
  f(1, "text", m.text);
  f(2, "line", m.line);
  f(3, "is_assumption", m.is_assumption);
  f(4, "program", m.program);
}

template <typename F, Is<VariantSettings> M>
void Fields(F&& f, M& m) {
  f(1, "index", m.index);
  f(2, "settings", m.settings);
  f(3, "excluded_reason", m.excluded_reason);
  f(4, "threads", m.threads);
  f(5, "index_bits", m.index_bits);
}

template <typename F, Is<KernelDescription> M>
void Fields(F&& f, M& m) {
  f(1, "kernel", m.kernel);
  f(2, "canonical_source", m.canonical_source);
  f(3, "source_digest", m.source_digest);
  f(4, "parameters", m.parameters);
  f(5, "extents", m.extents);
  f(6, "key", m.key);
  f(7, "extent_promises", m.extent_promises);
  f(8, "conditions", m.conditions);
  f(9, "variants", m.variants);
  f(10, "grid_dims_used", m.grid_dims_used);
  f(11, "line", m.line);
}

template <typename F, Is<Artifact> M>
void Fields(F&& f, M& m) {
  f(1, "file", m.file);
  f(2, "digest", m.digest);
  f(3, "entry", m.entry);
  f(4, "scratch_bytes", m.scratch_bytes);
  f(5, "cpu_features", m.cpu_features);
  f(6, "registers", m.registers);
  f(7, "shared_memory_bytes", m.shared_memory_bytes);
  f(8, "spill_bytes", m.spill_bytes);
  f(9, "size_bytes", m.size_bytes);
  f(10, "threads", m.threads);
  f(11, "dynamic_shared_memory_bytes", m.dynamic_shared_memory_bytes);
}

template <typename F, Is<Device> M>
void Fields(F&& f, M& m) {
  f(1, "uuid", m.uuid);
  f(2, "card_name", m.card_name);
  f(3, "chip", m.chip);
  f(4, "threads", m.threads);
  f(5, "flush_bytes", m.flush_bytes);
  f(6, "driver", m.driver);
  f(7, "memory_bytes", m.memory_bytes);
  f(8, "card_uuid", m.card_uuid);
}

template <typename F, Is<KernelRef> M>
void Fields(F&& f, M& m) {
  f(1, "text_digest", m.text_digest);
  f(2, "kernel", m.kernel);
  f(3, "source_text", m.source_text);
  f(4, "file_name", m.file_name);
}

template <typename F, Is<Extent> M>
void Fields(F&& f, M& m) {
  f(1, "name", m.name);
  f(2, "value", m.value);
}

template <typename F, Is<Scalar> M>
void Fields(F&& f, M& m) {
  f(1, "name", m.name);
  f(2, "bits", m.bits);
}

template <typename F, Is<Grid> M>
void Fields(F&& f, M& m) {
  f(1, "x", m.x);
  f(2, "y", m.y);
  f(3, "z", m.z);
}

template <typename F, Is<TuneOptions> M>
void Fields(F&& f, M& m) {
  f(1, "rtol", m.rtol);
  f(2, "atol", m.atol);
  f(3, "flush_l2", m.flush_l2);
  f(4, "tie_break", m.tie_break);
}

template <typename F, Is<VariantResult> M>
void Fields(F&& f, M& m) {
  f(1, "index", m.index);
  f(2, "settings", m.settings);
  f(3, "status", m.status);
  f(4, "reason", m.reason);
  f(5, "samples_ns", m.samples_ns);
  f(6, "best_ns", m.best_ns);
  f(7, "median_ns", m.median_ns);
  f(8, "spread", m.spread);
  f(9, "interquartile_ns", m.interquartile_ns);
  f(10, "registers", m.registers);
  f(11, "shared_memory_bytes", m.shared_memory_bytes);
  f(12, "spill_bytes", m.spill_bytes);
  f(13, "artifact_digest", m.artifact_digest);
  f(14, "race_detail", m.race_detail);
  f(15, "grid", m.grid);
  f(16, "race_recorded", m.race_recorded);
  f(17, "recording_died", m.recording_died);
}

template <typename F, Is<TimeSplit> M>
void Fields(F&& f, M& m) {
  f(1, "queue_ns", m.queue_ns);
  f(2, "upload_ns", m.upload_ns);
  f(3, "compile_ns", m.compile_ns);
  f(4, "reference_ns", m.reference_ns);
  f(5, "check_ns", m.check_ns);
  f(6, "warm_up_ns", m.warm_up_ns);
  f(7, "timing_ns", m.timing_ns);
  f(8, "total_ns", m.total_ns);
}

template <typename F, Is<CardState> M>
void Fields(F&& f, M& m) {
  f(1, "sm_clock_mhz", m.sm_clock_mhz);
  f(2, "memory_clock_mhz", m.memory_clock_mhz);
  f(3, "temperature_c", m.temperature_c);
  f(4, "power_mw", m.power_mw);
  f(5, "throttling", m.throttling);
}

template <typename F, Is<Result> M>
void Fields(F&& f, M& m) {
  f(1, "kernel", m.kernel);
  f(2, "source_digest", m.source_digest);
  f(3, "key", m.key);
  f(4, "extents", m.extents);
  f(5, "device", m.device);
  f(6, "winner", m.winner);
  f(7, "winner_settings", m.winner_settings);
  f(8, "best_ns", m.best_ns);
  f(9, "ties", m.ties);
  f(10, "variants", m.variants);
  f(11, "compiler_fingerprint", m.compiler_fingerprint);
  f(12, "options", m.options);
  f(13, "split", m.split);
  f(14, "contended", m.contended);
  f(15, "lock", m.lock);
  f(16, "rounds", m.rounds);
  f(17, "repeated_rounds", m.repeated_rounds);
  f(18, "warm_up_launches", m.warm_up_launches);
  f(19, "timer_resolution_ns", m.timer_resolution_ns);
  f(20, "generation", m.generation);
  f(21, "finished_unix_ms", m.finished_unix_ms);
  f(22, "asked_by", m.asked_by);
  f(23, "key_digest", m.key_digest);
  f(24, "key_text", m.key_text);
  f(25, "daemon_version", m.daemon_version);
  f(26, "pinned", m.pinned);
  f(27, "state_before", m.state_before);
  f(28, "state_after", m.state_after);
  f(29, "timer_floor_ns", m.timer_floor_ns);
  f(30, "stale", m.stale);
}

template <typename F, Is<LaunchPlan> M>
void Fields(F&& f, M& m) {
  f(1, "variant", m.variant);
  f(2, "settings", m.settings);
  f(3, "artifact", m.artifact);
  f(4, "artifact_path", m.artifact_path);
  f(5, "chip", m.chip);
  f(6, "threads", m.threads);
  f(7, "slots", m.slots);
}

template <typename F, Is<ErrorDetail> M>
void Fields(F&& f, M& m) {
  f(1, "reason", m.reason);
  f(2, "kernel", m.kernel);
  f(3, "key", m.key);
  f(4, "remedy", m.remedy);
  f(5, "variants", m.variants);
}

template <typename F, Is<HelloRequest> M>
void Fields(F&& f, M& m) {
  f(1, "wire_version", m.wire_version);
  f(2, "client", m.client);
  f(3, "capabilities", m.capabilities);
}

template <typename F, Is<HelloResponse> M>
void Fields(F&& f, M& m) {
  f(1, "wire_version", m.wire_version);
  f(2, "daemon_version", m.daemon_version);
  f(3, "capabilities", m.capabilities);
  f(4, "devices", m.devices);
  f(5, "side_socket", m.side_socket);
  f(6, "cache_dir", m.cache_dir);
  f(7, "compiler_fingerprint", m.compiler_fingerprint);
  f(8, "is_private", m.is_private);
  f(9, "redirect_socket", m.redirect_socket);
}

template <typename F, Is<LookupRequest> M>
void Fields(F&& f, M& m) {
  f(1, "kernel", m.kernel);
  f(2, "device_uuid", m.device_uuid);
  f(3, "extents", m.extents);
  f(4, "want_description", m.want_description);
  f(5, "want_result", m.want_result);
}

template <typename F, Is<Hit> M>
void Fields(F&& f, M& m) {
  f(1, "plan", m.plan);
  f(2, "result", m.result);
  f(3, "description", m.description);
  f(4, "generation", m.generation);
  f(5, "substitution", m.substitution);
  f(6, "recorded_extents", m.recorded_extents);
}

template <typename F, Is<Miss> M>
void Fields(F&& f, M& m) {
  f(1, "description", m.description);
  f(2, "key", m.key);
}

template <typename F, Is<NeedSource> M>
void Fields(F&&, M&) {}

template <typename F, Is<LookupResponse> M>
void Fields(F&& f, M& m) {
  OneOf(f, Member{1, "hit", m.hit}, Member{2, "miss", m.miss},
        Member{3, "need_source", m.need_source});
}

template <typename F, Is<Open> M>
void Fields(F&& f, M& m) {
  f(1, "kernel", m.kernel);
  f(2, "device_uuid", m.device_uuid);
  f(3, "extents", m.extents);
  f(4, "scalars", m.scalars);
  f(5, "options", m.options);
  f(6, "newer_than_generation", m.newer_than_generation);
  f(7, "queue_timeout_ms", m.queue_timeout_ms);
  f(8, "run_timeout_ms", m.run_timeout_ms);
  f(9, "upload_timeout_ms", m.upload_timeout_ms);
  f(10, "reference_timeout_ms", m.reference_timeout_ms);
  f(11, "held_segments", m.held_segments);
  f(12, "tensor_bytes", m.tensor_bytes);
  f(13, "follow_only", m.follow_only);
}

template <typename F, Is<BufferRef> M>
void Fields(F&& f, M& m) {
  f(1, "parameter", m.parameter);
  f(2, "segment", m.segment);
  f(3, "offset_bytes", m.offset_bytes);
  f(4, "bytes", m.bytes);
  f(5, "address_mod_256", m.address_mod_256);
  f(6, "cuda_ipc_handle", m.cuda_ipc_handle);
}

template <typename F, Is<VariantGrid> M>
void Fields(F&& f, M& m) {
  f(1, "variant", m.variant);
  f(2, "grid", m.grid);
  f(3, "error", m.error);
}

template <typename F, Is<Args> M>
void Fields(F&& f, M& m) {
  f(1, "grids", m.grids);
  f(2, "buffers", m.buffers);
}

template <typename F, Is<Expected> M>
void Fields(F&& f, M& m) {
  f(1, "buffers", m.buffers);
  f(2, "replaced", m.replaced);
}

template <typename F, Is<ReferenceFailed> M>
void Fields(F&& f, M& m) {
  f(1, "message", m.message);
}

template <typename F, Is<TuneRequest> M>
void Fields(F&& f, M& m) {
  OneOf(f, Member{1, "open", m.open}, Member{2, "args", m.args}, Member{3, "expected", m.expected},
        Member{4, "reference_failed", m.reference_failed});
}

template <typename F, Is<SegmentGrant> M>
void Fields(F&& f, M& m) {
  f(1, "segment", m.segment);
  f(2, "bytes", m.bytes);
  f(3, "ticket", m.ticket);
}

template <typename F, Is<BufferRequest> M>
void Fields(F&& f, M& m) {
  f(1, "parameter", m.parameter);
  f(2, "segment", m.segment);
  f(3, "offset_bytes", m.offset_bytes);
  f(4, "expected_offset_bytes", m.expected_offset_bytes);
  f(5, "bytes", m.bytes);
  f(6, "is_written", m.is_written);
}

template <typename F, Is<Follow> M>
void Fields(F&& f, M& m) {
  f(1, "job_id", m.job_id);
}

template <typename F, Is<Lead> M>
void Fields(F&& f, M& m) {
  f(1, "job_id", m.job_id);
  f(2, "segments", m.segments);
  f(3, "buffers", m.buffers);
  f(4, "description", m.description);
  f(5, "variants", m.variants);
  f(6, "takes_cuda_ipc", m.takes_cuda_ipc);
}

template <typename F, Is<ArgsOwned> M>
void Fields(F&&, M&) {}

template <typename F, Is<Progress> M>
void Fields(F&& f, M& m) {
  f(1, "phase", m.phase);
  f(2, "done", m.done);
  f(3, "total", m.total);
  f(4, "best_ns", m.best_ns);
  f(5, "best_variant", m.best_variant);
  f(6, "queue_position", m.queue_position);
  f(7, "estimate_ms", m.estimate_ms);
  f(8, "job_id", m.job_id);
  f(9, "note", m.note);
}

template <typename F, Is<TuneDone> M>
void Fields(F&& f, M& m) {
  f(1, "result", m.result);
  f(2, "plan", m.plan);
  f(3, "description", m.description);
  f(4, "cached", m.cached);
}

template <typename F, Is<Queued> M>
void Fields(F&& f, M& m) {
  f(1, "job_id", m.job_id);
}

template <typename F, Is<TuneEvent> M>
void Fields(F&& f, M& m) {
  OneOf(f, Member{1, "hit", m.hit}, Member{2, "follow", m.follow}, Member{3, "lead", m.lead},
        Member{4, "args_owned", m.args_owned}, Member{5, "progress", m.progress},
        Member{6, "done", m.done}, Member{7, "need_source", m.need_source},
        Member{8, "queued", m.queued});
}

template <typename F, Is<CompileRequest> M>
void Fields(F&& f, M& m) {
  f(1, "kernel", m.kernel);
  f(2, "device_uuid", m.device_uuid);
  f(3, "variant", m.variant);
  f(4, "want_description", m.want_description);
}

template <typename F, Is<Compiled> M>
void Fields(F&& f, M& m) {
  f(1, "plan", m.plan);
  f(2, "race_verdict", m.race_verdict);
  f(3, "race_detail", m.race_detail);
  f(4, "description", m.description);
}

template <typename F, Is<CompileResponse> M>
void Fields(F&& f, M& m) {
  OneOf(f, Member{1, "compiled", m.compiled}, Member{2, "need_source", m.need_source});
}

template <typename F, Is<GetArtifactRequest> M>
void Fields(F&& f, M& m) {
  f(1, "chip", m.chip);
  f(2, "digest", m.digest);
  f(3, "file", m.file);
}

template <typename F, Is<ArtifactChunk> M>
void Fields(F&& f, M& m) {
  f(1, "bytes", m.bytes);
}

template <typename F, Is<AdoptRequest> M>
void Fields(F&& f, M& m) {
  f(1, "kernel", m.kernel);
  f(2, "result", m.result);
}

template <typename F, Is<AdoptResponse> M>
void Fields(F&& f, M& m) {
  OneOf(f, Member{1, "generation", m.generation}, Member{2, "need_source", m.need_source});
}

}  // namespace phobos::stub

#endif  // PHOBOS_CLIENT_STUB_WIRE_FIELDS_H_
