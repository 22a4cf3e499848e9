// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/tune/pieces.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace phobos {
namespace {

constexpr unsigned kMostThreads = 8;
constexpr size_t kCopyPiece = size_t{4} << 20;

// Whoever is free takes the next one.
struct Pieces {
  const size_t size;
  const size_t piece;
  const std::function<void(size_t begin, size_t end)>& work;
  std::atomic<size_t> next = 0;
};

void* TakePieces(void* argument) {
  auto& pieces = *static_cast<Pieces*>(argument);
  while (true) {
    const size_t begin = pieces.next.fetch_add(pieces.piece);
    if (begin >= pieces.size) return nullptr;
    pieces.work(begin, std::min(pieces.size, begin + pieces.piece));
  }
}

}  // namespace

std::vector<pthread_t> StartThreads(size_t wanted, void* (*work)(void*), void* argument) {
  const unsigned spare = std::max(std::thread::hardware_concurrency(), 1U) - 1;
  const size_t count = std::min<size_t>({wanted, spare, kMostThreads});
  std::vector<pthread_t> threads;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  while (threads.size() < count) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, work, argument) != 0) break;
    threads.push_back(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return threads;
}

void ForPieces(size_t size, size_t piece,
               const std::function<void(size_t begin, size_t end)>& work) {
  Pieces pieces = {size, piece, work};
  const size_t others = size <= piece ? 0 : (size - 1) / piece;
  const std::vector<pthread_t> threads = StartThreads(others, TakePieces, &pieces);
  TakePieces(&pieces);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

void CopyBytes(std::byte* to, const std::byte* from, size_t bytes) {
  ForPieces(bytes, kCopyPiece,
            [=](size_t begin, size_t end) { memcpy(to + begin, from + begin, end - begin); });
}

}  // namespace phobos
