// SPDX-License-Identifier: Apache-2.0
//
// SegmentPool makes the shared memory in which clients hand tensors over: memfds that the daemon
// creates, sizes, seals against shrinking and growing, and keeps mapped. A client fetches one by a
// ticket over the side socket (side_server.h) and keeps it for later tunes. A segment belongs to
// one process, is charged to its uid, and goes when that process closes its side connection, or
// never fetches it; the charge goes with its memory. Not the daemon's own copies
// (tuner/arguments.h). Any thread.
#ifndef PHOBOS_DAEMON_PROCESS_SEGMENT_POOL_H_
#define PHOBOS_DAEMON_PROCESS_SEGMENT_POOL_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace phobos::process {

struct SegmentOwner {
  uid_t uid = 0;
  pid_t pid = 0;
  bool operator==(const SegmentOwner&) const = default;
};

class SegmentPool {
 private:
  struct Segment;

 public:
  // A segment while a job reads from it: nobody else is lent it meanwhile, and it stays mapped
  // whatever its owner does.
  class Loan {
   public:
    Loan() = default;
    Loan(Loan&& other) noexcept = default;
    Loan& operator=(Loan&& other) noexcept;
    ~Loan();

    uint64_t id() const;
    int64_t bytes() const;
    // 16 bytes to be sent to the side socket; empty when the owner holds the segment already.
    const std::string& ticket() const { return ticket_; }
    // The owner may write to it at any time: copy before checking.
    absl::Span<const std::byte> memory() const;

   private:
    friend class SegmentPool;
    Loan(SegmentPool* pool, std::shared_ptr<Segment> segment, std::string ticket);
    void Return();

    SegmentPool* pool_ = nullptr;  // outlives the loan
    std::shared_ptr<Segment> segment_;
    std::string ticket_;
  };

  // At most `bytes_per_uid` exist for one uid.
  explicit SegmentPool(int64_t bytes_per_uid);
  ~SegmentPool();
  SegmentPool(const SegmentPool&) = delete;
  SegmentPool& operator=(const SegmentPool&) = delete;

  // A segment of at least `bytes` for `owner`: one of `held` that is his and free, else a new one
  // with a ticket that is good until `now` + 30 s. ResourceExhausted: over the uid's limit, with
  // the numbers, or (MACHINE) the system gives no memory or descriptor, with the remedy.
  absl::StatusOr<Loan> Lend(const SegmentOwner& owner, int64_t bytes,
                            absl::Span<const uint64_t> held, absl::Time now);

  // What a redeemed ticket gives.
  struct Redeemed {
    uint64_t id = 0;
    int fd = -1;  // the pool's; valid until Release(id)
    int64_t bytes = 0;
  };
  // PermissionDenied: no such ticket (never given, used, or too old), or another uid's.
  absl::StatusOr<Redeemed> Redeem(const std::string& ticket, uid_t uid, absl::Time now);

  // The side connection that redeemed it is closed.
  void Release(uint64_t id);

  // Forgets segments whose ticket ran out, and gives the pages of segments that nobody used for a
  // while back to the system.
  void Tend(absl::Time now);

  int64_t bytes() const;

 private:
  absl::StatusOr<std::shared_ptr<Segment>> Make(const SegmentOwner& owner, int64_t bytes);
  std::shared_ptr<Segment> FreeOne(const SegmentOwner& owner, int64_t bytes,
                                   absl::Span<const uint64_t> held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t bytes_per_uid_;
  mutable absl::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Segment>> segments_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, uint64_t> tickets_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uid_t, int64_t> charged_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phobos::process

#endif  // PHOBOS_DAEMON_PROCESS_SEGMENT_POOL_H_
