// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/host/chip.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

namespace phobos::compiler::host {
namespace {

constexpr char kLevel3[] = "x86-64-v3";
constexpr char kLevel4[] = "x86-64-v4";

// The features of x86-64-v3 (32-byte vectors) or v4 (64) whose instructions generated code uses,
// beyond x86-64 itself.
std::vector<std::string> LevelFeatures(int vector_bytes) {
  std::vector<std::string> features = {"avx",    "avx2",   "bmi",   "bmi2",   "f16c",
                                       "fma",    "lzcnt",  "movbe", "popcnt", "sse3",
                                       "sse4.1", "sse4.2", "ssse3"};
  if (vector_bytes == 64) {
    for (const char* name : {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}) {
      features.push_back(name);
    }
  }
  std::sort(features.begin(), features.end());
  return features;
}

// Whether LLVM picks instructions of the feature for generated code when a CPU has it. The rest of
// a CPU's features (system calls, encryption, caches) change nothing and must not keep an artifact
// from running.
bool ChangesCode(llvm::StringRef feature) {
  static constexpr llvm::StringLiteral kOthers[] = {
      "adx", "crc32", "gfni", "pclmul", "vpclmulqdq", "sse4a", "fma4", "xop", "tbm", "prfchw"};
  if (feature.starts_with("avx")) return true;
  const std::vector<std::string> level = LevelFeatures(64);
  return std::find(level.begin(), level.end(), feature) != level.end() ||
         llvm::is_contained(kOthers, feature);
}

bool HasAll(const llvm::StringMap<bool>& have, const std::vector<std::string>& wanted) {
  for (const std::string& name : wanted) {
    const auto found = have.find(name);
    if (found == have.end() || !found->second) return false;
  }
  return true;
}

absl::StatusOr<std::string> NativeLevel() {
  const llvm::StringMap<bool> have = llvm::sys::getHostCPUFeatures();
  if (HasAll(have, LevelFeatures(64))) return std::string(kLevel4);
  std::vector<std::string> missing;
  for (const std::string& name : LevelFeatures(32)) {
    if (!HasAll(have, {name})) missing.push_back(name);
  }
  if (missing.empty()) return std::string(kLevel3);
  return absl::InvalidArgumentError(
      absl::StrCat("this machine is below x86-64-v3, the least that the host chip needs; it lacks ",
                   absl::StrJoin(missing, ", ")));
}

// LLVM's features of a CPU or level, with what they imply.
llvm::StringMap<bool> FeaturesOf(llvm::StringRef cpu) {
  llvm::SmallVector<llvm::StringRef, 64> named;
  llvm::X86::getFeaturesForCPU(cpu, named);
  llvm::StringMap<bool> features;
  for (llvm::StringRef feature : named) {
    features[feature] = true;
    llvm::X86::updateImpliedFeatures(feature, /*Enabled=*/true, features);
  }
  return features;
}

// Names of CPUs and levels that are at least x86-64-v3.
std::vector<std::string> KnownCpus() {
  llvm::SmallVector<llvm::StringRef, 64> all;
  llvm::X86::fillValidCPUArchList(all, /*Only64Bit=*/true);
  std::vector<std::string> known;
  for (llvm::StringRef name : all) {
    if (HasAll(FeaturesOf(name), LevelFeatures(32))) known.push_back(name.str());
  }
  std::sort(known.begin(), known.end());
  return known;
}

}  // namespace

absl::StatusOr<Chip> ResolveChip(std::string_view name) {
  std::string resolved(name);
  if (name == "native") {
    ASSIGN_OR_RETURN(resolved, NativeLevel());
  }
  const std::vector<std::string> known = KnownCpus();
  if (std::find(known.begin(), known.end(), resolved) == known.end()) {
    return absl::InvalidArgumentError(absl::StrCat("unknown host chip \"", resolved,
                                                   "\"; choose native or one of ",
                                                   absl::StrJoin(known, ", ")));
  }
  const llvm::StringMap<bool> features = FeaturesOf(resolved);
  Chip chip;
  chip.name = resolved;
  for (const auto& [feature, is_on] : features) {
    if (is_on && ChangesCode(feature)) chip.features.push_back(feature.str());
  }
  std::sort(chip.features.begin(), chip.features.end());
  chip.vector_bytes = HasAll(features, LevelFeatures(64)) ? 64 : 32;
  return chip;
}

}  // namespace phobos::compiler::host
