// SPDX-License-Identifier: Apache-2.0
//
// The ResultStore that forgets: for tests, and behind SQLite when the disk refuses. Any thread.
#ifndef PHOBOS_CACHE_MEMORY_STORE_H_
#define PHOBOS_CACHE_MEMORY_STORE_H_

#include <memory>

#include "cache/result_store.h"

namespace phobos::cache {

std::unique_ptr<ResultStore> MakeMemoryStore();

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_MEMORY_STORE_H_
