// SPDX-License-Identifier: Apache-2.0
//
// All that the stand-in driver of a process is: what libcuda keeps between its calls. There is one,
// made by the first call. The parts guard themselves; the rest is guarded by `mutex`.
#ifndef PHOBOS_TESTS_GPU_FAKE_DRIVER_CARD_WORLD_H_
#define PHOBOS_TESTS_GPU_FAKE_DRIVER_CARD_WORLD_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "client/launch/cuda/functions.h"
#include "tests/gpu/fake_driver/card/image.h"
#include "tests/gpu/fake_driver/card/memory.h"
#include "tests/gpu/fake_driver/card/stream.h"
#include "tests/gpu/fake_driver/script/script.h"
#include "tests/gpu/fake_driver/script/trace.h"

// What the handles point to.
namespace phobos::launch::cuda {

struct ContextRecord {
  int device = 0;
  int retained = 0;
};
struct StreamRecord {
  const std::shared_ptr<fake::Stream> stream = std::make_shared<fake::Stream>();
};
struct EventRecord {
  std::atomic<int64_t> stamp_ns = 0;  // 0: not reached
};
struct FunctionRecord {
  std::shared_ptr<fake::Image> image;
  const fake::Image::Entry* entry = nullptr;
  Context context = nullptr;  // of its module
  std::string key;            // of the image, to count launches by
  bool was_launched = false;
};
struct ModuleRecord {
  std::shared_ptr<fake::Image> image;
  Context context = nullptr;
  std::map<std::string, FunctionRecord> functions;
  std::string key;
};
struct LinkStateRecord {
  std::vector<JitOption> options;  // of its creation: where the log goes
  std::vector<void*> values;
  std::string ptx;
  std::string cubin;
};

}  // namespace phobos::launch::cuda

namespace phobos::fake {

class World {
 public:
  static World& Get();

  // The error that every call gives now, or kSuccess: the card is lost, or this is a forked child.
  cuda::Result Condition();
  void Lose(int result) { lost.store(result); }

  // Queues work on a stream; null: on the stream 0.
  Stream& StreamOf(cuda::Stream stream);
  // At the begin of each call: returns when the launch that has no more calls to live has ended.
  void CountCall();
  // The call of a launch begins. Gives the result that the script wants it to have, or 0.
  int BeginLaunch(const cuda::FunctionRecord& function);
  // Runs a launch, on the stream's thread.
  void Launch(const cuda::FunctionRecord& function, std::vector<uint64_t> slots,
              const std::vector<int64_t>& grid, const Stream& stream);
  void Fill(cuda::DevicePointer to, unsigned value, size_t count);
  // Waits for all streams, as the driver does before it frees what their work may use.
  void WaitForAll();
  void Copy(cuda::DevicePointer to, cuda::DevicePointer from, size_t bytes);

  const Script script;
  Trace trace;
  Memory memory;
  Clock clock;
  std::atomic<int> lost = 0;
  std::atomic<bool> is_initialized = false;

  std::mutex mutex;
  std::vector<cuda::ContextRecord> contexts;  // one a card
  std::set<void*> alive;                      // streams, events, modules, links
  // Those that are alive; shared with whoever waits for one while it is destroyed.
  std::map<cuda::Stream, std::shared_ptr<Stream>> streams;
  std::atomic<int> captures = 0;  // streams that are captured

 private:
  World();
  int64_t DurationOf(const KernelRule& rule, int64_t launch, int64_t really_ns);

  const pid_t process_;
  // What a launch that will lose the card has to live; -1: no such launch, or it may end.
  std::atomic<int64_t> calls_to_live_ = -1;
  Stream default_stream_;
  std::mutex launch_mutex_;
  std::map<std::string, int64_t> calls_;     // of launches, by image
  std::map<std::string, int64_t> launches_;  // that ran, by image
  int64_t first_launch_ns_ = 0;
  bool is_flushed_ = false;
};

}  // namespace phobos::fake

#endif  // PHOBOS_TESTS_GPU_FAKE_DRIVER_CARD_WORLD_H_
