// SPDX-License-Identifier: Apache-2.0
//
// Whether something else had the processors while this process measured: time its threads spent
// ready but not running, as the scheduler counts it, and time the hypervisor took. Not a profiler:
// one look before and one after. One thread.
#ifndef PHOBOS_DAEMON_DEVICE_CPU_DISTURBANCE_H_
#define PHOBOS_DAEMON_DEVICE_CPU_DISTURBANCE_H_

#include <cstdint>
#include <string>

namespace phobos::device {

// Sums since the start of the process (waited) and of the machine (stolen).
struct SchedulerTimes {
  int64_t waited_ns = 0;  // all threads of this process, ready but not running; 0 where the system
                          // does not count it
  int64_t stolen_ns = 0;  // all processors, by the hypervisor
};

SchedulerTimes ReadSchedulerTimes();

// The work between two looks.
struct Work {
  int64_t wall_ns = 0;
  int threads = 1;
  int64_t launches = 0;
};

// What was lost of the work, as a sentence; empty when no more than on a quiet machine: 2 %, and 20
// us a launch, because threads that wake wait a little too.
std::string Disturbance(const SchedulerTimes& before, const SchedulerTimes& after,
                        const Work& work);

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CPU_DISTURBANCE_H_
