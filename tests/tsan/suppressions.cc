// SPDX-License-Identifier: Apache-2.0
//
// What ThreadSanitizer is told to overlook: each line with the reason why it cannot be our race.
#include <sanitizer/tsan_interface.h>

extern "C" const char*
__tsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): the runtime's name for it

extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "";
}
