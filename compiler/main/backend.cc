// SPDX-License-Identifier: Apache-2.0
#include "compiler/main/backend.h"

#include <cstdint>
#include <utility>

#include "base/concat.h"
#include "base/digest.h"
#include "base/status_macros.h"

namespace phobos::compiler {
namespace {

absl::StatusOr<Code> Generate(const ir::Function& function, const host::Chip& chip) {
  ASSIGN_OR_RETURN(host::Artifact compiled, host::Compile(function, chip));
  Code code;
  code.artifact.set_entry(compiled.entry);
  code.artifact.set_scratch_bytes(compiled.scratch_bytes);
  for (const std::string& feature : chip.features) code.artifact.add_cpu_features(feature);
  code.bytes = std::move(compiled.shared_object);
  return code;
}

absl::StatusOr<Code> Generate(const ir::Function& function, const nvptx::Chip& chip) {
  ASSIGN_OR_RETURN(nvptx::Artifact compiled, nvptx::Compile(function, chip));
  Code code;
  code.artifact.set_entry(compiled.entry);
  code.artifact.set_threads(compiled.threads);
  code.artifact.set_shared_memory_bytes(compiled.shared_memory_bytes);
  code.artifact.set_dynamic_shared_memory_bytes(compiled.dynamic_shared_memory_bytes);
  code.bytes = std::move(compiled.ptx);
  return code;
}

}  // namespace

absl::StatusOr<Chip> ResolveChip(const std::string& name) {
  if (name.rfind("sm_", 0) == 0) {
    ASSIGN_OR_RETURN(nvptx::Chip chip, nvptx::ResolveChip(name));
    return chip;
  }
  ASSIGN_OR_RETURN(host::Chip chip, host::ResolveChip(name));
  return chip;
}

const std::string& NameOf(const Chip& chip) {
  return std::visit([](const auto& c) -> const std::string& { return c.name; }, chip);
}

absl::StatusOr<Code> GenerateCode(const ir::Function& function, const Chip& chip) {
  ASSIGN_OR_RETURN(Code code,
                   std::visit([&](const auto& c) { return Generate(function, c); }, chip));
  code.artifact.set_digest(Sha256Hex(code.bytes));
  code.artifact.set_size_bytes(static_cast<int64_t>(code.bytes.size()));
  return code;
}

std::string BackendFingerprint() { return Concat(host::Fingerprint(), ", ", nvptx::Fingerprint()); }

}  // namespace phobos::compiler
