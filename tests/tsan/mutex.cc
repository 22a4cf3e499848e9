// SPDX-License-Identifier: Apache-2.0
//
// Tells ThreadSanitizer what Abseil's Mutex, CondVar, Notification and BlockingCounter order
// between threads. Debian's Abseil is not instrumented, so without this every field that a Mutex
// guards looks like a race. Conditions are waited for by polling: the real Mutex lets whoever
// unlocks it evaluate the conditions of others, unseen. The names are those of
// tests/tsan/BUILD.bazel. Also what std::timed_mutex calls, which clang 14's ThreadSanitizer does
// not know.
#include "absl/synchronization/mutex.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sanitizer/tsan_interface.h>
#include <time.h>
#include <unistd.h>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

// These functions are the locks; the analysis is for their users.
#pragma clang diagnostic ignored "-Wthread-safety-analysis"

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's --wrap wants these names
#define REAL(name) __real__ZN4absl7debian3##name
#define WRAP(name) __wrap__ZN4absl7debian3##name
#define REAL_CONST(name) __real__ZNK4absl7debian3##name
#define WRAP_CONST(name) __wrap__ZNK4absl7debian3##name

namespace {

constexpr int kPollUs = 200;

// HasBeenNotified is inline, and acquires by the flag that lies after the mutex.
void* FlagOf(const absl::Notification* notification) {
  return const_cast<char*>(reinterpret_cast<const char*>(notification)) + sizeof(absl::Mutex);
}

}  // namespace

extern "C" {

void REAL(5Mutex4LockEv)(absl::Mutex* mutex);
void REAL(5Mutex6UnlockEv)(absl::Mutex* mutex);
bool REAL(5Mutex7TryLockEv)(absl::Mutex* mutex);
void REAL(5Mutex10ReaderLockEv)(absl::Mutex* mutex);
void REAL(5Mutex12ReaderUnlockEv)(absl::Mutex* mutex);
bool REAL(5Mutex13ReaderTryLockEv)(absl::Mutex* mutex);
void REAL(7CondVar4WaitEPNS0_5MutexE)(absl::CondVar* variable, absl::Mutex* mutex);
bool REAL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(absl::CondVar* variable,
                                                                absl::Mutex* mutex,
                                                                absl::Duration timeout);
bool REAL(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(absl::CondVar* variable,
                                                             absl::Mutex* mutex,
                                                             absl::Time deadline);

void WRAP(5Mutex4LockEv)(absl::Mutex* mutex) {
  REAL(5Mutex4LockEv)(mutex);
  __tsan_acquire(mutex);
}

void WRAP(5Mutex6UnlockEv)(absl::Mutex* mutex) {
  __tsan_release(mutex);
  REAL(5Mutex6UnlockEv)(mutex);
}

bool WRAP(5Mutex7TryLockEv)(absl::Mutex* mutex) {
  if (!REAL(5Mutex7TryLockEv)(mutex)) return false;
  __tsan_acquire(mutex);
  return true;
}

void WRAP(5Mutex10ReaderLockEv)(absl::Mutex* mutex) {
  REAL(5Mutex10ReaderLockEv)(mutex);
  __tsan_acquire(mutex);
}

void WRAP(5Mutex12ReaderUnlockEv)(absl::Mutex* mutex) {
  __tsan_release(mutex);
  REAL(5Mutex12ReaderUnlockEv)(mutex);
}

bool WRAP(5Mutex13ReaderTryLockEv)(absl::Mutex* mutex) {
  if (!REAL(5Mutex13ReaderTryLockEv)(mutex)) return false;
  __tsan_acquire(mutex);
  return true;
}

// REQUIRES of the three: the mutex is held for writing.
bool WRAP(5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE)(absl::Mutex* mutex,
                                                                 const absl::Condition& condition,
                                                                 absl::Time deadline) {
  while (!condition.Eval()) {
    if (absl::Now() >= deadline) return false;
    mutex->Unlock();
    usleep(kPollUs);
    mutex->Lock();
  }
  return true;
}

bool WRAP(5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE)(
    absl::Mutex* mutex, const absl::Condition& condition, absl::Duration timeout) {
  return mutex->AwaitWithDeadline(condition, absl::Now() + timeout);
}

void WRAP(5Mutex5AwaitERKNS0_9ConditionE)(absl::Mutex* mutex, const absl::Condition& condition) {
  mutex->AwaitWithDeadline(condition, absl::InfiniteFuture());
}

void WRAP(5Mutex8LockWhenERKNS0_9ConditionE)(absl::Mutex* mutex, const absl::Condition& condition) {
  mutex->Lock();
  mutex->Await(condition);
}

bool WRAP(5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE)(
    absl::Mutex* mutex, const absl::Condition& condition, absl::Time deadline) {
  mutex->Lock();
  return mutex->AwaitWithDeadline(condition, deadline);
}

bool WRAP(5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE)(
    absl::Mutex* mutex, const absl::Condition& condition, absl::Duration timeout) {
  mutex->Lock();
  return mutex->AwaitWithTimeout(condition, timeout);
}

void WRAP(7CondVar4WaitEPNS0_5MutexE)(absl::CondVar* variable, absl::Mutex* mutex) {
  __tsan_release(mutex);
  REAL(7CondVar4WaitEPNS0_5MutexE)(variable, mutex);
  __tsan_acquire(mutex);
}

bool WRAP(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(absl::CondVar* variable,
                                                                absl::Mutex* mutex,
                                                                absl::Duration timeout) {
  __tsan_release(mutex);
  const bool timed_out =
      REAL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(variable, mutex, timeout);
  __tsan_acquire(mutex);
  return timed_out;
}

bool WRAP(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(absl::CondVar* variable,
                                                             absl::Mutex* mutex,
                                                             absl::Time deadline) {
  __tsan_release(mutex);
  const bool timed_out =
      REAL(7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE)(variable, mutex, deadline);
  __tsan_acquire(mutex);
  return timed_out;
}

bool REAL(15BlockingCounter14DecrementCountEv)(absl::BlockingCounter* counter);
void REAL(15BlockingCounter4WaitEv)(absl::BlockingCounter* counter);
void REAL(12Notification6NotifyEv)(absl::Notification* notification);
void REAL_CONST(12Notification19WaitForNotificationEv)(const absl::Notification* notification);
bool REAL_CONST(12Notification30WaitForNotificationWithTimeoutENS0_8DurationE)(
    const absl::Notification* notification, absl::Duration timeout);
bool REAL_CONST(12Notification31WaitForNotificationWithDeadlineENS0_4TimeE)(
    const absl::Notification* notification, absl::Time deadline);

bool WRAP(15BlockingCounter14DecrementCountEv)(absl::BlockingCounter* counter) {
  __tsan_release(counter);
  return REAL(15BlockingCounter14DecrementCountEv)(counter);
}

void WRAP(15BlockingCounter4WaitEv)(absl::BlockingCounter* counter) {
  REAL(15BlockingCounter4WaitEv)(counter);
  __tsan_acquire(counter);
}

void WRAP(12Notification6NotifyEv)(absl::Notification* notification) {
  __tsan_release(FlagOf(notification));
  REAL(12Notification6NotifyEv)(notification);
}

void WRAP_CONST(12Notification19WaitForNotificationEv)(const absl::Notification* notification) {
  REAL_CONST(12Notification19WaitForNotificationEv)(notification);
  __tsan_acquire(FlagOf(notification));
}

bool WRAP_CONST(12Notification30WaitForNotificationWithTimeoutENS0_8DurationE)(
    const absl::Notification* notification, absl::Duration timeout) {
  const bool notified = REAL_CONST(12Notification30WaitForNotificationWithTimeoutENS0_8DurationE)(
      notification, timeout);
  if (notified) __tsan_acquire(FlagOf(notification));
  return notified;
}

bool WRAP_CONST(12Notification31WaitForNotificationWithDeadlineENS0_4TimeE)(
    const absl::Notification* notification, absl::Time deadline) {
  const bool notified = REAL_CONST(12Notification31WaitForNotificationWithDeadlineENS0_4TimeE)(
      notification, deadline);
  if (notified) __tsan_acquire(FlagOf(notification));
  return notified;
}

// In place of glibc's for the program and all libraries that it loads.
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                            const timespec* until) noexcept {
  static auto* const real = reinterpret_cast<decltype(&pthread_mutex_clocklock)>(
      dlsym(RTLD_NEXT, "pthread_mutex_clocklock"));
  __tsan_mutex_pre_lock(mutex, __tsan_mutex_try_lock);
  const int error = real(mutex, clock, until);
  const unsigned failed = error == 0 ? 0 : __tsan_mutex_try_lock_failed;
  __tsan_mutex_post_lock(mutex, __tsan_mutex_try_lock | failed, 0);
  return error;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
