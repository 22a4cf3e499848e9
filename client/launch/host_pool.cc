// SPDX-License-Identifier: Apache-2.0
//
// The pool of host.h. One launch at a time is open, told by an odd `epoch_`. Each participant (the
// caller is number 0) owns a range of blocks, takes chunks of it, then helps with the others'
// ranges. A worker counts itself into `inside_` before it looks whether the launch is still open,
// and the caller closes the launch before it looks whether `inside_` is zero: so none is inside
// when Run returns, and one that woke too late does nothing.
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <climits>
#include <mutex>
#include <new>

#include "client/launch/host.h"

namespace phobos::launch {
namespace {

// A launch with less work than this is over before a sleeping thread is awake.
constexpr int64_t kWorthWakingNs = 20000;
// Chunks a participant's range is cut into, so that a slow participant can be helped.
constexpr int64_t kChunks = 16;
// How often a thread looks before it sleeps: 10 to 50 us, by processor.
constexpr int kSpins = 600;
constexpr std::align_val_t kScratchAlignment{64};

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

void Pause() { __builtin_ia32_pause(); }

void SleepWhile(std::atomic<int32_t>& word, int32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void Wake(std::atomic<int32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Memory of one participant, kept for the next launch.
class Scratch {
 public:
  ~Scratch() { ::operator delete(bytes_, kScratchAlignment); }

  // At least `size` bytes; null for 0.
  void* Get(int64_t size) {
    if (size > size_) {
      ::operator delete(bytes_, kScratchAlignment);
      bytes_ = ::operator new(static_cast<size_t>(size), kScratchAlignment);
      size_ = size;
    }
    return size > 0 ? bytes_ : nullptr;
  }

 private:
  void* bytes_ = nullptr;
  int64_t size_ = 0;
};

struct Launch {
  HostKernel::Entry entry;
  int64_t scratch_bytes;
  const uint64_t* slots;
  int64_t grid[3];
};

// Blocks of one participant that nobody has taken yet: next <= b < end.
struct alignas(64) Range {
  std::atomic<int64_t> next = 0;
  int64_t end = 0;
};

}  // namespace

class HostPool::State {
 public:
  explicit State(int threads) : ranges_(threads), scratch_(threads), workers_(threads) {
    for (int i = 0; i < threads; ++i) workers_[i].number = i, workers_[i].state = this;
  }

  ~State() {
    stop_.store(true);
    epoch_.fetch_add(2);
    Wake(epoch_, INT_MAX);
    for (int i = 1; i < started_; ++i) pthread_join(workers_[i].thread, nullptr);
  }

  // Runs blocks 0 <= b < blocks. `block_ns` is what one is thought to take, -1 when not known;
  // gives what one took.
  int64_t Run(const Launch& launch, int64_t blocks, int64_t block_ns) {
    const std::lock_guard<std::mutex> turn(turn_);
    const int64_t start = NowNs();
    int64_t done = 0;
    if (block_ns >= 0 && block_ns < kWorthWakingNs / blocks) {
      done = RunAlone(launch, blocks, start);
      if (done == blocks) return (NowNs() - start) / blocks;
    }
    StartWorkers();
    Open(launch, done, blocks);
    done += Work(0);
    const int64_t end = NowNs();
    Close();
    return done > 0 ? (end - start) / done : block_ns;
  }

  void RunOne(const Launch& launch) {
    const std::lock_guard<std::mutex> turn(turn_);
    launch.entry(launch.slots, launch.grid, 0, 1, scratch_[0].Get(launch.scratch_bytes));
  }

 private:
  struct Worker {
    State* state;
    int number;
    pthread_t thread;
  };

  // Runs blocks on the caller while that takes as little as was thought; gives how many.
  int64_t RunAlone(const Launch& launch, int64_t blocks, int64_t start) {
    const int64_t piece = std::max<int64_t>(1, blocks / 4);
    void* scratch = scratch_[0].Get(launch.scratch_bytes);
    int64_t done = 0;
    while (done < blocks) {
      const int64_t end = done + std::min(piece, blocks - done);
      launch.entry(launch.slots, launch.grid, done, end, scratch);
      done = end;
      if (done < blocks && NowNs() - start > 2 * kWorthWakingNs) break;
    }
    return done;
  }

  // Threads that cannot be had are done without.
  void StartWorkers() {
    if (started_ > 0) return;
    started_ = 1;
    // Signals are the host program's: none is delivered to a thread of the pool.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int threads = static_cast<int>(workers_.size());
    while (started_ < threads) {
      Worker& worker = workers_[started_];
      if (pthread_create(&worker.thread, nullptr, &State::Serve, &worker) != 0) break;
      ++started_;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void Open(const Launch& launch, int64_t first, int64_t end) {
    launch_ = launch;
    const int64_t blocks = end - first;
    const int64_t share = blocks / started_, rest = blocks % started_;
    chunk_ = std::max<int64_t>(1, share / kChunks);
    for (int i = 0; i < started_; ++i) {
      const int64_t size = share + (i < rest ? 1 : 0);
      ranges_[i].next.store(first, std::memory_order_relaxed);
      ranges_[i].end = first + size;
      first += size;
    }
    epoch_.fetch_add(1);
    const int64_t useful = std::min<int64_t>(started_, blocks) - 1;
    if (sleepers_.load() > 0) Wake(epoch_, static_cast<int>(useful));
  }

  void Close() {
    epoch_.fetch_add(1);
    for (int spins = 0; inside_.load() != 0;) {
      if (++spins < kSpins) {
        Pause();
        continue;
      }
      waiting_.store(true);
      if (const int32_t inside = inside_.load(); inside != 0) SleepWhile(inside_, inside);
      waiting_.store(false);
    }
  }

  // Takes chunks until none is left; gives the number of blocks run.
  int64_t Work(int number) {
    void* scratch = scratch_[number].Get(launch_.scratch_bytes);
    int64_t done = 0;
    for (int i = 0; i < started_; ++i) {
      Range& range = ranges_[(number + i) % started_];
      while (true) {
        const int64_t first = range.next.fetch_add(chunk_, std::memory_order_relaxed);
        if (first >= range.end) break;
        const int64_t end = std::min(first + chunk_, range.end);
        launch_.entry(launch_.slots, launch_.grid, first, end, scratch);
        done += end - first;
      }
    }
    return done;
  }

  // The next value of the epoch after `seen`.
  int32_t NextEpoch(int32_t seen) {
    for (int spins = 0; spins < kSpins; ++spins) {
      if (const int32_t epoch = epoch_.load(); epoch != seen) return epoch;
      Pause();
    }
    sleepers_.fetch_add(1);
    int32_t epoch = epoch_.load();
    while (epoch == seen) {
      SleepWhile(epoch_, seen);
      epoch = epoch_.load();
    }
    sleepers_.fetch_sub(1);
    return epoch;
  }

  static void* Serve(void* argument) {
    const Worker& worker = *static_cast<Worker*>(argument);
    State& state = *worker.state;
    int32_t seen = 0;
    while (true) {
      seen = state.NextEpoch(seen);
      if (state.stop_.load()) return nullptr;
      if (seen % 2 == 0) continue;
      state.inside_.fetch_add(1);
      if (state.epoch_.load() == seen) state.Work(worker.number);
      if (state.inside_.fetch_sub(1) == 1 && state.waiting_.load()) Wake(state.inside_, 1);
    }
  }

  std::mutex turn_;
  int started_ = 0;  // participants, under turn_: 0 before the first launch that wakes anybody

  // Written under turn_ while no launch is open; read by participants of the open launch.
  Launch launch_ = {};
  int64_t chunk_ = 1;
  std::vector<Range> ranges_;
  std::vector<Scratch> scratch_;  // each entry is its participant's own

  std::vector<Worker> workers_;
  std::atomic<int32_t> epoch_ = 0;
  std::atomic<int32_t> inside_ = 0;
  std::atomic<int32_t> sleepers_ = 0;
  std::atomic<bool> waiting_ = false;
  std::atomic<bool> stop_ = false;
};

HostPool::HostPool(int threads)
    : threads_(threads), state_(std::make_unique<PerProcess<State>>([threads] {
        return std::make_unique<State>(threads);
      })) {}

HostPool::~HostPool() = default;

void HostPool::Run(const HostKernel& kernel, const uint64_t* slots, const Grid& grid) {
  const int64_t blocks = grid.x * grid.y * grid.z;
  const Launch launch = {kernel.entry_, kernel.scratch_bytes_, slots, {grid.x, grid.y, grid.z}};
  if (blocks == 1 && launch.scratch_bytes == 0) {
    launch.entry(slots, launch.grid, 0, 1, nullptr);
    return;
  }
  State& state = state_->Get();
  if (blocks == 1) {
    state.RunOne(launch);
    return;
  }
  const int64_t block_ns = kernel.block_ns_.load(std::memory_order_relaxed);
  kernel.block_ns_.store(state.Run(launch, blocks, block_ns), std::memory_order_relaxed);
}

}  // namespace phobos::launch
