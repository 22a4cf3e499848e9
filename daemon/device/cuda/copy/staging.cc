// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cuda/copy/staging.h"

#include <algorithm>
#include <utility>

#include "base/parallel.h"
#include "base/status_macros.h"

namespace phobos::device {
namespace {

namespace cuda = launch::cuda;

constexpr int64_t kPieceBytes = int64_t{8} << 20;
// Less is copied by the driver as fast.
constexpr int64_t kLeastBytes = int64_t{1} << 20;

uint64_t Address(const std::byte* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace

Staging::Staging(std::shared_ptr<const cuda::CudaDriver> driver, CardStream& stream)
    : driver_(std::move(driver)), stream_(stream) {
  for (Piece& piece : pieces_) {
    void* memory = nullptr;
    const cuda::Result result =
        (*driver_)->host_allocate(&memory, kPieceBytes, cuda::kHostPortable);
    if (result == cuda::kSuccess) piece.memory = static_cast<std::byte*>(memory);
  }
}

Staging::~Staging() {
  for (const Piece& piece : pieces_) {
    if (piece.memory != nullptr) (*driver_)->host_free(piece.memory);
  }
}

bool Staging::IsWorthIt(int64_t bytes) const {
  return bytes >= kLeastBytes && pieces_[0].memory != nullptr && pieces_[1].memory != nullptr;
}

absl::Status Staging::Upload(uint64_t to, const std::byte* from, int64_t bytes) {
  if (!IsWorthIt(bytes)) return stream_.Copy(to, Address(from), bytes, /*is_on_card=*/false);
  for (int64_t at = 0, part = 0; at < bytes; at += kPieceBytes, ++part) {
    Piece& piece = pieces_[static_cast<size_t>(part % 2)];
    const int64_t size = std::min(kPieceBytes, bytes - at);
    RETURN_IF_ERROR(stream_.Await(piece.mark));
    CopyBytes(piece.memory, from + at, size);
    RETURN_IF_ERROR(stream_.Copy(to + static_cast<uint64_t>(at), Address(piece.memory), size,
                                 /*is_on_card=*/false));
    ASSIGN_OR_RETURN(piece.mark, stream_.Mark());
  }
  return absl::OkStatus();
}

absl::Status Staging::Fetch(Piece& piece, uint64_t from, int64_t bytes) {
  RETURN_IF_ERROR(stream_.Copy(Address(piece.memory), from, bytes, /*is_on_card=*/false));
  ASSIGN_OR_RETURN(piece.mark, stream_.Mark());
  return absl::OkStatus();
}

absl::Status Staging::Download(std::byte* to, uint64_t from, int64_t bytes) {
  if (!IsWorthIt(bytes)) return stream_.Copy(Address(to), from, bytes, /*is_on_card=*/false);
  const auto size = [bytes](int64_t at) { return std::min(kPieceBytes, bytes - at); };
  RETURN_IF_ERROR(Fetch(pieces_[0], from, size(0)));
  for (int64_t at = 0, part = 0; at < bytes; at += kPieceBytes, ++part) {
    const int64_t next = at + kPieceBytes;
    if (next < bytes) {
      RETURN_IF_ERROR(Fetch(pieces_[static_cast<size_t>((part + 1) % 2)],
                            from + static_cast<uint64_t>(next), size(next)));
    }
    const Piece& piece = pieces_[static_cast<size_t>(part % 2)];
    RETURN_IF_ERROR(stream_.Await(piece.mark));
    CopyBytes(to + at, piece.memory, size(at));
  }
  return absl::OkStatus();
}

}  // namespace phobos::device
