// SPDX-License-Identifier: Apache-2.0
//
// Job: one tune's tensors on a Device, and what is done with its variants: a check on fresh copies,
// a recording of races, a warm-up, timed rounds. It decides what is restored, flushed, launched and
// looked at, in which order; the Device only does it. Lives in the worker process. One thread, the
// Device's.
#ifndef PHOBOS_DAEMON_WORKER_JOB_H_
#define PHOBOS_DAEMON_WORKER_JOB_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/device/device.h"
#include "daemon/worker/check/compare.h"
#include "daemon/worker/check/layout.h"
#include "daemon/worker/link/launch_mark.h"
#include "daemon/worker/messages.pb.h"
#include "daemon/worker/preloaded.h"
#include "daemon/worker/shadows.h"

namespace phobos::worker {

// What a Device loads of a variant.
device::KernelFile FileOf(const VariantSetup& variant);
// The same of its race-recording form. REQUIRES: it has one.
device::KernelFile RecordingFileOf(const VariantSetup& variant);

class Job {
 public:
  // Lays out the tensors in the device's memory. `memory` holds what the setup's indices mean; it,
  // `device`, `mark` and what is `preloaded` must outlive the job. InvalidArgument: a range outside
  // its memory, a type or slot that makes no sense; ResourceExhausted: as Device::Reserve.
  static absl::StatusOr<std::unique_ptr<Job>> Begin(
      JobSetup setup, const std::vector<absl::Span<const std::byte>>& memory,
      device::Device& device, LaunchMark& mark, const Preloaded& preloaded);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Not its race-recording form, which Record loads. Errors are Device::Load's and concern this
  // variant alone.
  absl::StatusOr<LoadOutcome> Load(const VariantSetup& variant);

  // One launch on fresh copies between fresh canaries, then everything is looked at: canaries,
  // unwritten tensors, results. NotFound: the variant is not loaded. The rest of the errors are the
  // device's.
  absl::StatusOr<CheckOutcome> Check(int variant, uint64_t seed);

  // One launch of the variant's race-recording form as in Check, on shadows that are all 0; then
  // canaries, unwritten tensors and the shadows are looked at. NotFound: the variant is not loaded.
  // The rest of the errors are the device's.
  absl::StatusOr<CheckOutcome> Record(int variant, uint64_t seed);

  // Launches all variants in turn until the device's clock has gone on by `at_least_ns`; returns
  // the number of launches. Nothing is allocated or loaded from here to the end of the last Round.
  absl::StatusOr<int64_t> WarmUp(absl::Span<const int> variants, int64_t at_least_ns);

  // Launches each variant once in this order. Before each: restore, flush; then stamp, launch,
  // stamp. The canaries are looked at when all samples are taken.
  absl::StatusOr<RoundOutcome> Round(absl::Span<const int> order, bool flush);

 private:
  // A loaded variant.
  struct Variant {
    std::unique_ptr<device::Kernel> kernel;
    tuner::v1::Grid grid;
    std::optional<VariantSetup> recorded;  // what its race-recording form is loaded from
  };

  // A tensor's bytes as the caller gave them, what is expected, and whether the device's copy may
  // differ from the former. `kept` and `kept_expected` are the same bytes where the device gets at
  // them fast: in its own memory, unless that is the host's.
  struct Tensor {
    const TensorSetup* setup = nullptr;
    absl::Span<const std::byte> pristine;
    absl::Span<const std::byte> expected;  // empty data: none
    const std::byte* kept = nullptr;
    const std::byte* kept_expected = nullptr;
    bool is_preloaded = false;           // `kept` is a copy that was made before
    std::optional<double> expected_rms;  // worked out when first needed
    bool is_stale = true;
  };

  // Memory beside tensors: what lies between two is one.
  struct Gap {
    int64_t begin = 0;                // in the device's memory
    std::vector<std::byte> canaries;  // as they were laid

    int64_t end() const { return begin + static_cast<int64_t>(canaries.size()); }
  };

  Job(JobSetup setup, Layout layout, device::Device& device, LaunchMark& mark);
  absl::Status AddTensors(const std::vector<absl::Span<const std::byte>>& memory,
                          const Preloaded& preloaded);
  absl::Status AddSlots();
  // The device's memory: so many bytes, and shadows behind them where there is room.
  absl::Status ReserveMemory(int64_t bytes);
  // Bytes of the device's memory that the kept copies still to be made take.
  int64_t KeptBytes() const;
  // Makes those copies, from `offset` of the memory on.
  absl::Status Keep(int64_t offset);

  absl::StatusOr<const Variant*> Find(int variant) const;
  // Queues a launch, marked for the supervisor.
  absl::Status Launch(int index, const device::Kernel& kernel, absl::Span<const uint64_t> slots,
                      const tuner::v1::Grid& grid);
  // The same of the variant itself.
  absl::Status Launch(int index, const Variant& variant);
  // The same for a launch between others: one that is refused leaves the device as lost, because
  // the caller could not tell whose it was; the mark can.
  absl::Status LaunchAmongOthers(int index, const Variant& variant);
  // Device::Finish, the launch that runs marked for the supervisor.
  absl::StatusOr<device::Outcome> Finish();
  // Queue copies of the caller's bytes: of one tensor, of what may differ, of what kernels read and
  // write.
  absl::Status Refresh(size_t tensor);
  absl::Status RefreshStale();
  absl::Status Restore();
  // Any tensor's copy may differ from the caller's bytes now.
  void MarkAllStale();
  // Lays new canaries beside every tensor and waits for that.
  absl::Status LayCanaries(uint64_t seed);
  // Before a check's launch: fresh copies between new canaries.
  absl::Status MakeFresh(uint64_t seed);

  // Why the variant's races cannot be recorded, or the text is empty.
  std::string WhyNotRecorded(const Variant& variant) const;

  // Offset of the first byte of a tensor that is not as in `kept`, whose bytes on the host are
  // `host`.
  absl::StatusOr<std::optional<int64_t>> FirstChange(size_t tensor, const std::byte* kept,
                                                     absl::Span<const std::byte> host);
  // Why a check fails, or the text is empty.
  absl::StatusOr<std::string> ChangedCanary();
  // The same, looked for byte by byte.
  absl::StatusOr<std::string> WhoseCanary();
  absl::StatusOr<std::string> ChangedInput();
  absl::StatusOr<std::string> WrongResult();
  // REQUIRES: the tensor's expected_rms is there.
  absl::StatusOr<std::optional<Mismatch>> MismatchOf(size_t tensor);
  // As asked for, else the type's own.
  Tolerance ToleranceOf(compiler::v1::DType dtype) const;

  const JobSetup setup_;
  const Layout layout_;
  device::Device& device_;
  LaunchMark& mark_;
  std::byte* base_ = nullptr;
  std::vector<Tensor> tensors_;
  std::vector<uint64_t> slots_;
  std::map<int, Variant> variants_;
  std::vector<int> queued_;                // the variants launched since the last Finish
  std::optional<uint64_t> standing_seed_;  // of the canaries in place
  std::vector<Gap> gaps_;                  // theirs
  std::optional<ShadowMemory> shadows_;
  std::string no_shadows_;  // why there are none, where they were asked for
};

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_JOB_H_
