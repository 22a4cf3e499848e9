// SPDX-License-Identifier: Apache-2.0
//
// Runs phobos-compile as a child process and reads what it wrote: the daemon's only way to a
// compiler, so that no source text can crash the daemon. Remembers what was compiled, so that a
// tune at another key value compiles nothing. Not the search (tuner/). Calls block for as long as
// the compiler runs; any thread.
#ifndef PHOBOS_DAEMON_COMPILE_RUNNER_H_
#define PHOBOS_DAEMON_COMPILE_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/artifact_store.h"
#include "cache/result_store.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"

namespace phobos::compile {

struct Options {
  std::string compiler;  // path of phobos-compile
  // For --out folders, each removed after its run. This runner's alone: what a killed daemon left
  // there is removed at the start.
  std::string work_folder;
  absl::Duration limit = absl::Seconds(120);  // of one run; past it the process group is killed
  int jobs = 2;                               // variants compiled at once
  int64_t memory_bytes = int64_t{4} << 30;    // address-space limit of the child
};

struct Source {
  std::string text;
  std::string file_name;  // for messages
  std::string kernel;
};

// One variant as compiled, with the artifact in the store.
struct CompiledVariant {
  compiler::v1::Variant variant;  // status, reason, race verdict, artifact
  std::string artifact_path;      // absolute; empty unless COMPILED
  std::string recording_path;     // of the race-recording form; empty where there is none
};

// The whole space, in order of index.
struct CompiledSpace {
  std::string compiler_fingerprint;
  std::vector<std::string> slots;
  std::vector<CompiledVariant> variants;
  absl::Duration cpu_time;  // of the compiler; zero when everything was remembered
  int runs = 0;             // of phobos-compile; 0 when everything was remembered
};

class Runner {
 public:
  // Asks the compiler for its fingerprint (`--version`) once. FailedPrecondition: it cannot be run,
  // with the remedy.
  static absl::StatusOr<std::unique_ptr<Runner>> Start(Options options);
  virtual ~Runner() = default;

  virtual const std::string& fingerprint() const = 0;

  // `--describe`. Remembered by (text, kernel, compiler) in `store`. NotFound: the text has no
  // kernel of that name, and which it has; InvalidArgument (BAD_SOURCE) carries the
  // compiler's diagnostic; FailedPrecondition: the compiler cannot be run any more, with the
  // remedy; ResourceExhausted (MACHINE): the machine lacks what it takes to run one.
  virtual absl::StatusOr<compiler::v1::KernelDescription> Describe(const Source& source,
                                                                   cache::ResultStore& store) = 0;

  // One `--all-variants --check-races` run for what is not remembered. A run that crashes, or
  // exceeds its limit, is split in halves (`--set`, or `--variants A-B`) until the guilty variants
  // stand alone; one that crashes alone is tried once more. They are COMPILE_ERROR with the signal
  // or the limit as the reason, are remembered with the compiler unless somebody else killed it
  // (SIGKILL: the machine may have been short of memory), and the rest go on. Errors: only what
  // concerns no single variant (FailedPrecondition: the compiler cannot be run; Unavailable or
  // ResourceExhausted (MACHINE): a disk refuses, or memory, processes or descriptors are short,
  // with the remedy; InvalidArgument (BAD_SOURCE) for the source). Internal: what the compiler
  // wrote is not what it was asked for, and, too: a run that was killed has not ended (see
  // CommandRunner), for what it hangs in, a disk say, the other variants' runs would hang in too.
  virtual absl::StatusOr<CompiledSpace> CompileAll(
      const Source& source, const compiler::v1::KernelDescription& description,
      const std::string& chip, cache::ResultStore& store, cache::ArtifactStore& artifacts) = 0;

  // The same for one variant.
  virtual absl::StatusOr<CompiledVariant> CompileOne(
      const Source& source, const compiler::v1::KernelDescription& description, int variant,
      const std::string& chip, cache::ResultStore& store, cache::ArtifactStore& artifacts) = 0;

  // On the host chip compilers pause (SIGSTOP) while something is timed. Counted: each Pause needs
  // its Resume. Describe, and a run for a single variant, go on: they are short and rare, and a
  // lookup must not wait for somebody's tune.
  virtual void Pause() = 0;
  virtual void Resume() = 0;

  // Kills running compilers and lets none start: what needs one is Unavailable. For the end of the
  // daemon.
  virtual void Stop() = 0;
};

}  // namespace phobos::compile

#endif  // PHOBOS_DAEMON_COMPILE_RUNNER_H_
