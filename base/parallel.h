// SPDX-License-Identifier: Apache-2.0
//
// Splits work on many megabytes among a few threads that live for the call: beside it, starting one
// costs nothing. Not a pool: a library keeps no thread in its caller's process. The threads take no
// signals but those that a thread raises itself (SIGSEGV and the like). Any thread.
#ifndef PHOBOS_BASE_PARALLEL_H_
#define PHOBOS_BASE_PARALLEL_H_

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace phobos {

// Starts at most `wanted` threads, as many as there are processors for beside the caller's, 7 at
// most; fewer, perhaps none, where the system refuses. The caller joins them.
std::vector<pthread_t> StartThreads(int64_t wanted, void* (*work)(void*), void* argument);

// Calls work(begin, end) for the ranges of `grain`, the last perhaps shorter, that cover [0, size),
// on the caller's thread and others: whoever is free takes the next. Returns when all are done.
// REQUIRES: grain > 0; work is safe to call from several threads and throws nothing.
void ForRanges(int64_t size, int64_t grain,
               const std::function<void(int64_t begin, int64_t end)>& work);

// memcpy.
void CopyBytes(std::byte* to, const std::byte* from, int64_t bytes);

}  // namespace phobos

#endif  // PHOBOS_BASE_PARALLEL_H_
