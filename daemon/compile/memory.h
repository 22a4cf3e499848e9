// SPDX-License-Identifier: Apache-2.0
//
// What the compiler said earlier, kept in the ResultStore as facts: descriptions by text, outcomes
// by variant. A fact that cannot be read or written is a fact not known; the store itself tells the
// operator why. Any thread.
#ifndef PHOBOS_DAEMON_COMPILE_MEMORY_H_
#define PHOBOS_DAEMON_COMPILE_MEMORY_H_

#include <optional>
#include <string>
#include <vector>

#include "cache/artifact_store.h"
#include "cache/result_store.h"
#include "daemon/compile/runner.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"

namespace phobos::compile {

class Memory {
 public:
  // `store` must outlive this. `fingerprint`: of the compiler; what another one said is not known.
  Memory(cache::ResultStore& store, std::string fingerprint)
      : store_(store), fingerprint_(std::move(fingerprint)) {}

  // By the whole text and the kernel's name.
  std::optional<compiler::v1::KernelDescription> RecallDescription(const Source& source);
  void RememberDescription(const Source& source,
                           const compiler::v1::KernelDescription& description);

  // An outcome with the slots that go with it.
  struct Known {
    CompiledVariant variant;
    std::vector<std::string> slots;
  };
  // nullopt also when an artifact of it is no longer in the store, and where what was said names
  // places of another text or file than `source`.
  std::optional<Known> RecallVariant(const Source& source,
                                     const compiler::v1::KernelDescription& description, int index,
                                     const std::string& chip, cache::ArtifactStore& artifacts);
  // `slots` of the manifest that the variant came in. `variant` may be a failure: it is not tried
  // again either.
  void RememberVariant(const Source& source, const compiler::v1::KernelDescription& description,
                       const std::string& chip, const compiler::v1::Variant& variant,
                       const std::vector<std::string>& slots);

 private:
  // Names of facts: digests of all that the fact hangs on.
  std::string DescriptionName(const Source& source) const;
  // `source`: of which the outcome names places; null: it names none.
  std::string VariantName(const Source* source, const compiler::v1::KernelDescription& description,
                          int index, const std::string& chip) const;
  std::optional<compiler::v1::Manifest> RecallManifest(const std::string& name);

  cache::ResultStore& store_;
  const std::string fingerprint_;
};

}  // namespace phobos::compile

#endif  // PHOBOS_DAEMON_COMPILE_MEMORY_H_
