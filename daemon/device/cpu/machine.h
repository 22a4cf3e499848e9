// SPDX-License-Identifier: Apache-2.0
//
// What this machine's processor and memory are, as the host chip's device reports them, and what
// its caches need to be flushed. Read from /proc and /sys, whose roots a test can give. Pure but
// for those reads; any thread.
#ifndef PHOBOS_DAEMON_DEVICE_CPU_MACHINE_H_
#define PHOBOS_DAEMON_DEVICE_CPU_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace phobos::device {

// Where to read: "" for the real machine; else a folder with proc/ and sys/ in it.
struct MachineRoot {
  std::string path;
};

// As the system names the processor: "AMD EPYC"; "unknown processor" when it does not say.
std::string ProcessorName(const MachineRoot& root);

// Bytes of the last-level cache as sysfs describes the first processor; nullopt when it does not.
std::optional<int64_t> LastLevelCacheBytes(const MachineRoot& root);

// The same by CPUID's cache leaves; nullopt when the processor has none.
std::optional<int64_t> LastLevelCacheBytesByCpuid();

// Bytes of memory: all of it, and what a new job can have without swapping; where control groups
// allow less, that. Unavailable: /proc/meminfo cannot be read.
struct Memory {
  int64_t total_bytes = 0;
  int64_t available_bytes = 0;
};
absl::StatusOr<Memory> ReadMemory(const MachineRoot& root);

// "x86-64-v4" or "x86-64-v3". Unavailable: the processor has less.
absl::StatusOr<std::string> NativeChip();

// Size of the buffer whose writing flushes a cache of that size: twice the cache, 256 MiB at most,
// rounded up to whole blocks.
int64_t FlushBytes(int64_t cache_bytes, int64_t block_bytes);

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CPU_MACHINE_H_
