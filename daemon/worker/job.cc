// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/job.h"

#include <string.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "daemon/worker/check/canary.h"
#include "daemon/worker/check/conflict.h"
#include "daemon/worker/check/dtype.h"

namespace phobos::worker {
namespace {

// Copies that are kept lie at the tensor's own address modulo this, so that both can be read by the
// same wide loads.
constexpr int64_t kKeptAlignment = 256;

// Large arrays begin where an allocator's own blocks begin, and on a card a kernel's time depends
// on where they do.
constexpr int64_t kCardAlignment = 64 << 10;

// An output is compared in pieces of so much, a whole number of elements of every type: however
// large it is, it needs no more memory of the host than this.
constexpr int64_t kComparedBytes = int64_t{32} << 20;

std::vector<const TensorSetup*> Pointers(const JobSetup& setup) {
  std::vector<const TensorSetup*> tensors;
  for (const TensorSetup& tensor : setup.tensors()) tensors.push_back(&tensor);
  return tensors;
}

absl::StatusOr<absl::Span<const std::byte>> Range(
    const std::vector<absl::Span<const std::byte>>& memory, int index, int64_t offset,
    int64_t bytes, const std::string& parameter) {
  const bool known = index >= 0 && static_cast<size_t>(index) < memory.size();
  const int64_t size = known ? static_cast<int64_t>(memory[static_cast<size_t>(index)].size()) : 0;
  if (!known || offset < 0 || offset > size || bytes > size - offset) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bytes of ", parameter, " lie outside the memory sent along"));
  }
  return memory[static_cast<size_t>(index)].subspan(static_cast<size_t>(offset),
                                                    static_cast<size_t>(bytes));
}

std::string CanaryText(const std::string& tensor, int64_t bytes, int64_t offset) {
  if (offset < 0) {
    return absl::StrCat("wrote outside ", tensor, ": the byte ", -offset,
                        " before its first one changed");
  }
  return absl::StrCat("wrote outside ", tensor, ": the byte at +", offset - bytes,
                      " past its end (offset ", offset, ") changed");
}

}  // namespace

device::KernelFile FileOf(const VariantSetup& variant) {
  return {variant.variant(), variant.artifact_path(), variant.artifact()};
}

device::KernelFile RecordingFileOf(const VariantSetup& variant) {
  const RecordingSetup& recording = variant.recording();
  return {variant.variant(), recording.artifact_path(), recording.recording().artifact()};
}

Job::Job(JobSetup setup, Layout layout, device::Device& device, LaunchMark& mark)
    : setup_(std::move(setup)), layout_(std::move(layout)), device_(device), mark_(mark) {}

absl::StatusOr<std::unique_ptr<Job>> Job::Begin(
    JobSetup setup, const std::vector<absl::Span<const std::byte>>& memory, device::Device& device,
    LaunchMark& mark, const Preloaded& preloaded) {
  const int64_t alignment = device.description().has_host_memory ? kKeptAlignment : kCardAlignment;
  ASSIGN_OR_RETURN(Layout layout, LayOut(Pointers(setup), alignment));
  std::unique_ptr<Job> job(new Job(std::move(setup), std::move(layout), device, mark));
  RETURN_IF_ERROR(job->AddTensors(memory, preloaded));
  const int64_t tensors = job->layout_.total_bytes;
  RETURN_IF_ERROR(job->ReserveMemory(tensors + job->KeptBytes()));
  RETURN_IF_ERROR(job->AddSlots());
  RETURN_IF_ERROR(job->Keep(tensors));
  return job;
}

absl::Status Job::ReserveMemory(int64_t bytes) {
  const int64_t shadows = setup_.shadow_bytes();
  if (shadows > 0) {
    const int64_t begin = (bytes + kKeptAlignment - 1) / kKeptAlignment * kKeptAlignment;
    ASSIGN_OR_RETURN(const int64_t free, device_.FreeBytes());
    const absl::StatusOr<std::byte*> all =
        shadows <= (free - begin) / 2
            ? device_.Reserve(begin + shadows, setup_.flush())
            : absl::ResourceExhaustedError(
                  absl::StrCat("half of the ", std::max<int64_t>(free - begin, 0),
                               " bytes that the tensors leave is the most that shadows may take; "
                               "tune with smaller arguments or free memory"));
    if (all.ok()) {
      base_ = *all;
      shadows_.emplace(setup_, device_, base_ + begin);
      return absl::OkStatus();
    }
    if (!absl::IsResourceExhausted(all.status())) return all.status();
    no_shadows_ = std::string(all.status().message());
  }
  ASSIGN_OR_RETURN(base_, device_.Reserve(bytes, setup_.flush()));
  // Tensors without elements have shadows without bytes.
  if (shadows == 0) shadows_.emplace(setup_, device_, base_);
  return absl::OkStatus();
}

int64_t Job::KeptBytes() const {
  if (device_.description().has_host_memory) return 0;
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors_) {
    const int places = (tensor.is_preloaded ? 0 : 1) + (tensor.expected.data() == nullptr ? 0 : 1);
    bytes += places * (tensor.setup->bytes() + 2 * kKeptAlignment);
  }
  return bytes;
}

absl::Status Job::Keep(int64_t offset) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    Tensor& tensor = tensors_[i];
    if (!tensor.is_preloaded) tensor.kept = tensor.pristine.data();
    tensor.kept_expected = tensor.expected.data();
    if (device_.description().has_host_memory) continue;
    for (const std::byte** kept : {&tensor.kept, &tensor.kept_expected}) {
      if (*kept == nullptr || (kept == &tensor.kept && tensor.is_preloaded)) continue;
      offset = (offset + kKeptAlignment - 1) / kKeptAlignment * kKeptAlignment;
      std::byte* place = base_ + offset + layout_.places[i].tensor % kKeptAlignment;
      RETURN_IF_ERROR(device_.Copy(place, *kept, layout_.places[i].bytes));
      *kept = place;
      offset += kKeptAlignment + layout_.places[i].bytes;
    }
  }
  return Finish().status();
}

absl::Status Job::AddTensors(const std::vector<absl::Span<const std::byte>>& memory,
                             const Preloaded& preloaded) {
  for (const TensorSetup& setup : setup_.tensors()) {
    const int64_t element = ElementBytes(setup.dtype());
    if (element == 0 || setup.bytes() % element != 0) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", setup.parameter(), " of ",
                                                     setup.bytes(), " bytes has no whole number ",
                                                     "of elements of type ", setup.dtype()));
    }
    Tensor tensor;
    tensor.setup = &setup;
    ASSIGN_OR_RETURN(tensor.pristine, Range(memory, setup.memory(), setup.offset_bytes(),
                                            setup.bytes(), setup.parameter()));
    if (setup.memory() == 0 && setup.bytes() > 0) {
      tensor.kept = preloaded.Find(setup_.arguments_token(), setup.offset_bytes());
      tensor.is_preloaded = tensor.kept != nullptr;
    }
    if (setup.expected_memory() >= 0) {
      ASSIGN_OR_RETURN(tensor.expected,
                       Range(memory, setup.expected_memory(), setup.expected_offset_bytes(),
                             setup.bytes(), setup.parameter()));
    }
    tensors_.push_back(tensor);
  }
  return absl::OkStatus();
}

absl::Status Job::AddSlots() {
  for (const SlotSetup& slot : setup_.slots()) {
    if (slot.tensor() < 0) {
      slots_.push_back(slot.value());
      continue;
    }
    if (slot.tensor() >= setup_.tensors_size()) {
      return absl::InvalidArgumentError(absl::StrCat("slot of an unknown tensor ", slot.tensor()));
    }
    const Place& place = layout_.places[static_cast<size_t>(slot.tensor())];
    slots_.push_back(reinterpret_cast<uint64_t>(base_ + place.tensor));
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadOutcome> Job::Load(const VariantSetup& variant) {
  // Loading runs the artifact's initializers.
  const ScopedMark mark(mark_, variant.variant());
  ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel, device_.Load(FileOf(variant)));
  LoadOutcome outcome;
  outcome.set_registers(kernel->usage.registers);
  outcome.set_shared_memory_bytes(kernel->usage.shared_memory_bytes);
  outcome.set_spill_bytes(kernel->usage.spill_bytes);
  Variant loaded;
  loaded.kernel = std::move(kernel);
  loaded.grid = variant.grid();
  if (variant.has_recording()) loaded.recorded = variant;
  variants_[variant.variant()] = std::move(loaded);
  return outcome;
}

absl::StatusOr<const Job::Variant*> Job::Find(int variant) const {
  const auto found = variants_.find(variant);
  if (found == variants_.end()) {
    return absl::NotFoundError(absl::StrCat("variant ", variant, " is not loaded"));
  }
  return &found->second;
}

absl::Status Job::Launch(int index, const Variant& variant) {
  return Launch(index, *variant.kernel, slots_, variant.grid);
}

absl::Status Job::Launch(int index, const device::Kernel& kernel, absl::Span<const uint64_t> slots,
                         const tuner::v1::Grid& grid) {
  const ScopedMark mark(mark_, index);
  queued_.push_back(index);
  const absl::Status launched = device_.Launch(kernel, slots, grid);
  if (!absl::IsAborted(launched)) return launched;
  // An earlier launch may be the guilty one; then Finish marks it.
  queued_.pop_back();
  if (Finish().ok()) mark_.Begin(index);
  return launched;
}

absl::Status Job::LaunchAmongOthers(int index, const Variant& variant) {
  const absl::Status launched = Launch(index, variant);
  if (launched.ok() || absl::IsAborted(launched)) return launched;
  return absl::AbortedError(absl::StrCat("a launch was refused: ", launched.message()));
}

absl::StatusOr<device::Outcome> Job::Finish() {
  bool is_marked = false;
  absl::StatusOr<device::Outcome> outcome = device_.Finish([&](size_t launch) {
    mark_.Begin(queued_[launch]);
    is_marked = true;
  });
  // After an error the mark stays, for whoever asks which launch it was.
  if (is_marked && outcome.ok()) mark_.End();
  queued_.clear();
  return outcome;
}

absl::Status Job::Refresh(size_t tensor) {
  tensors_[tensor].is_stale = false;
  if (tensors_[tensor].pristine.empty()) return absl::OkStatus();
  return device_.Copy(base_ + layout_.places[tensor].tensor, tensors_[tensor].kept,
                      layout_.places[tensor].bytes);
}

absl::Status Job::RefreshStale() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].is_stale) RETURN_IF_ERROR(Refresh(i));
  }
  return absl::OkStatus();
}

absl::Status Job::Restore() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].setup->is_restored()) RETURN_IF_ERROR(Refresh(i));
  }
  return absl::OkStatus();
}

absl::Status Job::LayCanaries(uint64_t seed) {
  gaps_.clear();
  // `offset`: as FillCanary's, of the byte at `begin`.
  const auto add = [&](int tensor, int64_t begin, int64_t end, int64_t offset) {
    const bool goes_on = !gaps_.empty() && gaps_.back().end() == begin;
    Gap& gap = goes_on ? gaps_.back() : gaps_.emplace_back(Gap{begin, {}});
    const size_t size = gap.canaries.size();
    gap.canaries.resize(size + static_cast<size_t>(end - begin));
    FillCanary({seed, tensor}, offset, absl::MakeSpan(gap.canaries).subspan(size));
  };
  for (size_t i = 0; i < layout_.places.size(); ++i) {
    const Place& place = layout_.places[i];
    const int tensor = static_cast<int>(i);
    add(tensor, place.begin, place.tensor, place.begin - place.tensor);
    add(tensor, place.tensor + place.bytes, place.end, place.bytes);
  }
  for (const Gap& gap : gaps_) {
    RETURN_IF_ERROR(device_.Copy(base_ + gap.begin, gap.canaries.data(), gap.end() - gap.begin));
  }
  standing_seed_ = seed;
  return Finish().status();
}

absl::StatusOr<std::string> Job::ChangedCanary() {
  for (const Gap& gap : gaps_) {
    ASSIGN_OR_RETURN(const std::byte* bytes,
                     device_.Read(base_ + gap.begin, gap.end() - gap.begin));
    if (memcmp(bytes, gap.canaries.data(), gap.canaries.size()) != 0) return WhoseCanary();
  }
  return std::string();
}

absl::StatusOr<std::string> Job::WhoseCanary() {
  for (size_t i = 0; i < layout_.places.size(); ++i) {
    const Place& place = layout_.places[i];
    const CanaryKey key = {*standing_seed_, static_cast<int>(i)};
    const int64_t before = place.tensor - place.begin;
    const int64_t after = place.end - place.tensor - place.bytes;
    ASSIGN_OR_RETURN(const std::byte* bytes, device_.Read(base_ + place.begin, before));
    auto changed = FirstChanged(key, -before, absl::MakeSpan(bytes, static_cast<size_t>(before)));
    if (!changed.has_value()) {
      ASSIGN_OR_RETURN(bytes, device_.Read(base_ + place.tensor + place.bytes, after));
      changed = FirstChanged(key, place.bytes, absl::MakeSpan(bytes, static_cast<size_t>(after)));
    }
    if (changed.has_value()) {
      return CanaryText(tensors_[i].setup->parameter(), place.bytes, *changed);
    }
  }
  return std::string();
}

absl::StatusOr<std::optional<int64_t>> Job::FirstChange(size_t tensor, const std::byte* kept,
                                                        absl::Span<const std::byte> host) {
  const Place& place = layout_.places[tensor];
  if (!device_.description().has_host_memory && place.bytes > 0) {
    return device_.FirstDifference(base_ + place.tensor, kept, place.bytes);
  }
  ASSIGN_OR_RETURN(const std::byte* bytes, device_.Read(base_ + place.tensor, place.bytes));
  return FirstDifference(absl::MakeSpan(bytes, host.size()), host);
}

absl::StatusOr<std::string> Job::ChangedInput() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorSetup& setup = *tensors_[i].setup;
    if (setup.is_written()) continue;
    ASSIGN_OR_RETURN(const std::optional<int64_t> changed,
                     FirstChange(i, tensors_[i].kept, tensors_[i].pristine));
    if (!changed.has_value()) continue;
    tensors_[i].is_stale = true;
    const std::vector<int64_t> shape(setup.shape().begin(), setup.shape().end());
    return absl::StrCat("changed its input ", setup.parameter(),
                        IndexText(*changed / ElementBytes(setup.dtype()), shape), " (byte ",
                        *changed, "), which the kernel does not write");
  }
  return std::string();
}

Tolerance Job::ToleranceOf(compiler::v1::DType dtype) const {
  Tolerance tolerance = DefaultTolerance(dtype);
  if (tolerance.rtol == 0) return tolerance;  // integers and bools: exact whatever was asked
  if (setup_.has_rtol()) tolerance.rtol = setup_.rtol();
  if (setup_.has_atol()) tolerance.atol = setup_.atol();
  return tolerance;
}

absl::StatusOr<std::optional<Mismatch>> Job::MismatchOf(size_t tensor) {
  const TensorSetup& setup = *tensors_[tensor].setup;
  const absl::Span<const std::byte> expected = tensors_[tensor].expected;
  const Tolerance tolerance = ToleranceOf(setup.dtype());
  const int64_t element = ElementBytes(setup.dtype());
  std::optional<Mismatch> all;
  for (int64_t at = 0; at < setup.bytes(); at += kComparedBytes) {
    const int64_t size = std::min(kComparedBytes, setup.bytes() - at);
    ASSIGN_OR_RETURN(const std::byte* bytes,
                     device_.Read(base_ + layout_.places[tensor].tensor + at, size));
    Append(all, at / element,
           Compare(setup.dtype(), absl::MakeSpan(bytes, static_cast<size_t>(size)),
                   expected.subspan(static_cast<size_t>(at), static_cast<size_t>(size)), tolerance,
                   *tensors_[tensor].expected_rms));
  }
  if (all.has_value()) all->elements = setup.bytes() / element;
  return all;
}

absl::StatusOr<std::string> Job::WrongResult() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    Tensor& tensor = tensors_[i];
    const TensorSetup& setup = *tensor.setup;
    if (setup.expected_memory() < 0) continue;
    ASSIGN_OR_RETURN(const std::optional<int64_t> changed,
                     FirstChange(i, tensor.kept_expected, tensor.expected));
    if (!changed.has_value()) continue;
    if (!tensor.expected_rms.has_value()) {
      tensor.expected_rms = RootMeanSquare(setup.dtype(), tensor.expected);
    }
    ASSIGN_OR_RETURN(const std::optional<Mismatch> mismatch, MismatchOf(i));
    if (!mismatch.has_value()) continue;
    const Tolerance tolerance = ToleranceOf(setup.dtype());
    const std::vector<int64_t> shape(setup.shape().begin(), setup.shape().end());
    return Describe(*mismatch, setup.parameter(), shape, setup.dtype(), tolerance);
  }
  return std::string();
}

void Job::MarkAllStale() {
  for (Tensor& tensor : tensors_) tensor.is_stale = true;
}

absl::Status Job::MakeFresh(uint64_t seed) {
  for (Tensor& tensor : tensors_) tensor.is_stale |= tensor.setup->is_written();
  // A tensor that is not stale was compared with the caller's bytes after the last launch, which
  // was a check's: as good as a fresh copy.
  RETURN_IF_ERROR(RefreshStale());
  return LayCanaries(seed);
}

absl::StatusOr<CheckOutcome> Job::Check(int variant, uint64_t seed) {
  ASSIGN_OR_RETURN(const Variant* found, Find(variant));
  RETURN_IF_ERROR(MakeFresh(seed));
  RETURN_IF_ERROR(Launch(variant, *found));
  ASSIGN_OR_RETURN(const device::Outcome launched, Finish());

  CheckOutcome outcome;
  if (!launched.samples_ns.empty()) outcome.set_launch_ns(launched.samples_ns.back());
  *outcome.mutable_state() = launched.state;
  ASSIGN_OR_RETURN(std::string reason, ChangedCanary());
  if (!reason.empty()) {
    // Whoever writes outside one tensor may have written into another.
    MarkAllStale();
    outcome.set_status(tuner::v1::VARIANT_STATUS_OUT_OF_BOUNDS);
    outcome.set_reason(reason);
    return outcome;
  }
  ASSIGN_OR_RETURN(reason, ChangedInput());
  if (reason.empty()) {
    ASSIGN_OR_RETURN(reason, WrongResult());
  }
  outcome.set_status(reason.empty() ? tuner::v1::VARIANT_STATUS_TIMED
                                    : tuner::v1::VARIANT_STATUS_WRONG_RESULT);
  outcome.set_reason(reason);
  return outcome;
}

std::string Job::WhyNotRecorded(const Variant& variant) const {
  if (!variant.recorded.has_value()) return "there is none";
  if (!shadows_.has_value()) {
    const int64_t needed = ShadowBytes(variant.recorded->recording().recording(), setup_);
    return absl::StrCat("it needs ", needed,
                        " bytes for shadows beside the tensors: ", no_shadows_);
  }
  const tuner::v1::Grid& grid = variant.grid;
  if (grid.x() > kMostRecordedBlocks / grid.y() / grid.z()) {
    return absl::StrCat("it tells ", kMostRecordedBlocks, " blocks apart, and the grid has more");
  }
  return std::string();
}

absl::StatusOr<CheckOutcome> Job::Record(int variant, uint64_t seed) {
  ASSIGN_OR_RETURN(const Variant* found, Find(variant));
  CheckOutcome outcome;
  outcome.set_status(tuner::v1::VARIANT_STATUS_RACE_CHECK_FAILED);
  outcome.set_reason(WhyNotRecorded(*found));
  if (!outcome.reason().empty()) return outcome;
  // Loaded here, for this launch alone: what it does to the process then is not the variant's
  // doing.
  const absl::StatusOr<std::unique_ptr<device::Kernel>> kernel =
      device_.Load(RecordingFileOf(*found->recorded));
  if (absl::IsAborted(kernel.status())) return kernel.status();
  if (!kernel.ok()) {
    outcome.set_reason(
        absl::StrCat("it cannot be loaded: ", std::string(kernel.status().message())));
    return outcome;
  }
  const compiler::v1::Recording& recording = found->recorded->recording().recording();
  RETURN_IF_ERROR(shadows_->Clear(recording));
  RETURN_IF_ERROR(MakeFresh(seed));
  std::vector<uint64_t> slots = slots_;
  const std::vector<uint64_t> more = shadows_->Slots(recording);
  slots.insert(slots.begin() + found->recorded->recording().first_slot(), more.begin(), more.end());
  RETURN_IF_ERROR(Launch(variant, **kernel, slots, found->grid));
  ASSIGN_OR_RETURN(const device::Outcome launched, Finish());

  if (!launched.samples_ns.empty()) outcome.set_launch_ns(launched.samples_ns.back());
  ASSIGN_OR_RETURN(std::string reason, ChangedCanary());
  if (!reason.empty()) MarkAllStale();
  if (reason.empty()) {
    ASSIGN_OR_RETURN(reason, ChangedInput());
  }
  if (!reason.empty()) {
    outcome.set_reason(absl::StrCat("it ", reason));
    return outcome;
  }
  ASSIGN_OR_RETURN(reason, shadows_->FoundRace(recording, found->grid));
  outcome.set_status(reason.empty() ? tuner::v1::VARIANT_STATUS_TIMED
                                    : tuner::v1::VARIANT_STATUS_RACE);
  outcome.set_reason(reason);
  return outcome;
}

absl::StatusOr<int64_t> Job::WarmUp(absl::Span<const int> variants, int64_t at_least_ns) {
  std::vector<const Variant*> found;
  for (const int variant : variants) {
    ASSIGN_OR_RETURN(found.emplace_back(), Find(variant));
  }
  if (found.empty()) return absl::InvalidArgumentError("a warm-up of no variant");
  RETURN_IF_ERROR(RefreshStale());
  if (!standing_seed_.has_value()) RETURN_IF_ERROR(LayCanaries(setup_.seed()));
  MarkAllStale();  // nobody looks at the inputs after these launches
  // The copies are not part of it.
  ASSIGN_OR_RETURN(device::Outcome outcome, Finish());
  const int64_t start = outcome.now_ns;
  int64_t launches = 0;
  do {
    for (size_t i = 0; i < found.size(); ++i) {
      RETURN_IF_ERROR(Restore());
      RETURN_IF_ERROR(LaunchAmongOthers(variants[i], *found[i]));
    }
    launches += static_cast<int64_t>(found.size());
    ASSIGN_OR_RETURN(outcome, Finish());
  } while (outcome.now_ns - start < at_least_ns);
  return launches;
}

absl::StatusOr<RoundOutcome> Job::Round(absl::Span<const int> order, bool flush) {
  std::vector<const Variant*> found;
  for (const int variant : order) {
    ASSIGN_OR_RETURN(found.emplace_back(), Find(variant));
  }
  if (!standing_seed_.has_value()) return absl::FailedPreconditionError("a round before a warm-up");
  for (size_t i = 0; i < found.size(); ++i) {
    RETURN_IF_ERROR(Restore());
    if (flush) RETURN_IF_ERROR(device_.Flush());
    RETURN_IF_ERROR(LaunchAmongOthers(order[i], *found[i]));
  }
  ASSIGN_OR_RETURN(const device::Outcome launched, Finish());
  // A launch may have written into an input. Whoever is checked next must not pay for it.
  MarkAllStale();

  RoundOutcome outcome;
  outcome.mutable_samples_ns()->Add(launched.samples_ns.begin(), launched.samples_ns.end());
  outcome.set_disturbed(launched.disturbed);
  outcome.set_disturbance(launched.disturbance);
  outcome.set_timer_resolution_ns(device_.description().timer_resolution_ns);
  outcome.set_timer_floor_ns(device_.description().timer_floor_ns);
  *outcome.mutable_state() = launched.state;
  ASSIGN_OR_RETURN(const std::string reason, ChangedCanary());
  if (!reason.empty()) {
    outcome.set_out_of_bounds(reason);
    RETURN_IF_ERROR(RefreshStale());
    RETURN_IF_ERROR(LayCanaries(*standing_seed_));
  }
  return outcome;
}

}  // namespace phobos::worker
