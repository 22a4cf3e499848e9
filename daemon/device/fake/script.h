// SPDX-License-Identifier: Apache-2.0
//
// What the fake device does, read from a small text: one statement a line, `#` starts a comment.
//
//     resolution_ns 10            resolution of its timer (default 1)
//     memory_bytes 1000000        Reserve beyond this is refused (default 1 GiB); `memory_bytes
//                                 1000000 once FILE`: unless FILE exists, which it makes
//     warm_ns 40                  taken off a launch whose inputs no Flush threw out of the cache
//                                 (default 0)
//     ramp_ms 500                 a launch takes twice its time at first and its own after so much
//                                 of its clock (default 0)
//     disturbed 3 7               the 3rd to the 7th Finish that had launches are disturbed;
//                                 `disturbed 1 -1`: all
//     variant 2 op add            what it computes: add (default), accumulate, nothing, shorter
//                                 (add, but for the last)
//     variant 2 times 100 90      ns of its launches, the last for all further ones (default 100)
//     variant 2 poke SLOT OFFSET  writes a byte at that slot's address + OFFSET after computing
//     variant 2 crash 15          the 15th launch in this process raises SIGSEGV;
//                                 `crash 15 once FILE`: unless FILE exists, which it makes
//     variant 2 hang 1            the 1st launch never ends; `once FILE` as above
//     variant 2 slow 1 1500       the 1st launch really takes 1500 ms, then ends
//     variant 2 no_memory         Load is refused
//
// add: f32, slots x, y, out, n: out[i] = x[i] + y[i]. accumulate: f32, slots x, y, n: x[i] += y[i].
// Pure, any thread.
#ifndef PHOBOS_DAEMON_DEVICE_FAKE_SCRIPT_H_
#define PHOBOS_DAEMON_DEVICE_FAKE_SCRIPT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phobos::device {

enum class FakeOperation { kAdd, kAccumulate, kNothing, kShorter };

struct FakePoke {
  int slot = 0;
  int64_t offset = 0;
};

// Something that happens at one launch; launch 0: never.
struct FakeEvent {
  int64_t launch = 0;
  std::string once_file;  // empty: in every process
};

struct FakeVariant {
  FakeOperation operation = FakeOperation::kAdd;
  std::vector<int64_t> times_ns = {100};
  std::vector<FakePoke> pokes;
  FakeEvent crash;
  FakeEvent hang;
  int64_t slow_launch = 0;
  int64_t slow_ms = 0;
  bool no_memory = false;
};

struct FakeScript {
  int64_t resolution_ns = 1;
  int64_t memory_bytes = int64_t{1} << 30;
  std::string memory_once_file;  // empty: each Reserve
  int64_t warm_ns = 0;
  int64_t ramp_ms = 0;
  int64_t disturbed_from = 0;  // 0: none
  int64_t disturbed_to = 0;
  std::map<int, FakeVariant> variants;
};

// InvalidArgument: the line that is wrong.
absl::StatusOr<FakeScript> ParseFakeScript(absl::string_view text);

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_FAKE_SCRIPT_H_
