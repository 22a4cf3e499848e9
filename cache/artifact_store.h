// SPDX-License-Identifier: Apache-2.0
//
// ArtifactStore keeps compiled kernels of one chip as files
// <cache>/<chip>/kernels/<digest>.<extension>, named by the SHA-256 of their bytes: written under a
// temporary name, synced, renamed, so a name that exists is whole. Capped in size, least recently
// used go first (Trim); an artifact can always be compiled again. Any thread, any process.
#ifndef PHOBOS_CACHE_ARTIFACT_STORE_H_
#define PHOBOS_CACHE_ARTIFACT_STORE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace phobos::cache {

struct ArtifactStats {
  int64_t files = 0;
  int64_t bytes = 0;
};

class ArtifactStore {
 public:
  // `folder` is made when missing, 0755. Temporary files older than an hour are removed.
  static absl::StatusOr<ArtifactStore> Open(std::string folder);

  // Takes the file at `path` (same file system or not) into the store and returns its final path.
  // `digest` is checked against the bytes: DataLoss when they differ. An artifact that is here
  // already is left as it is; a folder that somebody removed is made again. NotFound: no file at
  // `path`. Unavailable: the store's disk refuses, and how; the remedy is the caller's to know.
  absl::StatusOr<std::string> Adopt(const std::string& path, std::string_view digest,
                                    std::string_view extension);

  // Path of an artifact, its time of use renewed; NotFound when it is not here. Its bytes are read
  // and compared with the digest: one that was damaged is removed and is not here.
  absl::StatusOr<std::string> Find(std::string_view digest, std::string_view extension);

  // Removes the least recently used artifacts until `bytes` are left.
  absl::StatusOr<ArtifactStats> Trim(int64_t bytes);

  absl::StatusOr<ArtifactStats> Stats() const;

  const std::string& folder() const { return folder_; }

 private:
  explicit ArtifactStore(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

}  // namespace phobos::cache

#endif  // PHOBOS_CACHE_ARTIFACT_STORE_H_
