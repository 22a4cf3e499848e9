// SPDX-License-Identifier: Apache-2.0
//
// libgcc's unwinder, as Debian builds it, asks _dl_find_object for an object's unwind tables, which
// glibc has since 2.35 only. This one, seen by libphobos.so alone, gives the same answer by means
// that older ones have too: the library must load where glibc is 2.34.
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>

namespace {

struct Search {
  uintptr_t address;
  dl_find_object* result;
};

// Looks at one loaded object; 1 ends the walk.
int Look(dl_phdr_info* object, size_t, void* argument) {
  const Search& search = *static_cast<Search*>(argument);
  const ElfW(Phdr)* tables = nullptr;
  bool is_inside = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) tables = &part;
    if (part.p_type != PT_LOAD) continue;
    if (search.address < begin || search.address >= begin + part.p_memsz) continue;
    is_inside = true;
    search.result->dlfo_map_start = reinterpret_cast<void*>(begin);
    search.result->dlfo_map_end = reinterpret_cast<void*>(begin + part.p_memsz);
  }
  if (!is_inside) return 0;
  if (tables == nullptr) return -1;
  search.result->dlfo_flags = 0;
  search.result->dlfo_link_map = nullptr;
  search.result->dlfo_eh_frame = reinterpret_cast<void*>(object->dlpi_addr + tables->p_vaddr);
  return 1;
}

}  // namespace

extern "C" int _dl_find_object(void* address, dl_find_object* result) noexcept {
  Search search = {reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(&Look, &search) == 1 ? 0 : -1;
}
