// SPDX-License-Identifier: Apache-2.0
#include "daemon/compile/manifest.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/status_macros.h"

namespace phobos::compile {
namespace {

using compiler::v1::Artifact;
using compiler::v1::KernelDescription;
using compiler::v1::Manifest;
using compiler::v1::Parameter;
using compiler::v1::Variant;

constexpr int kMostRank = 4;

absl::Status Broken(const std::string& what, const std::string& why) {
  return absl::InternalError(absl::StrCat("the compiler's ", what, " cannot be used: ", why));
}

absl::Status FromJson(const std::string& json, const std::string& what,
                      google::protobuf::Message& message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &message, options);
  if (status.ok()) return absl::OkStatus();
  return Broken(what, absl::StrCat("it is no JSON of its kind: ", status.ToString()));
}

absl::Status CheckParameter(const Parameter& parameter, const std::set<std::string>& extents) {
  if (parameter.dtype() == compiler::v1::DTYPE_UNSPECIFIED ||
      !compiler::v1::DType_IsValid(parameter.dtype())) {
    return Broken("description",
                  absl::StrCat("parameter ", parameter.name(), " is of an unknown type ",
                               static_cast<int>(parameter.dtype()), "; update this daemon"));
  }
  if (!parameter.is_tensor()) return absl::OkStatus();
  if (parameter.dims_size() < 1 || parameter.dims_size() > kMostRank) {
    return Broken("description",
                  absl::StrCat("tensor ", parameter.name(), " of rank ", parameter.dims_size()));
  }
  for (const compiler::v1::Dimension& dimension : parameter.dims()) {
    const bool known = dimension.extent().empty() ? dimension.literal() >= 0
                                                  : extents.count(dimension.extent()) > 0;
    if (!known) {
      return Broken("description", absl::StrCat("tensor ", parameter.name(), " has an extent \"",
                                                dimension.extent(), "\""));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDescription(const KernelDescription& description) {
  if (description.kernel().empty()) return Broken("description", "it names no kernel");
  if (Sha256Hex(description.canonical_source()) != description.source_digest()) {
    return Broken("description", "source_digest is not that of canonical_source");
  }
  const std::set<std::string> extents(description.extents().begin(), description.extents().end());
  for (const std::string& name : description.key()) {
    if (extents.count(name) == 0) {
      return Broken("description", absl::StrCat("the key names no extent: ", name));
    }
  }
  std::set<std::string> parameters;
  for (const Parameter& parameter : description.parameters()) {
    if (parameter.name().empty() || !parameters.insert(parameter.name()).second) {
      return Broken("description", absl::StrCat("two parameters \"", parameter.name(), "\""));
    }
    RETURN_IF_ERROR(CheckParameter(parameter, extents));
  }
  if (description.variants().empty()) return Broken("description", "it has no variant");
  for (int i = 0; i < description.variants_size(); ++i) {
    if (description.variants(i).index() == i) continue;
    return Broken("description", absl::StrCat("variant ", description.variants(i).index(),
                                              " stands at place ", i));
  }
  return absl::OkStatus();
}

// A slot too many, too few or at another place would hand kernels wrong addresses.
absl::Status CheckSlots(const Manifest& manifest, const KernelDescription& description) {
  std::vector<std::string> expected;
  for (const Parameter& parameter : description.parameters()) expected.push_back(parameter.name());
  for (const std::string& name : description.extents()) {
    expected.push_back(absl::StrCat("extent:", name));
  }
  const bool same = std::equal(manifest.slots().begin(), manifest.slots().end(), expected.begin(),
                               expected.end());
  if (same) return absl::OkStatus();
  return Broken("manifest", absl::StrCat("its slots are \"", absl::StrJoin(manifest.slots(), ", "),
                                         "\" instead of \"", absl::StrJoin(expected, ", "), "\""));
}

bool SameSettings(const Variant& variant, const compiler::v1::VariantSettings& settings) {
  return std::equal(
      variant.settings().begin(), variant.settings().end(), settings.settings().begin(),
      settings.settings().end(),
      [](const auto& a, const auto& b) { return a.SerializeAsString() == b.SerializeAsString(); });
}

absl::Status CheckArtifact(const Artifact& artifact) {
  const std::string& file = artifact.file();
  if (file.empty() || absl::StrContains(file, "/") || file[0] == '.') {
    return Broken("manifest", absl::StrCat("an artifact file \"", file, "\""));
  }
  if (ArtifactExtension(file).empty()) {
    return Broken("manifest", absl::StrCat("an artifact of an unknown kind, ", file));
  }
  const bool is_digest =
      artifact.digest().size() == 64 &&
      artifact.digest().find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_digest || artifact.entry().empty() || artifact.scratch_bytes() < 0) {
    return Broken(
        "manifest",
        absl::StrCat("artifact ", file, " lacks a digest, an entry or a size of scratch memory"));
  }
  return absl::OkStatus();
}

// A shadow of no tensor would be memory of no size.
absl::Status CheckRecording(const compiler::v1::Recording& recording,
                            const KernelDescription& description) {
  if (!recording.has_artifact()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckArtifact(recording.artifact()));
  for (const compiler::v1::Shadow& shadow : recording.shadows()) {
    const auto& parameters = description.parameters();
    const bool is_tensor =
        std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& parameter) {
          return parameter.is_tensor() && parameter.name() == shadow.parameter();
        });
    if (is_tensor && compiler::v1::Shadow::Content_IsValid(shadow.content())) continue;
    return Broken("manifest", absl::StrCat("a shadow of \"", shadow.parameter(), "\" with content ",
                                           static_cast<int>(shadow.content())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KernelDescription> ParseDescription(const std::string& json) {
  KernelDescription description;
  RETURN_IF_ERROR(FromJson(json, "description", description));
  RETURN_IF_ERROR(CheckDescription(description));
  return description;
}

absl::StatusOr<Manifest> ParseManifest(const std::string& json, const Asked& asked) {
  Manifest manifest;
  RETURN_IF_ERROR(FromJson(json, "manifest", manifest));
  if (manifest.format() > kManifestFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat("the compiler writes manifests of format ", manifest.format(),
                     ", this daemon reads up to ", kManifestFormat, ": update it"));
  }
  if (manifest.format() < 1) return Broken("manifest", "it has no format");
  if (manifest.compiler_fingerprint() != asked.fingerprint) {
    return absl::FailedPreconditionError(
        absl::StrCat("the compiler is another one (", manifest.compiler_fingerprint(),
                     ") than when this daemon started (", asked.fingerprint, "): restart it"));
  }
  if (manifest.chip() != asked.chip) {
    return Broken("manifest",
                  absl::StrCat("it is for chip ", manifest.chip(), " instead of ", asked.chip));
  }
  if (!manifest.races_checked()) return Broken("manifest", "races were not checked");
  RETURN_IF_ERROR(CheckSlots(manifest, asked.description));
  std::set<int> seen;
  for (const Variant& variant : manifest.variants()) {
    const bool known = variant.index() >= 0 && variant.index() < asked.description.variants_size();
    if (!known || !seen.insert(variant.index()).second) {
      return Broken("manifest", absl::StrCat("variant ", variant.index(),
                                             known ? " stands there twice" : " is none"));
    }
  }
  return manifest;
}

absl::Status CheckVariant(const Variant& variant, const KernelDescription& description) {
  if (!SameSettings(variant, description.variants(variant.index()))) {
    return Broken("manifest", absl::StrCat("variant ", variant.index(), " has other settings"));
  }
  if (variant.status() != compiler::v1::VARIANT_STATUS_COMPILED) return absl::OkStatus();
  RETURN_IF_ERROR(CheckArtifact(variant.artifact()));
  return CheckRecording(variant.recording(), description);
}

std::string ArtifactExtension(const std::string& file) {
  const size_t dot = file.rfind('.');
  if (dot == std::string::npos) return std::string();
  const std::string extension = file.substr(dot + 1);
  const bool kept = extension == "so" || extension == "cubin" || extension == "ptx";
  return kept ? extension : std::string();
}

}  // namespace phobos::compile
