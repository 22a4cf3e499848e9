// SPDX-License-Identifier: Apache-2.0
//
// Kernels resolves what a client calls a kernel (digest of a text, a name) to what the compiler
// says of it. A text is kept on disk when it is first seen, so that it travels once; what the
// compiler said is kept by the runner. The newest few are kept in memory. Any thread.
#ifndef PHOBOS_DAEMON_ENGINE_KERNELS_H_
#define PHOBOS_DAEMON_ENGINE_KERNELS_H_

#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cache/result_store.h"
#include "daemon/compile/runner.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::engine {

// Immutable.
struct Kernel {
  compile::Source source;
  compiler::v1::KernelDescription description;
};
using KernelPtr = std::shared_ptr<const Kernel>;

class Kernels {
 public:
  // `runner` must outlive it.
  explicit Kernels(compile::Runner& runner) : runner_(runner) {}

  // Null: the text is not known, ask the client for it. InvalidArgument: a digest that is not the
  // text's, the compiler's diagnostic (reason BAD_SOURCE), or the text has no kernel of that name
  // (reason UNKNOWN_KERNEL). Other errors as Runner::Describe's, without a reason. May read the
  // disk and run the compiler.
  absl::StatusOr<KernelPtr> Resolve(const tuner::v1::KernelRef& ref, cache::ResultStore& store);

 private:
  KernelPtr Recent(const std::string& name);
  void Keep(const std::string& name, const KernelPtr& kernel);

  compile::Runner& runner_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, KernelPtr> recent_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);  // of recent_, oldest first
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// OK when `extents` gives each of the kernel's extents once and nothing else, none negative;
// InvalidArgument says which.
absl::Status CheckExtents(const compiler::v1::KernelDescription& description,
                          absl::Span<const tuner::v1::Extent> extents);
// The same where extents outside the key may be missing: enough to name a Result, not to launch it.
absl::Status CheckKeyExtents(const compiler::v1::KernelDescription& description,
                             absl::Span<const tuner::v1::Extent> extents);
// The same for scalars: each once, with as many bytes as its type has.
absl::Status CheckScalars(const compiler::v1::KernelDescription& description,
                          absl::Span<const tuner::v1::Scalar> scalars);

// Bytes of a tensor parameter. InvalidArgument: more than 2^62 bytes.
// REQUIRES: CheckExtents.
absl::StatusOr<int64_t> TensorBytes(const compiler::v1::Parameter& parameter,
                                    absl::Span<const tuner::v1::Extent> extents);

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_KERNELS_H_
