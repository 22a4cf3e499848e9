// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/fake_driver/card/image.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <sstream>

namespace phobos::fake {
namespace {

constexpr char kCubin[] = "fake cubin of driver ";
constexpr char kTwin[] = "// host-twin: ";

bool HasText(const std::string& bytes, const std::string& text) {
  return bytes.find(text) != std::string::npos;
}

// The number after a word of the PTX; `otherwise` where the word is not there.
int NumberAfter(const std::string& text, const std::string& word, int otherwise) {
  const size_t at = text.find(word);
  return at == std::string::npos ? otherwise : atoi(text.c_str() + at + word.size());
}

// The daemon's worker compares on the card by a kernel of its own (daemon/device/cuda/kernels.h),
// which has no artifact and so no twin in a file.
void FirstDifference(const uint64_t* slots, const int64_t*, int64_t, int64_t, void*) {
  constexpr size_t kWide = 16;
  const auto* a = reinterpret_cast<const char*>(slots[0]);
  const auto* b = reinterpret_cast<const char*>(slots[1]);
  for (uint64_t i = 0; i < slots[2]; ++i) {
    if (memcmp(a + i * kWide, b + i * kWide, kWide) == 0) continue;
    auto* first = reinterpret_cast<uint64_t*>(slots[3]);
    *first = std::min(*first, i);
    return;
  }
}

thread_local sigjmp_buf* landing = nullptr;

void OnFault(int signal_number) {
  if (landing != nullptr) siglongjmp(*landing, 1);
  signal(signal_number, SIG_DFL);  // not a twin's: the process crashes as it would have
  raise(signal_number);
}

}  // namespace

std::string Image::Cubin(const std::string& ptx, const Script& script) {
  return kCubin + std::to_string(script.version) + "\n" + ptx;
}

cuda::Result Image::Judge(const std::string& bytes, const Script& script, std::string* log) {
  const bool is_cubin = bytes.rfind(kCubin, 0) == 0;
  if (is_cubin) {
    const bool is_ours = bytes.rfind(kCubin + std::to_string(script.version) + "\n", 0) == 0;
    return is_ours ? cuda::kSuccess : cuda::kNoBinaryForGpu;
  }
  if (!HasText(bytes, ".version") || !HasText(bytes, ".target sm_")) return cuda::kInvalidImage;
  if (!HasText(bytes, ".entry ")) {
    *log = "ptxas fatal: no entry";
    return cuda::kInvalidPtx;
  }
  const int chip = NumberAfter(bytes, ".target sm_", 0);
  if (chip > script.major * 10 + script.minor) return cuda::kNoBinaryForGpu;
  const KernelRule rule = script.RuleOf(bytes);
  if (rule.link_result != 0) *log = "the script says so";
  return static_cast<cuda::Result>(rule.link_result);
}

std::shared_ptr<Image> Image::Make(const std::string& bytes, const Script& script) {
  auto image = std::make_shared<Image>();
  image->rule_ = script.RuleOf(bytes);
  for (size_t at = bytes.find(".entry "); at != std::string::npos;
       at = bytes.find(".entry ", at + 1)) {
    std::istringstream rest(bytes.substr(at + 7, 512));
    std::string name;
    std::getline(rest, name, '(');
    name.erase(std::remove_if(name.begin(), name.end(), isspace), name.end());
    image->entries_[name] = image->Read(bytes, at);
  }
  image->AddTwins(bytes);
  return image;
}

Image::Entry Image::Read(const std::string& text, size_t entry_at) const {
  Entry entry;
  const size_t body = text.find('{', entry_at);
  const std::string head = text.substr(entry_at, body - entry_at);
  for (size_t at = head.find(".param"); at != std::string::npos; at = head.find(".param", at + 1)) {
    ++entry.parameters;
  }
  entry.most_threads = NumberAfter(head, ".maxntid", entry.most_threads);
  if (text.compare(entry_at, 31, ".entry phobos_first_difference(") == 0) {
    entry.twin = &FirstDifference;
  }
  if (rule_.max_threads > 0) entry.most_threads = rule_.max_threads;
  return entry;
}

void Image::AddTwins(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(kTwin, 0) != 0) continue;
    std::istringstream words(line.substr(sizeof(kTwin) - 1));
    std::string path, name;
    size_t scratch = 0;
    words >> path >> name >> scratch;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* symbol = library == nullptr ? nullptr : dlsym(library, name.c_str());
    if (symbol == nullptr) {
      fprintf(stderr, "fake driver: no twin: %s\n", dlerror());
      abort();
    }
    // The PTX's entry of that name; a stand-in may call it otherwise, then it is the only one.
    const auto found = entries_.find(name);
    Entry& entry = found != entries_.end() ? found->second : entries_.begin()->second;
    entry.twin = reinterpret_cast<Twin>(symbol);
    entry.scratch_bytes = scratch;
  }
}

const Image::Entry* Image::Find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

bool RunTwin(const Image::Entry& entry, const uint64_t* slots, const int64_t* grid) {
  if (entry.twin == nullptr) return true;
  struct sigaction action = {};
  action.sa_handler = OnFault;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
  constexpr size_t kAlignment = 64;
  const size_t scratch_bytes = (entry.scratch_bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* scratch = scratch_bytes == 0 ? nullptr : aligned_alloc(kAlignment, scratch_bytes);
  sigjmp_buf here;
  const bool faulted = sigsetjmp(here, 1) != 0;
  if (!faulted) {
    landing = &here;
    entry.twin(slots, grid, 0, grid[0] * grid[1] * grid[2], scratch);
  }
  landing = nullptr;
  free(scratch);
  return !faulted;
}

}  // namespace phobos::fake
