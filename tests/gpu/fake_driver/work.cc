// SPDX-License-Identifier: Apache-2.0
//
// libcuda's functions for streams, events, links, modules and launches.
#include <string.h>

#include <chrono>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "tests/gpu/fake_driver/api.h"

namespace phobos::fake {
namespace {

template <typename Record>
Record* Keep(World& world, std::unique_ptr<Record> record) {
  const std::lock_guard<std::mutex> lock(world.mutex);
  world.alive.insert(record.get());
  return record.release();
}

bool IsAlive(World& world, void* record) {
  const std::lock_guard<std::mutex> lock(world.mutex);
  return world.alive.count(record) > 0;
}

template <typename Record>
cuda::Result Destroy(World& world, Record* record) {
  {
    const std::lock_guard<std::mutex> lock(world.mutex);
    if (world.alive.erase(record) == 0) return cuda::kInvalidHandle;
  }
  delete record;
  return cuda::kSuccess;
}

// Stream 0 is always there.
bool IsStream(World& world, cuda::Stream stream) {
  return stream == nullptr || IsAlive(world, stream);
}

void Log(const std::string& text, unsigned count, const cuda::JitOption* options, void** values) {
  char* buffer = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == cuda::kJitErrorLogBuffer) buffer = static_cast<char*>(values[i]);
    if (options[i] == cuda::kJitErrorLogBufferBytes) size = reinterpret_cast<size_t>(values[i]);
  }
  if (buffer != nullptr && size > 0) strncpy(buffer, text.c_str(), size);
}

// Launches of a kernel are counted by its header line, however often its image is loaded.
std::string KeyOf(const std::string& image) {
  const size_t at = image.find("// phobos-tuner: ");
  return at == std::string::npos ? image : image.substr(at, image.find('\n', at) - at);
}

// Queues work, unless the stream is being captured: then it would become a node of a graph.
cuda::Result Queue(World& world, cuda::Stream stream, std::function<void()> work) {
  if (!IsStream(world, stream)) return cuda::kInvalidHandle;
  Stream& queue = world.StreamOf(stream);
  if (queue.capture.load() == cuda::kCaptureNone) queue.Add(std::move(work));
  return cuda::kSuccess;
}

bool AreLaunchable(const unsigned grid[3], const unsigned block[3], unsigned most_threads) {
  constexpr unsigned kMostX = std::numeric_limits<int>::max();
  constexpr unsigned kMostYz = 65535;
  const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
  return grid[0] > 0 && grid[0] <= kMostX && grid[1] > 0 && grid[1] <= kMostYz && grid[2] > 0 &&
         grid[2] <= kMostYz && threads > 0 && threads <= most_threads;
}

// The parameters that an array of pointers has, each of 8 bytes.
std::vector<uint64_t> ReadPointers(void* const* parameters, size_t count) {
  std::vector<uint64_t> slots(count);
  for (size_t i = 0; i < count; ++i) memcpy(&slots[i], parameters[i], sizeof(uint64_t));
  return slots;
}

// The block of parameters that `extra` describes.
bool ReadParameters(void** extra, std::vector<uint64_t>& slots) {
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (; extra != nullptr && *extra != cuda::kLaunchEnd; extra += 2) {
    if (extra[0] == cuda::kLaunchBuffer) buffer = extra[1];
    if (extra[0] == cuda::kLaunchBufferBytes) bytes = *static_cast<size_t*>(extra[1]);
  }
  if (bytes % sizeof(uint64_t) != 0 || (bytes > 0 && buffer == nullptr)) return false;
  slots.resize(bytes / sizeof(uint64_t));
  if (bytes > 0) memcpy(slots.data(), buffer, bytes);
  return true;
}

}  // namespace
}  // namespace phobos::fake

void phobos_fake_set_capture(phobos::launch::cuda::Stream stream, int status) {
  auto& world = phobos::fake::World::Get();
  const int before = world.StreamOf(stream).capture.exchange(status);
  world.captures.fetch_add((status != 0) - (before != 0));
}

namespace phobos::launch::cuda {

using fake::Call;
using fake::Image;
using fake::Need;
using fake::ThisThread;
using fake::World;

Result cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes, Stream stream) {
  return Call("cuMemcpyAsync", Need::kContext, std::to_string(bytes), [&](World& world) {
    if (world.memory.Translate(to, bytes) == nullptr ||
        world.memory.Translate(from, bytes) == nullptr) {
      return kInvalidValue;
    }
    return fake::Queue(world, stream, [=, &world] { world.Copy(to, from, bytes); });
  });
}

Result cuMemsetD32Async(DevicePointer to, unsigned value, size_t count, Stream stream) {
  const std::string what = std::to_string(count * sizeof(unsigned));
  return Call("cuMemsetD32Async", Need::kContext, what, [&](World& world) {
    const bool is_known = world.memory.Find(to).has_value() || world.memory.IsHostAllocation(to);
    if (!is_known || world.memory.Translate(to, count * sizeof(unsigned)) == nullptr) {
      return kInvalidValue;
    }
    return fake::Queue(world, stream, [=, &world] { world.Fill(to, value, count); });
  });
}

Result cuStreamCreate(Stream* stream, unsigned) {
  return Call("cuStreamCreate", Need::kContext, "", [&](World& world) {
    *stream = fake::Keep(world, std::make_unique<StreamRecord>());
    const std::lock_guard<std::mutex> lock(world.mutex);
    world.streams[*stream] = (*stream)->stream;
    return kSuccess;
  });
}

Result cuStreamDestroy_v2(Stream stream) {
  return Call("cuStreamDestroy_v2", Need::kContext, "", [&](World& world) {
    {
      const std::lock_guard<std::mutex> lock(world.mutex);
      world.streams.erase(stream);
    }
    return fake::Destroy(world, stream);
  });
}

Result cuStreamSynchronize(Stream stream) {
  return Call("cuStreamSynchronize", Need::kContext, "", [&](World& world) {
    if (!fake::IsStream(world, stream)) return kInvalidHandle;
    if (world.StreamOf(stream).capture.load() != 0) return kStreamCaptureUnsupported;
    world.StreamOf(stream).Wait();
    return world.Condition();
  });
}

Result cuStreamQuery(Stream stream) {
  return Call("cuStreamQuery", Need::kContext, "", [&](World& world) {
    if (!fake::IsStream(world, stream)) return kInvalidHandle;
    if (world.StreamOf(stream).capture.load() != 0) return kStreamCaptureUnsupported;
    if (!world.StreamOf(stream).IsIdle()) return kNotReady;
    return world.Condition();
  });
}

Result cuStreamWaitValue32_v2(Stream stream, DevicePointer address, uint32_t value, unsigned) {
  return Call("cuStreamWaitValue32_v2", Need::kContext, "", [&](World& world) {
    auto* word = reinterpret_cast<std::atomic<uint32_t>*>(world.memory.Translate(address, 4));
    if (word == nullptr || address % 4 != 0) return kInvalidValue;
    if (!fake::IsStream(world, stream)) return kInvalidHandle;
    fake::Stream& queue = world.StreamOf(stream);
    return fake::Queue(world, stream, [=, &world, &queue] {
      // Greater or equal, as numbers that wrap.
      while (world.lost.load() == 0 && !queue.is_ending() &&
             static_cast<int32_t>(word->load() - value) < 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(5));
      }
    });
  });
}

Result cuStreamWriteValue32_v2(Stream stream, DevicePointer address, uint32_t value, unsigned) {
  return Call("cuStreamWriteValue32_v2", Need::kContext, "", [&](World& world) {
    auto* word = reinterpret_cast<std::atomic<uint32_t>*>(world.memory.Translate(address, 4));
    if (word == nullptr || address % 4 != 0) return kInvalidValue;
    return fake::Queue(world, stream, [=, &world] {
      if (world.lost.load() == 0) word->store(value);
    });
  });
}

Result cuStreamIsCapturing(Stream stream, CaptureStatus* status) {
  return Call("cuStreamIsCapturing", Need::kContext, "", [&](World& world) {
    if (!fake::IsStream(world, stream)) return kInvalidHandle;
    *status = static_cast<CaptureStatus>(world.StreamOf(stream).capture.load());
    return kSuccess;
  });
}

Result cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  return Call("cuThreadExchangeStreamCaptureMode", Need::kNothing, "", [&](World&) {
    std::swap(*mode, ThisThread().capture_mode);
    return kSuccess;
  });
}

Result cuEventCreate(Event* event, unsigned) {
  return Call("cuEventCreate", Need::kContext, "", [&](World& world) {
    *event = fake::Keep(world, std::make_unique<EventRecord>());
    return kSuccess;
  });
}

Result cuEventDestroy_v2(Event event) {
  return Call("cuEventDestroy_v2", Need::kContext, "",
              [&](World& world) { return fake::Destroy(world, event); });
}

Result cuEventRecord(Event event, Stream stream) {
  return Call("cuEventRecord", Need::kContext, "", [&](World& world) {
    if (!fake::IsAlive(world, event)) return kInvalidHandle;
    event->stamp_ns.store(0);
    return fake::Queue(world, stream, [=, &world] { event->stamp_ns.store(world.clock.now()); });
  });
}

Result cuEventElapsedTime(float* milliseconds, Event start, Event end) {
  return Call("cuEventElapsedTime", Need::kContext, "", [&](World& world) {
    if (!fake::IsAlive(world, start) || !fake::IsAlive(world, end)) return kInvalidHandle;
    const int64_t from = start->stamp_ns.load(), to = end->stamp_ns.load();
    if (from == 0 || to == 0) return kNotReady;
    *milliseconds = static_cast<float>(static_cast<double>(to - from) / 1e6);
    return kSuccess;
  });
}

Result cuLinkCreate_v2(unsigned count, JitOption* options, void** values, LinkState* state) {
  return Call("cuLinkCreate_v2", Need::kContext, "", [&](World& world) {
    auto record = std::make_unique<LinkStateRecord>();
    record->options.assign(options, options + count);
    record->values.assign(values, values + count);
    *state = fake::Keep(world, std::move(record));
    return kSuccess;
  });
}

Result cuLinkAddData_v2(LinkState state, JitInput kind, void* bytes, size_t size, const char*,
                        unsigned, JitOption*, void**) {
  return Call("cuLinkAddData_v2", Need::kContext, "", [&](World& world) {
    if (!fake::IsAlive(world, state)) return kInvalidHandle;
    if (kind != kInputPtx) return kInvalidImage;
    // The size of PTX counts its closing zero byte.
    const char* text = static_cast<const char*>(bytes);
    if (size == 0 || text[size - 1] != '\0') return kInvalidValue;
    std::string log;
    const Result judged = Image::Judge(text, world.script, &log);
    if (judged != kSuccess) {
      fake::Log(log, static_cast<unsigned>(state->options.size()), state->options.data(),
                state->values.data());
    }
    state->ptx = text;
    return judged;
  });
}

Result cuLinkComplete(LinkState state, void** cubin, size_t* size) {
  return Call("cuLinkComplete", Need::kContext, "", [&](World& world) {
    if (!fake::IsAlive(world, state)) return kInvalidHandle;
    std::this_thread::sleep_for(std::chrono::milliseconds(world.script.link_ms));
    state->cubin = Image::Cubin(state->ptx, world.script);
    *cubin = state->cubin.data();
    *size = state->cubin.size();
    return kSuccess;
  });
}

Result cuLinkDestroy(LinkState state) {
  return Call("cuLinkDestroy", Need::kContext, "",
              [&](World& world) { return fake::Destroy(world, state); });
}

Result cuModuleLoadDataEx(Module* module, const void* image, unsigned count, JitOption* options,
                          void** values) {
  return Call("cuModuleLoadDataEx", Need::kNoCapture, "", [&](World& world) {
    const std::string bytes = static_cast<const char*>(image);
    std::string log;
    const Result judged = Image::Judge(bytes, world.script, &log);
    if (judged != kSuccess) {
      fake::Log(log, count, options, values);
      return judged;
    }
    auto record = std::make_unique<ModuleRecord>();
    record->image = Image::Make(bytes, world.script);
    record->context = ThisThread().contexts.back();
    record->key = fake::KeyOf(bytes);
    *module = fake::Keep(world, std::move(record));
    return kSuccess;
  });
}

Result cuModuleUnload(Module module) {
  return Call("cuModuleUnload", Need::kContext, "", [&](World& world) {
    world.WaitForAll();
    return fake::Destroy(world, module);
  });
}

Result cuModuleGetFunction(Function* function, Module module, const char* name) {
  return Call("cuModuleGetFunction", Need::kContext, name, [&](World& world) {
    if (!fake::IsAlive(world, module)) return kInvalidHandle;
    const Image::Entry* entry = module->image->Find(name);
    if (entry == nullptr) return kNotFound;
    FunctionRecord& record = module->functions[name];
    record.image = module->image;
    record.entry = entry;
    record.context = module->context;
    record.key = module->key;
    *function = &record;
    return kSuccess;
  });
}

Result cuFuncGetAttribute(int* value, FunctionAttribute which, Function function) {
  return Call("cuFuncGetAttribute", Need::kContext, "", [&](World&) {
    *value = which == kFunctionMaxThreads   ? function->entry->most_threads
             : which == kFunctionRegisters  ? 32
             : which == kFunctionLocalBytes ? function->image->rule().local_bytes
                                            : 0;
    return kSuccess;
  });
}

Result cuFuncSetAttribute(Function, FunctionAttribute which, int value) {
  return Call("cuFuncSetAttribute", Need::kContext, "", [&](World&) {
    const bool fits = value <= 227 << 10;
    return which == kFunctionMaxDynamicSharedBytes && fits ? kSuccess : kInvalidValue;
  });
}

Result cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned, Stream stream,
                      void** parameters, void** extra) {
  const std::string what = function->key.substr(0, function->key.find('\n'));
  return Call("cuLaunchKernel", Need::kContext, what, [&](World& world) {
    const unsigned grid[] = {grid_x, grid_y, grid_z};
    const unsigned block[] = {block_x, block_y, block_z};
    const auto most = static_cast<unsigned>(function->entry->most_threads);
    if (!fake::AreLaunchable(grid, block, most)) return kInvalidValue;
    // A module belongs to the context that it was loaded in.
    if (function->context != ThisThread().contexts.back()) return kInvalidHandle;
    if (!fake::IsStream(world, stream)) return kInvalidHandle;
    std::vector<uint64_t> slots;
    if (parameters != nullptr) {
      slots = fake::ReadPointers(parameters, function->entry->parameters);
    } else if (!fake::ReadParameters(extra, slots) || slots.size() != function->entry->parameters) {
      return kInvalidValue;
    }
    if (const int refused = world.BeginLaunch(*function); refused != 0) {
      return static_cast<Result>(refused);
    }
    const std::vector<int64_t> sides = {grid_x, grid_y, grid_z};
    fake::Stream& queue = world.StreamOf(stream);
    // As a driver that finds memory for spills: whoever holds the stream up now waits for ever.
    if (!std::exchange(function->was_launched, true) && queue.capture.load() == kCaptureNone) {
      queue.Wait();
    }
    // The function may be unloaded before its launch has run.
    return fake::Queue(world, stream, [=, &world, &queue, kept = *function] {
      world.Launch(kept, slots, sides, queue);
    });
  });
}

}  // namespace phobos::launch::cuda
