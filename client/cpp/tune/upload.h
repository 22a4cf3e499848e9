// SPDX-License-Identifier: Apache-2.0
//
// Upload: the arguments and expected answers of one lead, in the daemon's shared memory. The
// arguments' copies serve twice: the daemon takes its own from them, and the reference sees them
// copy on write. Arguments that the daemon takes from the card itself are copied for the reference
// alone. One thread.
#ifndef PHOBOS_CLIENT_CPP_TUNE_UPLOAD_H_
#define PHOBOS_CLIENT_CPP_TUNE_UPLOAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "client/cpp/tune/memory.h"
#include "client/cpp/tune/pages.h"
#include "client/cpp/tune/tune.h"
#include "client/launch/status.h"
#include "client/stub/segments.h"
#include "client/stub/wire/verbs.h"

namespace phobos {

class Upload : private ReferenceCall {
 public:
  // Maps what the lead grants and checks that every tensor fits its place. `spec` and `segments`
  // must outlive it. Internal: the daemon's plan of its memory is not one.
  static StatusOr<std::unique_ptr<Upload>> Begin(const TuneSpec& spec, stub::Segments& segments,
                                                 const stub::Lead& lead);
  ~Upload() override;

  // Waits for the caller's arguments and makes them ready for the daemon, which is to be told what
  // this gives. `interrupted` is asked between tensors; Cancelled.
  StatusOr<std::vector<stub::BufferRef>> HandOver(const std::function<bool()>& interrupted);

  // Makes the reference's copies. REQUIRES: HandOver() gave OK. Errors: as HandOver, the card's,
  // ResourceExhausted; InvalidArgument: the caller's memory for one does not begin on a page.
  Status MakeCopies(const std::function<bool()>& interrupted);

  // Calls the reference on its copies, whether or not the daemon has its own by then. REQUIRES:
  // MakeCopies() gave OK. InvalidArgument: the answer is not one a written tensor; else what the
  // reference says.
  Status CallReference();

  // What to tell the daemon. Where a tensor that the kernel only writes holds the answer already,
  // overwrites it and calls the reference again. REQUIRES: CallReference() gave OK, and the daemon
  // owns copies of its own. Errors: as MakeCopies and CallReference.
  StatusOr<stub::Expected> Answers(const std::function<bool()>& interrupted);

 private:
  struct Place {
    std::byte* shared = nullptr;         // in the segments
    std::byte* expected = nullptr;       // in the segments; null: not written
    bool is_foreign = false;             // the daemon takes it from the card
    std::unique_ptr<OwnPages> private_;  // the reference's copy, where the caller gives no memory
    const stub::BufferRequest* request = nullptr;
    bool is_set = false;
  };

  Upload(const TuneSpec& spec, stub::Segments& segments, const stub::Lead& lead)
      : spec_(spec),
        memory_(spec.memory == nullptr ? host_ : *spec.memory),
        segments_(segments),
        lead_(lead) {}

  Status Map();
  Status PlaceTensors();
  // Whether the reference's copy is the segment's own pages, copy on write.
  bool IsLaidOver(const Place& place) const;
  // Finds memory for the reference's copy.
  Status PlaceCopy(size_t parameter);
  Status FillCopy(size_t parameter);
  stub::BufferRef RefOf(size_t parameter) const;
  StatusOr<std::vector<size_t>> HoldingTheAnswer();
  StatusOr<bool> HoldsTheAnswer(size_t parameter);

  const KernelDescription& description() const override { return *spec_.description; }
  const std::vector<int64_t>& extents() const override { return spec_.extents; }
  const std::vector<void*>& arguments() const override { return arguments_; }
  Status Set(std::string_view parameter, const void* bytes, size_t size) override;

  const TuneSpec& spec_;
  HostMemory host_;
  Memory& memory_;
  stub::Segments& segments_;
  const stub::Lead lead_;
  std::vector<std::byte*> bases_;      // one a segment of the lead that is mapped
  std::vector<Place> places_;          // one a parameter
  std::vector<uint64_t> scalars_;      // what arguments_ points at for scalars
  std::vector<void*> arguments_;       // what the reference gets
  std::unique_ptr<PagesAhead> ahead_;  // of the places for answers
  Status set_error_;
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_TUNE_UPLOAD_H_
