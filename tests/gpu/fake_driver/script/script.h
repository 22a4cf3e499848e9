// SPDX-License-Identifier: Apache-2.0
//
// What the stand-in driver and its NVML do, read from the file that $PHOBOS_FAKE_CUDA_SCRIPT names
// (none: the defaults). One statement a line, `#` starts a comment; RESULT is a CUresult's number.
//
//     version 12040              what cuDriverGetVersion says
//     cards 1                    how many there are
//     name Fake H200             their name
//     capability 9 0
//     memory_bytes 268435456     of a card
//     l2_bytes 1048576
//     warm_ns 400                taken off a launch whose inputs no fill of twice the L2 threw out
//     ramp_ms 500                a launch takes twice its time at first, and its own after so long
//     link_ms 20                 what a link takes
//     no_ipc                     allocations have no IPC handles
//     mig                        each device is a MIG slice of the card with its number
//     fail FUNCTION K RESULT     the K-th call of FUNCTION in a process gives RESULT (K 0: each)
//     stall FUNCTION K           the K-th call of FUNCTION in a process does not return (K 0: each)
//     kernel TEXT times 100 90   ns of its launches, the last for the rest (else: what they took)
//     kernel TEXT poke SLOT N    writes a byte at that slot's address + N after each launch
//     kernel TEXT lost K RESULT  the K-th launch ends in RESULT, and the process has lost the card
//     kernel TEXT lives N        that launch runs while the process makes N calls more, and has
//                                ended before the next (else: as it comes); nothing may hold it up
//     kernel TEXT refuse K RESULT  the call of the K-th launch gives RESULT
//     kernel TEXT hang K         the K-th launch never ends
//     kernel TEXT slow K MS      the K-th launch takes so long
//     kernel TEXT link RESULT    linking it, or loading its PTX, fails
//     kernel TEXT local N        bytes of local memory a thread that the driver tells
//     kernel TEXT max_threads N  what its block may have (else what .maxntid says)
//     throttled FROM TO BITS     the FROM-th to the TO-th time that NVML is asked for reasons
//     foreign FROM TO PERCENT    likewise for what another process uses of the card
//     no_uses RESULT             what NVML answers instead, a nvmlReturn_t: 3: the card does not
//                                tell, 6: there were none
//     temperature 40
//
// TEXT means the kernels whose image has that text (a kernel's PTX begins with its name and
// settings). `once FILE` after fail, stall, lost or hang: not when FILE exists, which it makes. A
// value, any thread.
#ifndef PHOBOS_TESTS_GPU_FAKE_DRIVER_SCRIPT_SCRIPT_H_
#define PHOBOS_TESTS_GPU_FAKE_DRIVER_SCRIPT_SCRIPT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace phobos::fake {

// Something that happens at one call or launch, counted from 1; -1: never, 0: at each.
struct Occasion {
  int64_t number = -1;
  int result = 0;
  std::string once_file;

  // Whether it is due; makes the file.
  bool IsDue(int64_t count) const;
};

struct Failure {
  std::string function;
  Occasion when;
};

struct KernelRule {
  std::string text;
  std::vector<int64_t> times_ns;
  std::vector<std::pair<int64_t, int64_t>> pokes;  // slot, offset
  Occasion lost;
  int64_t lives_calls = -1;  // of the one that is lost; -1: it ends when it likes
  Occasion refuse;
  Occasion hang;
  int64_t slow_launch = -1;
  int64_t slow_ms = 0;
  int link_result = 0;
  int max_threads = 0;
  int local_bytes = 0;
};

// From a number of questions to another, both included.
struct Span {
  int64_t from = 0;
  int64_t to = -1;
  int64_t value = 0;
  int64_t At(int64_t count) const { return from <= count && count <= to ? value : 0; }
};

struct Script {
  int version = 12040;
  int cards = 1;
  std::string name = "Fake H200";
  int major = 9;
  int minor = 0;
  int64_t memory_bytes = int64_t{256} << 20;
  int64_t l2_bytes = int64_t{1} << 20;
  int64_t warm_ns = 0;
  int64_t ramp_ms = 0;
  int64_t link_ms = 0;
  bool no_ipc = false;
  bool mig = false;
  int64_t temperature = 40;
  int64_t no_uses = 0;
  Span throttled;
  Span foreign;
  std::vector<Failure> failures;
  std::vector<Failure> stalls;
  std::vector<KernelRule> kernels;

  // Every rule of the image together; of fields that several set, the last holds.
  KernelRule RuleOf(const std::string& image) const;
};

// A line that cannot be read ends the process with a message: a test's own mistake.
Script ReadScript();

}  // namespace phobos::fake

#endif  // PHOBOS_TESTS_GPU_FAKE_DRIVER_SCRIPT_SCRIPT_H_
