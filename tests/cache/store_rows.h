// SPDX-License-Identifier: Apache-2.0
//
// Keys and generations for the tests of the cache, and a folder for each of them. For tests only.
#ifndef PHOBOS_TESTS_CACHE_STORE_ROWS_H_
#define PHOBOS_TESTS_CACHE_STORE_ROWS_H_

#include <cstdint>
#include <string>

#include "cache/result_store.h"

namespace phobos::cache {

// The key of kernel "add" at N = n.
KeyColumns AddKey(int64_t n);

// A generation that finished then. Its result says so too, and is `result_bytes` long at least.
Generation GenerationAt(int64_t finished_unix_ms, size_t result_bytes = 0);

// An empty folder of the running test.
std::string TestFolder();

}  // namespace phobos::cache

#endif  // PHOBOS_TESTS_CACHE_STORE_ROWS_H_
