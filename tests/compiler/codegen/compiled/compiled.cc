// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/codegen/compiled/compiled.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/verifier.h"
#include "tests/compiler/codegen/compiled/emulated.h"
#include "tests/compiler/codegen/compiled/ulp.h"
#include "tests/compiler/ir/text/round_trip.h"

namespace phobos::compiler::testing {
namespace {

constexpr unsigned char kCanary = 0xa5;

// Bytes between two pages that cannot be touched, against one of them, or as near to the one behind
// as their alignment lets them.
class GuardedBytes {
 public:
  GuardedBytes(size_t size, size_t alignment, Against against)
      : size_(size), page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    room_ = (size + page_ - 1) / page_ * page_ + page_;
    map_ = static_cast<unsigned char*>(mmap(nullptr, room_ + 2 * page_, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (map_ == MAP_FAILED) abort();
    mprotect(map_, page_, PROT_NONE);
    mprotect(map_ + page_ + room_, page_, PROT_NONE);
    std::memset(map_ + page_, kCanary, room_);
    data_ = against == Against::kPageBefore
                ? map_ + page_
                : map_ + page_ + room_ - (size + alignment - 1) / alignment * alignment;
  }
  ~GuardedBytes() { munmap(map_, room_ + 2 * page_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  unsigned char* data() const { return data_; }
  bool IsIntactAround() const {
    for (const unsigned char* p = map_ + page_; p < map_ + page_ + room_; ++p) {
      if ((p < data_ || p >= data_ + size_) && *p != kCanary) return false;
    }
    return true;
  }

 private:
  const size_t size_;
  const size_t page_;
  size_t room_;
  unsigned char* map_;
  unsigned char* data_;
};

}  // namespace

std::vector<host::Chip> ChipsUnderTest() {
  std::vector<host::Chip> chips = {*host::ResolveChip("native")};
  if (getenv("PHOBOS_TEST_EVERY_CHIP") != nullptr && chips[0].name != "x86-64-v3") {
    chips.push_back(*host::ResolveChip("x86-64-v3"));
  }
  return chips;
}

absl::StatusOr<std::unique_ptr<Compiled>> Compiled::Make(const ir::Function& function,
                                                         const host::Chip& chip) {
  RETURN_IF_ERROR(ir::Verify(function));
  ASSIGN_OR_RETURN(host::Artifact artifact, host::Compile(function, chip));
  static std::atomic<int> next{0};
  const std::string path =
      absl::StrCat(getenv("TEST_TMPDIR"), "/kernel_", getpid(), "_", next++, ".so");
  std::ofstream(path, std::ios::binary) << artifact.shared_object;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(path.c_str());
  if (library == nullptr) return absl::InternalError(absl::StrCat("dlopen: ", dlerror()));
  const auto entry = reinterpret_cast<Entry>(dlsym(library, artifact.entry.c_str()));
  if (entry == nullptr) return absl::InternalError(absl::StrCat("dlsym: ", dlerror()));
  return std::unique_ptr<Compiled>(new Compiled(function, std::move(artifact), library, entry));
}

Compiled::~Compiled() { dlclose(library_); }

absl::StatusOr<std::vector<Argument>> RunGuarded(
    const ir::Function& function, const Launch& launch, Against against,
    const std::function<absl::Status(const uint64_t*)>& run) {
  std::vector<std::unique_ptr<GuardedBytes>> tensors(function.params.size());
  std::vector<uint64_t> slots;
  for (size_t p = 0; p < function.params.size(); ++p) {
    const Argument& argument = launch.arguments[p];
    const size_t bytes = static_cast<size_t>(ir::ByteSize(function.params[p].dtype));
    if (!function.params[p].is_tensor) {
      uint64_t bits = 0;
      std::memcpy(&bits, &argument.elements[0], bytes);
      slots.push_back(bits);
      continue;
    }
    tensors[p] = std::make_unique<GuardedBytes>(
        argument.elements.size() * bytes, static_cast<size_t>(function.params[p].aligned_bytes),
        against);
    for (size_t i = 0; i < argument.elements.size(); ++i) {
      std::memcpy(tensors[p]->data() + i * bytes, &argument.elements[i], bytes);
    }
    slots.push_back(reinterpret_cast<uint64_t>(tensors[p]->data()));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> extents, ExtentsOf(function, launch));
  slots.insert(slots.end(), extents.begin(), extents.end());
  RETURN_IF_ERROR(run(slots.data()));

  std::vector<Argument> result = launch.arguments;
  for (size_t p = 0; p < function.params.size(); ++p) {
    if (tensors[p] == nullptr) continue;
    const ir::DType dtype = function.params[p].dtype;
    if (!tensors[p]->IsIntactAround()) {
      return absl::InternalError(absl::StrCat("wrote beside ", function.params[p].name));
    }
    const size_t bytes = static_cast<size_t>(ir::ByteSize(dtype));
    for (size_t i = 0; i < result[p].elements.size(); ++i) {
      Bits bits = 0;
      std::memcpy(&bits, tensors[p]->data() + i * bytes, bytes);
      result[p].elements[i] = ir::IsSigned(dtype) ? FromInteger(dtype, bits) : bits;
    }
  }
  return result;
}

absl::StatusOr<std::vector<Argument>> Compiled::Run(const Launch& launch, Against against) const {
  const size_t scratch_bytes = static_cast<size_t>(artifact_.scratch_bytes);
  if (scratch_bytes % 64 != 0) return absl::InternalError("scratch_bytes is no multiple of 64");
  return RunGuarded(function_, launch, against, [&](const uint64_t* slots) {
    GuardedBytes scratch(scratch_bytes, 1, against);
    const int64_t blocks = launch.grid[0] * launch.grid[1] * launch.grid[2];
    for (int64_t first = 0; first < blocks; first += 3) {
      entry_(slots, launch.grid.data(), first, std::min(first + 3, blocks), scratch.data());
    }
    return scratch.IsIntactAround() ? absl::OkStatus()
                                    : absl::InternalError("wrote beside the scratch memory");
  });
}

void Compiled::RunRaw(const uint64_t* slots, int64_t blocks) const {
  const int64_t grid[] = {blocks, 1, 1};
  GuardedBytes scratch(static_cast<size_t>(artifact_.scratch_bytes), 1, Against::kPageBefore);
  entry_(slots, grid, 0, blocks, scratch.data());
}

namespace {

// A number of which a tile's elements are seldom a multiple; in the long tier, several.
std::vector<int32_t> ThreadsUnderTest() {
  if (getenv("PHOBOS_TEST_EVERY_CHIP") != nullptr) return {32, 96, 256};
  return {64};
}

// Where `got` is not what `want` is; what `name` got it by is said in front.
std::string Compare(const ir::Function& function, const std::string& name,
                    const absl::StatusOr<std::vector<Argument>>& got,
                    const std::vector<Argument>& want, const std::vector<double>& ulps) {
  if (!got.ok()) return absl::StrCat(name, ": ", got.status().ToString(), "\n");
  std::string text;
  for (size_t p = 0; p < want.size(); ++p) {
    const ir::DType dtype = function.params[p].dtype;
    for (size_t i = 0; i < want[p].elements.size() && text.size() < 2000; ++i) {
      const Bits g = (*got)[p].elements[i];
      const Bits w = want[p].elements[i];
      if (g == w || (IsNan(dtype, g) && IsNan(dtype, w))) continue;
      // The interpreter's is the exact one, rounded.
      if (p < ulps.size() && ulps[p] > 0 && UlpError(dtype, g, ToReal(dtype, w)) <= ulps[p] + 0.5) {
        continue;
      }
      absl::StrAppend(&text, name, ": ", function.params[p].name, "[", i, "] is 0x", absl::Hex(g),
                      ", want 0x", absl::Hex(w), "\n");
    }
  }
  return text;
}

}  // namespace

std::string Differences(const ir::Function& function, const Launch& launch,
                        const std::vector<double>& ulps, const std::vector<host::Chip>& chips) {
  const absl::StatusOr<std::vector<Argument>> want = Interpret(function, launch);
  if (!want.ok()) return absl::StrCat("interpreter: ", want.status().ToString());
  return DifferencesFrom(*want, function, launch, ulps, chips);
}

std::string DifferencesFrom(const std::vector<Argument>& want, const ir::Function& function,
                            const Launch& launch, const std::vector<double>& ulps,
                            const std::vector<host::Chip>& chips) {
  if (const absl::Status status = ir::CheckRoundTrip(function); !status.ok()) {
    return std::string(status.message());
  }
  std::string text = Compare(function, "interpreter", Interpret(function, launch), want, ulps);
  for (const host::Chip& chip : chips) {
    const auto compiled = Compiled::Make(function, chip);
    if (!compiled.ok()) return absl::StrCat(chip.name, ": ", compiled.status().ToString());
    for (Against against : {Against::kPageAfter, Against::kPageBefore}) {
      text += Compare(function, chip.name, (*compiled)->Run(launch, against), want, ulps);
    }
  }
  for (int32_t threads : ThreadsUnderTest()) {
    const std::string name = absl::StrCat(threads, " threads");
    const auto emulated = Emulated::Make(function, threads);
    if (absl::IsResourceExhausted(emulated.status())) continue;  // more than a kernel can be
    if (!emulated.ok()) return absl::StrCat(name, ": ", emulated.status().ToString());
    const auto ordered = Interpret((*emulated)->ordered(), launch);
    if (!ordered.ok()) return absl::StrCat(name, ": ", ordered.status().ToString());
    for (Against against : {Against::kPageAfter, Against::kPageBefore}) {
      text += Compare(function, name, (*emulated)->Run(launch, against), *ordered, ulps);
    }
  }
  return text;
}

}  // namespace phobos::compiler::testing
