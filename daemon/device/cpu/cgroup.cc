// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cpu/cgroup.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace phobos::device {
namespace {

// How the files of a version are called.
struct Files {
  const char* folder;
  const char* limit;
  const char* usage;
  const char* idle;  // name in memory.stat: pages of files that are given up first
};

constexpr Files kVersion1 = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                             "/memory.usage_in_bytes", "total_inactive_file"};
constexpr Files kVersion2 = {"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};

// Nothing: no such file, or no number ("max").
std::optional<int64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  int64_t number = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &number) || number < 0) return std::nullopt;
  return number;
}

int64_t ReadStatistic(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  std::string name;
  int64_t value = 0;
  while (file >> name >> value) {
    if (name == wanted) return value;
  }
  return 0;
}

void Narrow(const std::string& group, const Files& files, GroupMemory& memory) {
  const std::optional<int64_t> limit = ReadNumber(group + files.limit);
  const std::optional<int64_t> usage = ReadNumber(group + files.usage);
  if (!limit.has_value() || !usage.has_value()) return;
  const int64_t used = *usage - ReadStatistic(group + "/memory.stat", files.idle);
  memory.limit_bytes = std::min(memory.limit_bytes, *limit);
  memory.available_bytes =
      std::min(memory.available_bytes, std::max<int64_t>(*limit - std::max<int64_t>(used, 0), 0));
}

// The group and all above it. In a container the path may be the machine's and the folder the
// container's: then only the latter's root is there to be read.
void NarrowAll(const std::string& root, const Files& files, std::string path, GroupMemory& memory) {
  while (!path.empty() && path != "/") {
    Narrow(absl::StrCat(root, files.folder, path), files, memory);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  Narrow(absl::StrCat(root, files.folder), files, memory);
}

}  // namespace

GroupMemory ReadGroupMemory(const std::string& root) {
  GroupMemory memory;
  std::ifstream file(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    // "4:memory:/path"; version 2: "0::/path".
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (parts[0] == "0" && parts[1].empty()) NarrowAll(root, kVersion2, parts[2], memory);
    if (absl::c_linear_search(controllers, "memory")) NarrowAll(root, kVersion1, parts[2], memory);
  }
  return memory;
}

}  // namespace phobos::device
