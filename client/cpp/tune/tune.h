// SPDX-License-Identifier: Apache-2.0
//
// RunTune: the client's side of the Tune state machine (docs/life_of_a_request.md), from Open to
// the Result, with the upload of arguments, the calls of grid and reference, and asking anew when
// the daemon went away. Keeps nothing: what the outcome changes is plan_source.h's business. Any
// thread.
#ifndef PHOBOS_CLIENT_CPP_TUNE_TUNE_H_
#define PHOBOS_CLIENT_CPP_TUNE_TUNE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/cpp/plan/promises.h"
#include "client/cpp/tune/memory.h"
#include "client/launch/status.h"
#include "client/stub/daemon.h"
#include "client/stub/wire/types.h"
#include "client/stub/wire/verbs.h"

namespace phobos {

// What a reference is given. Valid during its call.
class ReferenceCall {
 public:
  virtual ~ReferenceCall() = default;

  virtual const KernelDescription& description() const = 0;
  virtual const std::vector<int64_t>& extents() const = 0;
  // One a parameter. A tensor: the address of a copy, aligned to 64 bytes at least where the
  // caller's own is, which the reference may change. A scalar: the address of its value.
  virtual const std::vector<void*>& arguments() const = 0;

  // Takes the answer for one tensor that the kernel writes; copies the bytes. InvalidArgument,
  // which fails the tune whatever the reference returns: no such tensor, or not its size.
  virtual Status Set(std::string_view parameter, const void* bytes, size_t size) = 0;
};

struct TuneProgress {
  stub::Progress progress;  // as the daemon last told it
  int64_t elapsed_ms = 0;
  bool leads = false;
};

// How a caller takes part in a tune. All run on the calling thread.
struct TuneCallbacks {
  // The grid of one variant; an error makes that variant `grid_error`. Not empty.
  std::function<StatusOr<Grid>(int32_t variant, const std::vector<Constant>& settings)> grid;
  // Computes what the kernel should, or fails. May be called twice. Empty: this caller only
  // follows.
  std::function<Status(ReferenceCall& call)> reference;
  // Where the reference's copy of a tensor shall be: private anonymous memory, as mmap gives it, of
  // `bytes` and what is left of the last page; InvalidArgument where it does not begin on one. It
  // is the caller's, who may unmap it when the reference returned, or was not called. Where another
  // process can see the bytes as they are uploaded, their pages are laid over it, copy on write,
  // until the tune ends: who keeps the memory longer, or forks a child that does, writes to each
  // page while the reference runs. Null: the tune's own. Asked anew for each call of the reference,
  // not for small tensors. May be empty.
  std::function<void*(size_t parameter, int64_t bytes)> memory;
  // Called at least every 200 ms but while the reference runs. True: cancel. May be empty.
  std::function<bool(const TuneProgress& progress)> progress;
};

struct TuneTimeouts {  // milliseconds; 0: the daemon's defaults
  int64_t queue_ms = 0;
  int64_t run_ms = 0;
  int64_t upload_ms = 0;
  int64_t reference_ms = 0;
};

struct TuneSpec {
  KernelRef kernel;         // without source_text
  std::string source_text;  // sent when the daemon asks for it
  std::string device_uuid;
  Description description;
  std::vector<int64_t> extents;  // checked
  std::vector<uint64_t>
      values;  // one a parameter; tensors are only read, and must not change meanwhile
  Memory* memory = nullptr;  // where the tensors are; null: in this process's own
  TuneOptions options;
  TuneTimeouts timeouts;
  TuneCallbacks callbacks;
  int64_t newer_than_generation = 0;
  bool warm = false;  // Warm instead of Tune
};

// One of them is set; with `warm` perhaps none: the daemon has all that it needs.
struct TuneOutcome {
  std::optional<stub::Hit> hit;
  std::optional<stub::TuneDone> done;
};

// `patience.interrupted` is asked like callbacks.progress. Errors: Cancelled; the reference's own,
// with reason kReferenceFailed, unless the daemon says in time that the kernel does not compile;
// those of the daemon; Unavailable, when it stayed away for 30
// seconds.
StatusOr<TuneOutcome> RunTune(stub::Daemon& daemon, const TuneSpec& spec,
                              const stub::Patience& patience);

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_TUNE_TUNE_H_
