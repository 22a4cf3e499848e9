// SPDX-License-Identifier: Apache-2.0
//
// Reads what a compiler wrote and believes none of it unseen: descriptions and manifests in the
// JSON form of manifest.proto. Pure functions, any thread.
#ifndef PHOBOS_DAEMON_COMPILE_MANIFEST_H_
#define PHOBOS_DAEMON_COMPILE_MANIFEST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"

namespace phobos::compile {

// The largest Manifest.format this reader knows.
inline constexpr int kManifestFormat = 1;

// Internal: no such text, or one that contradicts itself; says where.
absl::StatusOr<compiler::v1::KernelDescription> ParseDescription(const std::string& json);

// What a run was asked for.
struct Asked {
  const compiler::v1::KernelDescription& description;
  std::string fingerprint;
  std::string chip;
};

// Only what holds for the whole run; each variant is judged by CheckVariant. FailedPrecondition: a
// larger format, or another compiler than the one this daemon asked for its fingerprint, with the
// remedy. Internal: no manifest, or one of something else.
absl::StatusOr<compiler::v1::Manifest> ParseManifest(const std::string& json, const Asked& asked);

// Internal: the variant's outcome makes no sense. REQUIRES: its index is in the description.
absl::Status CheckVariant(const compiler::v1::Variant& variant,
                          const compiler::v1::KernelDescription& description);

// "so" of "add-0.so"; empty when the store keeps no such files.
std::string ArtifactExtension(const std::string& file);

}  // namespace phobos::compile

#endif  // PHOBOS_DAEMON_COMPILE_MANIFEST_H_
