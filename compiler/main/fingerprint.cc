// SPDX-License-Identifier: Apache-2.0
#include "compiler/main/fingerprint.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "base/concat.h"
#include "compiler/main/backend.h"

namespace phobos::compiler {
namespace {

constexpr char kVersion[] = "0.1.0";
constexpr size_t kBuildIdBytes = 8;  // of the 20 that there are

constexpr size_t Padded(size_t size) { return (size + 3) / 4 * 4; }

// The build id among the notes of one segment, or empty.
std::string BuildIdIn(const char* notes, size_t size) {
  size_t offset = 0;
  while (offset + sizeof(ElfW(Nhdr)) <= size) {
    ElfW(Nhdr) header;
    memcpy(&header, notes + offset, sizeof(header));
    const size_t name = offset + sizeof(header);
    const size_t description = name + Padded(header.n_namesz);
    const size_t end = description + Padded(header.n_descsz);
    if (end > size) return "";
    const bool is_build_id = header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
                             memcmp(notes + name, "GNU", 4) == 0;
    if (is_build_id) return std::string(notes + description, header.n_descsz);
    offset = end;
  }
  return "";
}

// Called by dl_iterate_phdr for each loaded object; the executable is the first.
int FindBuildId(dl_phdr_info* object, size_t, void* build_id) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const std::string found = BuildIdIn(
        reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz);
    if (!found.empty()) *static_cast<std::string*>(build_id) = found;
  }
  return 1;
}

}  // namespace

std::string CompilerFingerprint() {
  std::string build_id;
  dl_iterate_phdr(FindBuildId, &build_id);
  const std::string build =
      build_id.empty() ? "unknown" : absl::BytesToHexString(build_id.substr(0, kBuildIdBytes));
  return Concat("phobos-compile ", kVersion, " (", BackendFingerprint(), ", build ", build, ")");
}

}  // namespace phobos::compiler
