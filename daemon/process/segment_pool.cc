// SPDX-License-Identifier: Apache-2.0
#include "daemon/process/segment_pool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/fd.h"
#include "base/status_macros.h"
#include "daemon/error/error.h"

namespace phobos::process {
namespace {

constexpr absl::Duration kTicketLife = absl::Seconds(30);
constexpr size_t kTicketBytes = 16;
// Pages of a segment that rested this long go back to the system; a busy client's next tune comes
// sooner.
constexpr absl::Duration kRest = absl::Seconds(30);

int64_t WholePages(int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  return std::max(page, (bytes + page - 1) / page * page);
}

absl::StatusOr<std::string> RandomTicket() {
  std::string ticket(kTicketBytes, '\0');
  if (getrandom(ticket.data(), ticket.size(), 0) != ssize_t(kTicketBytes)) {
    return absl::ErrnoToStatus(errno, "getrandom");
  }
  return ticket;
}

}  // namespace

struct SegmentPool::Segment {
  uint64_t id = 0;
  SegmentOwner owner;
  int64_t bytes = 0;
  Fd fd;
  std::byte* memory = nullptr;
  // Guarded by the pool's mutex.
  bool is_lent = false;
  bool is_held = false;       // a side connection is open for it
  bool is_forgotten = false;  // by the pool: it goes with its loan
  bool has_pages = true;      // perhaps
  absl::Time ticket_end;
  absl::Time rested_since;

  ~Segment() {
    if (memory != nullptr) munmap(memory, bytes);
  }
};

SegmentPool::Loan::Loan(SegmentPool* pool, std::shared_ptr<Segment> segment, std::string ticket)
    : pool_(pool), segment_(std::move(segment)), ticket_(std::move(ticket)) {}

SegmentPool::Loan& SegmentPool::Loan::operator=(Loan&& other) noexcept {
  if (this != &other) {
    Return();
    pool_ = other.pool_;
    segment_ = std::move(other.segment_);
    ticket_ = std::move(other.ticket_);
  }
  return *this;
}

SegmentPool::Loan::~Loan() { Return(); }

void SegmentPool::Loan::Return() {
  if (segment_ == nullptr) return;
  {
    const absl::MutexLock lock(&pool_->mutex_);
    segment_->is_lent = false;
    if (segment_->is_forgotten) pool_->charged_[segment_->owner.uid] -= segment_->bytes;
    segment_->rested_since = absl::Now();
  }
  segment_.reset();
}

uint64_t SegmentPool::Loan::id() const { return segment_->id; }
int64_t SegmentPool::Loan::bytes() const { return segment_->bytes; }
absl::Span<const std::byte> SegmentPool::Loan::memory() const {
  return {segment_->memory, static_cast<size_t>(segment_->bytes)};
}

SegmentPool::SegmentPool(int64_t bytes_per_uid) : bytes_per_uid_(bytes_per_uid) {}
SegmentPool::~SegmentPool() = default;

absl::StatusOr<SegmentPool::Loan> SegmentPool::Lend(const SegmentOwner& owner, int64_t bytes,
                                                    absl::Span<const uint64_t> held,
                                                    absl::Time now) {
  bytes = WholePages(bytes);
  const absl::MutexLock lock(&mutex_);
  if (std::shared_ptr<Segment> segment = FreeOne(owner, bytes, held); segment != nullptr) {
    segment->is_lent = true;
    segment->has_pages = true;
    return Loan(this, std::move(segment), "");
  }
  int64_t& charged = charged_[owner.uid];
  if (bytes > bytes_per_uid_ - charged) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the arguments need ", bytes, " bytes of shared memory; uid ", owner.uid, " has ", charged,
        " of at most ", bytes_per_uid_, ": close other clients, or raise --segment-bytes"));
  }
  ASSIGN_OR_RETURN(std::string ticket, RandomTicket());
  ASSIGN_OR_RETURN(std::shared_ptr<Segment> segment, Make(owner, bytes));
  segment->id = ++last_id_;
  segment->is_lent = true;
  segment->ticket_end = now + kTicketLife;
  charged += bytes;
  segments_[segment->id] = segment;
  tickets_[ticket] = segment->id;
  return Loan(this, std::move(segment), std::move(ticket));
}

std::shared_ptr<SegmentPool::Segment> SegmentPool::FreeOne(const SegmentOwner& owner, int64_t bytes,
                                                           absl::Span<const uint64_t> held) {
  std::shared_ptr<Segment> best;
  for (const uint64_t id : held) {
    const auto found = segments_.find(id);
    if (found == segments_.end()) continue;
    const std::shared_ptr<Segment>& segment = found->second;
    const bool fits =
        segment->owner == owner && segment->is_held && !segment->is_lent && segment->bytes >= bytes;
    if (fits && (best == nullptr || segment->bytes < best->bytes)) best = segment;
  }
  return best;
}

absl::StatusOr<std::shared_ptr<SegmentPool::Segment>> SegmentPool::Make(const SegmentOwner& owner,
                                                                        int64_t bytes) {
  auto segment = std::make_shared<Segment>();
  segment->owner = owner;
  segment->bytes = bytes;
  segment->fd = Fd(memfd_create("phobos-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment->fd.ok()) return error::FromErrno(errno, "memfd_create");
  if (ftruncate(segment->fd.get(), bytes) != 0) return error::FromErrno(errno, "ftruncate");
  // Its size is final, so that no client can make a read of ours fault.
  if (fcntl(segment->fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return absl::ErrnoToStatus(errno, "F_ADD_SEALS");
  }
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, segment->fd.get(), 0);
  if (memory == MAP_FAILED) return error::FromErrno(errno, "mmap");
  segment->memory = static_cast<std::byte*>(memory);
  return segment;
}

absl::StatusOr<SegmentPool::Redeemed> SegmentPool::Redeem(const std::string& ticket, uid_t uid,
                                                          absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return absl::PermissionDeniedError("no such ticket");
  Segment& segment = *segments_.at(found->second);
  if (segment.owner.uid != uid || now > segment.ticket_end) {
    return absl::PermissionDeniedError("the ticket is too old, or another user's");
  }
  tickets_.erase(found);
  segment.is_held = true;
  return Redeemed{segment.id, segment.fd.get(), segment.bytes};
}

void SegmentPool::Release(uint64_t id) {
  const absl::MutexLock lock(&mutex_);
  Forget(id);
}

void SegmentPool::Forget(uint64_t id) {
  const auto found = segments_.find(id);
  if (found == segments_.end()) return;
  Segment& segment = *found->second;
  segment.is_held = false;
  segment.is_forgotten = true;
  // A loan keeps the memory until it ends, and so the charge.
  if (!segment.is_lent) charged_[segment.owner.uid] -= segment.bytes;
  segments_.erase(found);
}

void SegmentPool::Tend(absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  for (auto ticket = tickets_.begin(); ticket != tickets_.end();) {
    const auto current = ticket++;
    if (now <= segments_.at(current->second)->ticket_end) continue;
    Forget(current->second);
    tickets_.erase(current);
  }
  for (const auto& [id, segment] : segments_) {
    if (segment->is_lent || !segment->has_pages || now < segment->rested_since + kRest) continue;
    // The client keeps its mapping; it reads zeros and gets fresh pages when it writes again.
    fallocate(segment->fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, segment->bytes);
    segment->has_pages = false;
  }
}

int64_t SegmentPool::bytes() const {
  const absl::MutexLock lock(&mutex_);
  int64_t bytes = 0;
  for (const auto& [id, segment] : segments_) bytes += segment->bytes;
  return bytes;
}

}  // namespace phobos::process
