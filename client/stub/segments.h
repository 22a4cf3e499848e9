// SPDX-License-Identifier: Apache-2.0
//
// Segments: the shared memory that a daemon handed to this process, kept mapped and used again,
// because new memory costs more than copying into old. Segments of one connection to the daemon.
// Any thread.
#ifndef PHOBOS_CLIENT_STUB_SEGMENTS_H_
#define PHOBOS_CLIENT_STUB_SEGMENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/fd.h"
#include "client/launch/status.h"
#include "client/stub/patience.h"
#include "client/stub/wire/verbs.h"

namespace phobos::stub {

class Segments {
 public:
  explicit Segments(std::string side_socket) : side_socket_(std::move(side_socket)) {}
  ~Segments();
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  // Ids of those that no use of this process holds.
  std::vector<uint64_t> Unused() const;

  // Begins a use: fetches and maps the segment when it is new. Gives its first byte, valid until
  // Done. Unavailable: the daemon did not hand it out. Internal: it is smaller than granted.
  StatusOr<std::byte*> Use(const SegmentGrant& grant);
  // Lays `bytes` of a segment in use, from `offset` on, over memory of this process from `at` on:
  // up to the end of the last page. A page is copied when it is first written there, and is this
  // process's own from then on; until then it shows what the segment has. REQUIRES: `at` and
  // `offset` lie on pages, and the bytes in what was granted. ResourceExhausted.
  Status LayOver(std::byte* at, uint64_t segment, int64_t offset, size_t bytes) const;
  // Ends a use.
  void Done(uint64_t segment);

  // Gives back those that nobody has used for `idle`.
  void DropUnused(Clock::duration idle);

 private:
  struct Mapping {
    Fd side;  // the daemon takes the segment back when this closes
    Fd memory;
    std::byte* bytes = nullptr;
    size_t size = 0;
    int uses = 0;
    Clock::time_point used;
  };
  StatusOr<Mapping> Fetch(const SegmentGrant& grant) const;

  const std::string side_socket_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Mapping> mappings_;  // guarded by mutex_
};

}  // namespace phobos::stub

#endif  // PHOBOS_CLIENT_STUB_SEGMENTS_H_
