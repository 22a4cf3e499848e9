// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cpu/machine.h"

#include <cpuid.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/device/cpu/cgroup.h"

namespace phobos::device {
namespace {

constexpr int64_t kMostFlushBytes = int64_t{256} << 20;

// The first line, without its end; empty when there is no such file.
std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "32768K" -> bytes.
std::optional<int64_t> ParseSize(absl::string_view text) {
  int64_t unit = 1;
  if (absl::ConsumeSuffix(&text, "K")) unit = int64_t{1} << 10;
  if (absl::ConsumeSuffix(&text, "M")) unit = int64_t{1} << 20;
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number <= 0) return std::nullopt;
  return number * unit;
}

}  // namespace

std::string ProcessorName(const MachineRoot& root) {
  std::ifstream file(root.path + "/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (parts.size() == 2 && absl::StripAsciiWhitespace(parts[0]) == "model name") {
      // Some vendors fill the name with spaces.
      return absl::StrJoin(absl::StrSplit(parts[1], ' ', absl::SkipEmpty()), " ");
    }
  }
  return "unknown processor";
}

std::optional<int64_t> LastLevelCacheBytes(const MachineRoot& root) {
  std::optional<int64_t> bytes;
  int highest = 0;
  for (int index = 0;; ++index) {
    const std::string folder =
        absl::StrCat(root.path, "/sys/devices/system/cpu/cpu0/cache/index", index, "/");
    int level = 0;
    if (!absl::SimpleAtoi(FirstLine(folder + "level"), &level)) return bytes;
    if (FirstLine(folder + "type") == "Instruction" || level <= highest) continue;
    const std::optional<int64_t> size = ParseSize(FirstLine(folder + "size"));
    if (!size.has_value()) continue;
    highest = level;
    bytes = size;
  }
}

std::optional<int64_t> LastLevelCacheBytesByCpuid() {
  // Leaf 4 (Intel) and 0x8000001D (AMD) have one form: a subleaf a cache.
  for (const unsigned leaf : {4u, 0x8000001Du}) {
    std::optional<int64_t> bytes;
    unsigned highest = 0;
    for (unsigned subleaf = 0; subleaf < 16; ++subleaf) {
      unsigned a = 0, b = 0, c = 0, d = 0;
      if (__get_cpuid_count(leaf, subleaf, &a, &b, &c, &d) == 0) break;
      const unsigned type = a & 31, level = (a >> 5) & 7;
      constexpr unsigned kNone = 0, kInstruction = 2;
      if (type == kNone) break;
      if (type == kInstruction || level <= highest) continue;
      highest = level;
      bytes =
          int64_t{(b >> 22) + 1} * (((b >> 12) & 1023) + 1) * ((b & 4095) + 1) * (int64_t{c} + 1);
    }
    if (bytes.has_value()) return bytes;
  }
  return std::nullopt;
}

absl::StatusOr<Memory> ReadMemory(const MachineRoot& root) {
  std::ifstream file(root.path + "/proc/meminfo");
  Memory memory;
  std::string name, unit;
  int64_t kilobytes = 0;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    words >> name >> kilobytes;
    if (name == "MemTotal:") memory.total_bytes = kilobytes << 10;
    if (name == "MemAvailable:") memory.available_bytes = kilobytes << 10;
  }
  if (memory.total_bytes <= 0 || memory.available_bytes <= 0) {
    return absl::UnavailableError("/proc/meminfo does not tell how much memory there is");
  }
  const GroupMemory group = ReadGroupMemory(root.path);
  memory.total_bytes = std::min(memory.total_bytes, group.limit_bytes);
  memory.available_bytes = std::min(memory.available_bytes, group.available_bytes);
  return memory;
}

absl::StatusOr<std::string> NativeChip() {
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v4) return "x86-64-v4";
  if (v3) return "x86-64-v3";
  return absl::UnavailableError(
      "the host chip needs a processor of level x86-64-v3 (AVX2, BMI, FMA); this one has less");
}

int64_t FlushBytes(int64_t cache_bytes, int64_t block_bytes) {
  const int64_t bytes = std::min(2 * cache_bytes, kMostFlushBytes);
  return (bytes + block_bytes - 1) / block_bytes * block_bytes;
}

}  // namespace phobos::device
