// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/tune/upload.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/parallel.h"
#include "client/cpp/tune/unchanged.h"

namespace phobos {
namespace {

Status BadPlan(const std::string& what) {
  return Status(Code::kInternal, "the daemon's plan of its shared memory is wrong: " + what);
}

// Bytes of a tensor that are looked at before all of it.
constexpr int64_t kFirstLook = int64_t{1} << 18;

// Less is copied sooner than mapped.
constexpr int64_t kWorthMapping = int64_t{1} << 20;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

Status Cancelled() { return Status(Code::kCancelled, "the caller cancelled"); }

// Whether `bytes` from `offset` on lie in a segment of `size` bytes.
bool Fits(int64_t offset, int64_t bytes, int64_t size) {
  return offset >= 0 && bytes >= 0 && offset <= size && bytes <= size - offset;
}

}  // namespace

StatusOr<std::unique_ptr<Upload>> Upload::Begin(const TuneSpec& spec, stub::Segments& segments,
                                                const stub::Lead& lead) {
  std::unique_ptr<Upload> upload(new Upload(spec, segments, lead));
  if (Status status = upload->Map(); !status.ok()) return status;
  if (Status status = upload->PlaceTensors(); !status.ok()) return status;
  return upload;
}

Upload::~Upload() {
  ahead_ = nullptr;
  for (size_t i = 0; i < bases_.size(); ++i) segments_.Done(lead_.segments[i].segment);
}

Status Upload::Map() {
  for (const stub::SegmentGrant& grant : lead_.segments) {
    const StatusOr<std::byte*> base = segments_.Use(grant);
    if (!base.ok()) return base.status();
    bases_.push_back(*base);
  }
  return Status();
}

Status Upload::PlaceTensors() {
  const std::vector<Parameter>& parameters = spec_.description->parameters;
  const StatusOr<std::vector<int64_t>> sizes = TensorBytes(*spec_.description, spec_.extents);
  if (!sizes.ok()) return sizes.status();
  places_.resize(parameters.size());
  scalars_ = spec_.values;
  arguments_.resize(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    arguments_[i] = &scalars_[i];
    if (!parameters[i].is_tensor) continue;
    const auto request =
        std::find_if(lead_.buffers.begin(), lead_.buffers.end(),
                     [&](const auto& b) { return b.parameter == parameters[i].name; });
    if (request == lead_.buffers.end()) return BadPlan("no place for " + parameters[i].name);
    size_t segment = 0;
    while (segment < bases_.size() && lead_.segments[segment].segment != request->segment) {
      ++segment;
    }
    if (segment == bases_.size()) return BadPlan("no segment for " + parameters[i].name);
    const int64_t size = lead_.segments[segment].bytes;
    if (request->bytes != (*sizes)[i] || !Fits(request->offset_bytes, request->bytes, size) ||
        (request->is_written && !Fits(request->expected_offset_bytes, request->bytes, size))) {
      return BadPlan(parameters[i].name + " does not fit");
    }
    places_[i].request = &*request;
    places_[i].shared = bases_[segment] + request->offset_bytes;
    if (parameters[i].is_written) {
      places_[i].expected = bases_[segment] + request->expected_offset_bytes;
    }
    arguments_[i] = places_[i].shared;
  }
  return Status();
}

StatusOr<std::vector<stub::BufferRef>> Upload::HandOver(const std::function<bool()>& interrupted) {
  if (Status status = memory_.Settle(); !status.ok()) return status;
  std::vector<stub::BufferRef> refs;
  for (size_t i = 0; i < places_.size(); ++i) {
    const stub::BufferRequest* request = places_[i].request;
    if (request == nullptr) continue;
    if (interrupted()) return Cancelled();
    stub::BufferRef& ref = refs.emplace_back(RefOf(i));
    std::optional<Memory::Shared> shared;
    if (lead_.takes_cuda_ipc && request->bytes > 0) {
      StatusOr<std::optional<Memory::Shared>> answer = memory_.Share(spec_.values[i]);
      if (!answer.ok()) return answer.status();
      shared = *std::move(answer);
    }
    if (shared.has_value()) {
      ref.segment = 0;
      ref.offset_bytes = shared->offset_bytes;
      ref.cuda_ipc_handle = std::move(shared->handle);
      places_[i].is_foreign = true;
      continue;
    }
    if (Status status = memory_.Copy(places_[i].shared, spec_.values[i], request->bytes);
        !status.ok()) {
      return status;
    }
  }
  return refs;
}

stub::BufferRef Upload::RefOf(size_t parameter) const {
  const stub::BufferRequest& request = *places_[parameter].request;
  stub::BufferRef ref;
  ref.parameter = request.parameter;
  ref.segment = request.segment;
  ref.offset_bytes = request.offset_bytes;
  ref.bytes = request.bytes;
  ref.address_mod_256 = static_cast<int32_t>(spec_.values[parameter] % 256);
  return ref;
}

bool Upload::IsLaidOver(const Place& place) const {
  return !place.is_foreign && place.request->bytes >= kWorthMapping &&
         static_cast<size_t>(place.request->offset_bytes) % PageBytes() == 0;
}

Status Upload::PlaceCopy(size_t parameter) {
  Place& place = places_[parameter];
  arguments_[parameter] = nullptr;
  if (spec_.callbacks.memory && (place.is_foreign || IsLaidOver(place))) {
    arguments_[parameter] = spec_.callbacks.memory(parameter, place.request->bytes);
  }
  if (arguments_[parameter] != nullptr) {
    // Elsewhere pages would be laid over what belongs to others.
    if (reinterpret_cast<uintptr_t>(arguments_[parameter]) % PageBytes() == 0) return Status();
    return Status(Code::kInvalidArgument, "the memory for the reference's copy of " +
                                              place.request->parameter +
                                              " does not begin on a page: give what mmap gave");
  }
  if (place.private_ == nullptr) {
    StatusOr<std::unique_ptr<OwnPages>> made =
        OwnPages::Make(static_cast<size_t>(place.request->bytes));
    if (!made.ok()) return made.status();
    place.private_ = *std::move(made);
  }
  arguments_[parameter] = place.private_->data();
  return Status();
}

Status Upload::FillCopy(size_t parameter) {
  const Place& place = places_[parameter];
  const stub::BufferRequest& request = *place.request;
  auto* const copy = static_cast<std::byte*>(arguments_[parameter]);
  if (place.is_foreign) return memory_.Copy(copy, spec_.values[parameter], request.bytes);
  const auto bytes = static_cast<size_t>(request.bytes);
  if (IsLaidOver(place)) {
    return segments_.LayOver(copy, request.segment, request.offset_bytes, bytes);
  }
  memcpy(copy, place.shared, bytes);
  return Status();
}

Status Upload::MakeCopies(const std::function<bool()>& interrupted) {
  std::vector<std::span<std::byte>> own, answers;
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    if (place.request == nullptr || place.request->bytes == 0) continue;
    const auto bytes = static_cast<size_t>(place.request->bytes);
    if (place.expected != nullptr) answers.emplace_back(place.expected, bytes);
    if (Status status = PlaceCopy(i); !status.ok()) return status;
    if (place.is_foreign) own.emplace_back(static_cast<std::byte*>(arguments_[i]), bytes);
  }
  const PagesAhead ahead(own);
  if (ahead_ == nullptr) ahead_ = std::make_unique<PagesAhead>(answers);
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].request == nullptr || places_[i].request->bytes == 0) continue;
    if (interrupted()) return Cancelled();
    if (Status status = FillCopy(i); !status.ok()) return status;
  }
  return Status();
}

StatusOr<stub::Expected> Upload::Answers(const std::function<bool()>& interrupted) {
  stub::Expected expected;
  const StatusOr<std::vector<size_t>> holding = HoldingTheAnswer();
  if (!holding.ok()) return holding.status();
  std::vector<std::vector<std::byte>> wrong;
  if (!holding->empty()) {
    for (const size_t i : *holding) {
      const DType dtype = spec_.description->parameters[i].dtype;
      const int64_t bytes = places_[i].request->bytes;
      std::vector<std::byte>& values = wrong.emplace_back(static_cast<size_t>(bytes));
      FillWithWrong(dtype, places_[i].expected, bytes / ElementBytes(dtype), values.data());
    }
    // The reference may have changed its copies: it gets new ones, with the overwritten tensors.
    if (Status status = MakeCopies(interrupted); !status.ok()) return status;
    for (size_t k = 0; k < holding->size(); ++k) {
      memcpy(arguments_[(*holding)[k]], wrong[k].data(), wrong[k].size());
    }
    if (Status status = CallReference(); !status.ok()) return status;
    for (size_t k = 0; k < holding->size(); ++k) {
      memcpy(places_[(*holding)[k]].shared, wrong[k].data(), wrong[k].size());
      expected.replaced.push_back(RefOf((*holding)[k]));
    }
  }
  for (const Place& place : places_) {
    if (place.expected == nullptr) continue;
    stub::BufferRef ref;
    ref.parameter = place.request->parameter;
    ref.segment = place.request->segment;
    ref.offset_bytes = place.request->expected_offset_bytes;
    ref.bytes = place.request->bytes;
    expected.buffers.push_back(std::move(ref));
  }
  return expected;
}

Status Upload::CallReference() {
  for (Place& place : places_) place.is_set = false;
  scalars_ = spec_.values;
  set_error_ = Status();
  if (Status status = spec_.callbacks.reference(*this); !status.ok()) return status;
  if (!set_error_.ok()) return set_error_;
  for (const Place& place : places_) {
    if (place.expected == nullptr || place.is_set) continue;
    return Status(Code::kInvalidArgument, "the reference gave no answer for " +
                                              place.request->parameter +
                                              ", which the kernel writes");
  }
  return Status();
}

// Tensors that the kernel only writes and whose present values the check would take for the answer.
StatusOr<std::vector<size_t>> Upload::HoldingTheAnswer() {
  std::vector<size_t> holding;
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    if (place.expected == nullptr || spec_.description->parameters[i].is_read ||
        place.request->bytes == 0) {
      continue;
    }
    const StatusOr<bool> holds = HoldsTheAnswer(i);
    if (!holds.ok()) return holds.status();
    if (*holds) holding.push_back(i);
  }
  return holding;
}

// Looks at a little first, and at ever more while that is what is expected: mostly the first
// element tells.
StatusOr<bool> Upload::HoldsTheAnswer(size_t parameter) {
  const Place& place = places_[parameter];
  const DType dtype = spec_.description->parameters[parameter].dtype;
  const Tolerance tolerance = ToleranceFor(dtype, spec_.options);
  const int64_t size = ElementBytes(dtype), total = place.request->bytes / size;
  std::vector<std::byte> buffer;
  int64_t count = kFirstLook / size;
  for (int64_t begin = 0; begin < total; begin += count, count *= 4) {
    count = std::min(count, total - begin);
    const StatusOr<const std::byte*> present = memory_.Look(
        spec_.values[parameter] + static_cast<uint64_t>(begin * size), count * size, buffer);
    if (!present.ok()) return present.status();
    if (!IsAccepted(dtype, *present, place.expected, total, tolerance, {begin, count})) {
      return false;
    }
  }
  return true;
}

Status Upload::Set(std::string_view parameter, const void* bytes, size_t size) {
  const auto refuse = [&](const std::string& why) {
    set_error_ = Status(Code::kInvalidArgument,
                        "the reference's answer for '" + std::string(parameter) + "': " + why);
    return set_error_;
  };
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (spec_.description->parameters[i].name != parameter) continue;
    if (place.expected == nullptr) return refuse("the kernel does not write it");
    if (size != static_cast<size_t>(place.request->bytes)) {
      return refuse(std::to_string(size) + " bytes, but the tensor has " +
                    std::to_string(place.request->bytes));
    }
    CopyBytes(place.expected, static_cast<const std::byte*>(bytes), static_cast<int64_t>(size));
    place.is_set = true;
    return Status();
  }
  return refuse("the kernel has no such tensor");
}

}  // namespace phobos
