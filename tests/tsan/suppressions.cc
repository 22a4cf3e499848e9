// SPDX-License-Identifier: Apache-2.0
//
// What ThreadSanitizer is told to overlook: each line with the reason why it cannot be our race.
#include <sanitizer/tsan_interface.h>

// NOLINTBEGIN(bugprone-reserved-identifier): the runtime's names for them
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_options();

extern "C" const char* __tsan_default_suppressions() { return ""; }

// A kernel that faults ends its worker by the signal, as without a sanitizer. The memcpy of
// Debian's libraries is intercepted, but what orders it is not seen: calls of memcpy, free and the
// like are no accesses, in our code neither.
extern "C" const char* __tsan_default_options() {
  return "handle_segv=0:ignore_interceptors_accesses=1";
}
// NOLINTEND(bugprone-reserved-identifier)
