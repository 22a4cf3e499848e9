// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/cuda/copy/fetch.h"

#include <string.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "daemon/device/cuda/status.h"

namespace phobos::device {
namespace {

namespace cuda = launch::cuda;

// Allocations of other processes, open until this goes.
class Opened {
 public:
  explicit Opened(const cuda::CudaDriver& driver) : driver_(driver) {}
  ~Opened() {
    for (const auto& [handle, place] : places_) driver_->ipc_close(place.base);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  // Where the piece is here. No message has any of the handle.
  absl::StatusOr<uint64_t> AddressOf(const ForeignBytes& piece) {
    ASSIGN_OR_RETURN(const Place place, PlaceOf(piece));
    if (piece.offset_bytes < 0 || piece.bytes < 0 || piece.offset_bytes > place.bytes ||
        piece.bytes > place.bytes - piece.offset_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(piece.name, " has ", piece.bytes, " bytes at ", piece.offset_bytes,
                       " of its allocation on the card, which has ", place.bytes));
    }
    return place.base + static_cast<uint64_t>(piece.offset_bytes);
  }

 private:
  struct Place {
    cuda::DevicePointer base = 0;
    int64_t bytes = 0;
  };

  absl::StatusOr<Place> PlaceOf(const ForeignBytes& piece) {
    const auto found = places_.find(piece.handle);
    if (found != places_.end()) return found->second;
    cuda::IpcHandle handle = {};
    if (piece.handle.size() != sizeof(handle.reserved)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the CUDA IPC handle of ", piece.name, " has not the size of one"));
    }
    memcpy(handle.reserved, piece.handle.data(), sizeof(handle.reserved));
    Place place;
    cuda::Result result = driver_->ipc_open(&place.base, handle, cuda::kIpcLazyPeerAccess);
    if (result != cuda::kSuccess) return Refused(piece, "cuIpcOpenMemHandle", result);
    places_[piece.handle] = place;
    size_t bytes = 0;
    result = driver_->address_range(nullptr, &bytes, place.base);
    if (result != cuda::kSuccess) return Refused(piece, "cuMemGetAddressRange", result);
    place.bytes = static_cast<int64_t>(bytes);
    return places_[piece.handle] = place;
  }

  absl::Status Refused(const ForeignBytes& piece, const char* call, cuda::Result result) const {
    const absl::Status error = FromLaunch(driver_.Error(call, result));
    if (absl::IsAborted(error)) return error;
    return absl::FailedPreconditionError(
        absl::StrCat("the allocation of ", piece.name, " cannot be opened: ", error.message()));
  }

  const cuda::CudaDriver& driver_;
  std::map<std::string, Place> places_;  // by handle
};

}  // namespace

absl::Status FetchForeign(const cuda::CudaDriver& driver, CardStream& stream, Staging& staging,
                          absl::Span<const ForeignBytes> pieces) {
  Opened opened(driver);
  std::vector<uint64_t> addresses;
  for (const ForeignBytes& piece : pieces) {
    ASSIGN_OR_RETURN(addresses.emplace_back(), opened.AddressOf(piece));
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].kept == nullptr) continue;
    RETURN_IF_ERROR(stream.Copy(reinterpret_cast<uint64_t>(pieces[i].kept), addresses[i],
                                pieces[i].bytes, /*is_on_card=*/true));
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    RETURN_IF_ERROR(staging.Download(pieces[i].to, addresses[i], pieces[i].bytes));
  }
  return stream.Finish([](size_t) {}).status();
}

}  // namespace phobos::device
