// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/fake_driver/card/world.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace phobos::fake {
namespace {

// How long a thread sleeps between its looks at what another does.
constexpr std::chrono::microseconds kLook(5);

// What a fill and a copy take on the card's clock: 1 TB/s.
int64_t NsOf(size_t bytes) { return static_cast<int64_t>(bytes / 1000) + 1; }

}  // namespace

World& World::Get() {
  static World* const world = new World;  // never destroyed: streams may be at work at exit
  return *world;
}

World::World()
    : script(ReadScript()),
      trace(script),
      memory(script.memory_bytes),
      contexts(static_cast<size_t>(script.cards)),
      process_(getpid()) {}

cuda::Result World::Condition() {
  if (getpid() != process_) return cuda::kNotInitialized;
  return static_cast<cuda::Result>(lost.load());
}

Stream& World::StreamOf(cuda::Stream stream) {
  return stream == nullptr ? default_stream_ : *stream->stream;
}

int64_t World::DurationOf(const KernelRule& rule, int64_t launch, int64_t really_ns) {
  int64_t ns = really_ns;
  if (!rule.times_ns.empty()) {
    ns = rule.times_ns[std::min(static_cast<size_t>(launch - 1), rule.times_ns.size() - 1)];
  }
  if (first_launch_ns_ == 0) first_launch_ns_ = NowNs();
  const int64_t ramp_ns = script.ramp_ms * 1'000'000;
  const int64_t age_ns = NowNs() - first_launch_ns_;
  if (age_ns < ramp_ns) {
    ns += static_cast<int64_t>(static_cast<double>(ns) * static_cast<double>(ramp_ns - age_ns) /
                               static_cast<double>(ramp_ns));
  }
  if (!is_flushed_) ns -= script.warm_ns;
  is_flushed_ = false;
  return std::max<int64_t>(ns, 0);
}

void World::CountCall() {
  if (calls_to_live_.load() < 0 || calls_to_live_.fetch_sub(1) != 0) return;
  while (lost.load() == 0) std::this_thread::sleep_for(kLook);
}

int World::BeginLaunch(const cuda::FunctionRecord& function) {
  const std::lock_guard<std::mutex> lock(mutex);
  const KernelRule& rule = function.image->rule();
  const int64_t call = ++calls_[function.key];
  if (rule.refuse.IsDue(call)) return rule.refuse.result;
  if (rule.lost.number == call) calls_to_live_.store(rule.lives_calls);
  return 0;
}

void World::Launch(const cuda::FunctionRecord& function, std::vector<uint64_t> slots,
                   const std::vector<int64_t>& grid, const Stream& stream) {
  if (lost.load() != 0) return;
  const std::lock_guard<std::mutex> lock(launch_mutex_);
  const KernelRule& rule = function.image->rule();
  const int64_t launch = ++launches_[function.key];
  if (rule.hang.IsDue(launch)) {
    while (!stream.is_ending()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return;
  }
  if (rule.lost.IsDue(launch)) {
    while (calls_to_live_.load() >= 0) std::this_thread::sleep_for(kLook);
    Lose(rule.lost.result);
    return;
  }
  const std::vector<uint64_t> addresses = slots;
  for (uint64_t& slot : slots) {
    if (memory.Find(slot).has_value()) slot = reinterpret_cast<uint64_t>(memory.Translate(slot, 1));
  }
  const int64_t start = NowNs();
  if (rule.slow_launch == launch) {
    std::this_thread::sleep_for(std::chrono::milliseconds(rule.slow_ms));
  }
  if (!RunTwin(*function.entry, slots.data(), grid.data())) {
    Lose(cuda::kIllegalAddress);
    return;
  }
  clock.Advance(DurationOf(rule, launch, NowNs() - start));
  for (const auto& [slot, offset] : rule.pokes) {
    auto* byte = reinterpret_cast<uint8_t*>(slots[static_cast<size_t>(slot)]) + offset;
    *byte = static_cast<uint8_t>(~*byte);
  }
}

void World::WaitForAll() {
  std::map<cuda::Stream, std::shared_ptr<Stream>> all;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    all = streams;
  }
  for (const auto& [handle, stream] : all) stream->Wait();
}

void World::Fill(cuda::DevicePointer to, unsigned value, size_t count) {
  if (lost.load() != 0) return;
  auto* words = reinterpret_cast<unsigned*>(memory.Translate(to, count * sizeof(unsigned)));
  // Atomic, because the host may look at one in its memory.
  for (size_t i = 0; i < count; ++i) std::atomic_ref<unsigned>(words[i]).store(value);
  clock.Advance(NsOf(count * sizeof(unsigned)));
  const std::lock_guard<std::mutex> lock(launch_mutex_);
  is_flushed_ |= static_cast<int64_t>(count * sizeof(unsigned)) >= 2 * script.l2_bytes;
}

void World::Copy(cuda::DevicePointer to, cuda::DevicePointer from, size_t bytes) {
  if (lost.load() != 0) return;
  memcpy(memory.Translate(to, bytes), memory.Translate(from, bytes), bytes);
  clock.Advance(NsOf(bytes));
  const std::lock_guard<std::mutex> lock(launch_mutex_);
  is_flushed_ = false;  // what was copied is in the cache now
}

}  // namespace phobos::fake
