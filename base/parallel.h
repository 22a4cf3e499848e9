// SPDX-License-Identifier: Apache-2.0
//
// Splits work over an index range among a few threads that live for the call: for copies and
// comparisons of many megabytes, where starting a thread costs nothing beside the work. Not a pool.
// Any thread.
#ifndef PHOBOS_BASE_PARALLEL_H_
#define PHOBOS_BASE_PARALLEL_H_

#include <cstdint>
#include <functional>

namespace phobos {

// Calls work(begin, end) for disjoint ranges that cover [0, size), each but the last a multiple of
// `grain` long, on at most as many threads as there are CPUs (8 at most, the caller's among them).
// One call on the caller's thread when size is at most grain. Returns when all are done. REQUIRES:
// grain > 0; work is safe to call from several threads.
void ForRanges(int64_t size, int64_t grain,
               const std::function<void(int64_t begin, int64_t end)>& work);

}  // namespace phobos

#endif  // PHOBOS_BASE_PARALLEL_H_
