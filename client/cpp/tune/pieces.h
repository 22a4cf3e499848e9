// SPDX-License-Identifier: Apache-2.0
//
// Work on many megabytes, split among threads that live for the call: beside it, starting one costs
// nothing. Not a pool: the client keeps no thread in its caller's process. The threads take no
// signals, which are the program's. Any thread.
#ifndef PHOBOS_CLIENT_CPP_TUNE_PIECES_H_
#define PHOBOS_CLIENT_CPP_TUNE_PIECES_H_

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace phobos {

// Starts at most `wanted` threads, as many as there are processors for beside the caller's, 8 at
// most; fewer, perhaps none, where the system refuses. The caller joins them.
std::vector<pthread_t> StartThreads(size_t wanted, void* (*work)(void*), void* argument);

// Calls work(begin, end) for pieces that cover [0, size), each but the last `piece` long, on the
// caller's thread and others. Returns when all are done. REQUIRES: piece > 0; work is safe to call
// from several threads and throws nothing.
void ForPieces(size_t size, size_t piece,
               const std::function<void(size_t begin, size_t end)>& work);

// memcpy.
void CopyBytes(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_TUNE_PIECES_H_
