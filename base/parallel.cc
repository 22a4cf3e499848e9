// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

namespace phobos {

void ForRanges(int64_t size, int64_t grain,
               const std::function<void(int64_t begin, int64_t end)>& work) {
  if (size <= grain) {
    work(0, size);
    return;
  }
  const int64_t grains = (size + grain - 1) / grain;
  const int64_t cpus = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 8);
  const int64_t parts = std::max<int64_t>(1, std::min(cpus, grains));
  const auto bound = [&](int64_t part) { return std::min(size, grains * part / parts * grain); };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(parts - 1));
  for (int64_t part = 1; part < parts; ++part) {
    const int64_t begin = bound(part);
    const int64_t end = bound(part + 1);
    try {
      threads.emplace_back([&work, begin, end] { work(begin, end); });
    } catch (const std::system_error&) {
      work(begin, end);  // no thread to be had: slower, not wrong
    }
  }
  work(0, bound(1));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace phobos
