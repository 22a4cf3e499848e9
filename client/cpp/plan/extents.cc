// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/plan/extents.h"

#include <algorithm>

namespace phobos {

std::vector<int64_t> KeyOf(const KernelDescription& description,
                           const std::vector<int64_t>& extents) {
  std::vector<int64_t> key;
  for (const std::string& name : description.key) {
    for (size_t i = 0; i < extents.size(); ++i) {
      if (description.extents[i] == name) key.push_back(extents[i]);
    }
  }
  return key;
}

std::vector<Extent> NamedExtents(const KernelDescription& description,
                                 const std::vector<int64_t>& extents) {
  std::vector<Extent> named;
  for (size_t i = 0; i < extents.size(); ++i) named.push_back({description.extents[i], extents[i]});
  return named;
}

std::vector<Extent> RecordedExtents(const Result& result) {
  for (const VariantResult& variant : result.variants) {
    if (variant.index == result.winner && variant.race_recorded) return result.extents;
  }
  return {};
}

std::string RemarkOnExtents(const KernelDescription& description,
                            const std::vector<int64_t>& extents,
                            const std::vector<Extent>& recorded) {
  const auto is_recorded = [&](const Extent& extent) {
    for (size_t i = 0; i < extents.size(); ++i) {
      if (description.extents[i] == extent.name) return extents[i] == extent.value;
    }
    return true;
  };
  if (std::all_of(recorded.begin(), recorded.end(), is_recorded)) return "";
  std::string where;
  for (const Extent& extent : recorded) {
    where += (where.empty() ? "" : ", ") + extent.name + "=" + std::to_string(extent.value);
  }
  return "the variant that is launched is not proved free of races, the recording that saw none "
         "was made at " +
         where +
         ", and launches at other extents take it too; tune them with force, or make those "
         "extents a part of its key";
}

}  // namespace phobos
