// SPDX-License-Identifier: Apache-2.0
#include "daemon/compile/memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "daemon/compile/manifest.h"

namespace phobos::compile {
namespace {

// Kinds of facts in the store. They are on disk: never given another meaning.
constexpr char kDescription[] = "description";
constexpr char kVariant[] = "variant";

// The parts of a name, each with its length before it, so that no two lists of parts give one name.
std::string Name(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) absl::StrAppend(&text, part.size(), ":", part);
  return Sha256Hex(text);
}

// A setting as text; equal exactly when name, type and value are.
std::string SettingText(const compiler::v1::Constant& constant) {
  return constant.SerializeAsString();
}

// Whether the outcome quotes the text that it was made from: its lines, its file, its comments.
bool NamesPlaces(const compiler::v1::Variant& variant) {
  return !variant.reason().empty() || !variant.race_detail().empty() || variant.has_recording();
}

}  // namespace

std::string Memory::DescriptionName(const Source& source) const {
  return Name({Sha256Hex(source.text), source.kernel, fingerprint_});
}

std::string Memory::VariantName(const Source* source,
                                const compiler::v1::KernelDescription& description, int index,
                                const std::string& chip) const {
  std::vector<std::string> parts = {description.source_digest(), fingerprint_, chip};
  for (const auto& constant : description.variants(index).settings()) {
    parts.push_back(SettingText(constant));
  }
  if (source != nullptr) parts.push_back(Name({source->file_name, source->text}));
  return Name(parts);
}

std::optional<compiler::v1::KernelDescription> Memory::RecallDescription(const Source& source) {
  const auto fact = store_.Recall(kDescription, DescriptionName(source));
  compiler::v1::KernelDescription description;
  if (!fact.ok() || !fact->has_value() || !description.ParseFromString(**fact)) return std::nullopt;
  return description;
}

void Memory::RememberDescription(const Source& source,
                                 const compiler::v1::KernelDescription& description) {
  store_.Remember(kDescription, DescriptionName(source), description.SerializeAsString())
      .IgnoreError();
}

std::optional<compiler::v1::Manifest> Memory::RecallManifest(const std::string& name) {
  const auto fact = store_.Recall(kVariant, name);
  compiler::v1::Manifest manifest;
  if (!fact.ok() || !fact->has_value() || !manifest.ParseFromString(**fact)) return std::nullopt;
  if (manifest.variants_size() != 1) return std::nullopt;
  return manifest;
}

std::optional<Memory::Known> Memory::RecallVariant(
    const Source& source, const compiler::v1::KernelDescription& description, int index,
    const std::string& chip, cache::ArtifactStore& artifacts) {
  std::optional<compiler::v1::Manifest> fact =
      RecallManifest(VariantName(nullptr, description, index, chip));
  if (!fact.has_value()) {
    fact = RecallManifest(VariantName(&source, description, index, chip));
  }
  if (!fact.has_value()) return std::nullopt;
  const compiler::v1::Manifest& manifest = *fact;
  Known known;
  known.variant.variant = manifest.variants(0);
  // The same settings may stand at another place in a space that was written differently.
  known.variant.variant.set_index(index);
  known.slots.assign(manifest.slots().begin(), manifest.slots().end());
  if (known.variant.variant.status() != compiler::v1::VARIANT_STATUS_COMPILED) return known;
  const auto find = [&](const compiler::v1::Artifact& artifact, std::string& path) {
    const auto found = artifacts.Find(artifact.digest(), ArtifactExtension(artifact.file()));
    if (found.ok()) path = *found;
    return found.ok();
  };
  const compiler::v1::Variant& variant = known.variant.variant;
  if (!find(variant.artifact(), known.variant.artifact_path)) return std::nullopt;
  const bool is_recorded = variant.recording().has_artifact();
  if (is_recorded && !find(variant.recording().artifact(), known.variant.recording_path)) {
    return std::nullopt;
  }
  return known;
}

void Memory::RememberVariant(const Source& source,
                             const compiler::v1::KernelDescription& description,
                             const std::string& chip, const compiler::v1::Variant& variant,
                             const std::vector<std::string>& slots) {
  compiler::v1::Manifest manifest;
  manifest.set_format(kManifestFormat);
  *manifest.add_variants() = variant;
  manifest.mutable_slots()->Add(slots.begin(), slots.end());
  const Source* named = NamesPlaces(variant) ? &source : nullptr;
  store_
      .Remember(kVariant, VariantName(named, description, variant.index(), chip),
                manifest.SerializeAsString())
      .IgnoreError();
}

}  // namespace phobos::compile
