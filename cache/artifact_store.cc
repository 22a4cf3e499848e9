// SPDX-License-Identifier: Apache-2.0
#include "cache/artifact_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "base/concat.h"
#include "base/digest.h"
#include "base/fd.h"
#include "base/read_to_end.h"
#include "base/status_macros.h"

namespace phobos::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryPrefix = ".writing-";
constexpr auto kAbandonedAfter = std::chrono::hours(1);

// A digest and an extension become a file name, and both come from outside.
absl::Status CheckName(std::string_view digest, std::string_view extension) {
  const bool plain =
      !extension.empty() && extension.size() <= 16 && absl::c_all_of(extension, [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c));
      });
  if (IsSha256Hex(digest) && plain) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat("\"", digest.substr(0, 80), ".", extension.substr(0, 80),
             "\" names no artifact; it is 64 lower-case hexadecimal digits, a dot, and "
             "letters or digits"));
}

absl::Status FromErrno(std::string_view call, const std::string& path) {
  return absl::ErrnoToStatus(errno, Concat(call, " ", path));
}

// The store's own disk refuses: no fault of the artifact's, so never NotFound or DataLoss.
absl::Status Refused(std::string_view call, const std::string& path) {
  return absl::UnavailableError(
      Concat("the kernel cache cannot take an artifact (", FromErrno(call, path).message(), ")"));
}

// NotFound: no file is there, a folder perhaps.
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return FromErrno("open", path);
  std::string bytes;
  const int code = ReadToEnd(file.get(), bytes);
  if (code == EISDIR) return absl::NotFoundError(Concat(path, " is a folder"));
  if (code != 0) return absl::ErrnoToStatus(code, Concat("read ", path));
  return bytes;
}

// Writes and syncs a new file with these bytes under an unused name in `folder`, and returns its
// path.
absl::StatusOr<std::string> WriteTemporary(const std::string& folder, std::string_view bytes) {
  // Somebody may have removed the folder under a running daemon.
  std::error_code error;
  fs::create_directories(folder, error);
  std::string path = Concat(folder, "/", kTemporaryPrefix, "XXXXXX");
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) return Refused("mkostemp", path);
  absl::Cleanup remove = [&] { unlink(path.c_str()); };
  absl::Cleanup closing = [&] { close(descriptor); };
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Refused("write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  // Readable to all and, as a shared object, executable.
  if (fchmod(descriptor, 0755) != 0) return Refused("fchmod", path);
  if (fdatasync(descriptor) != 0) return Refused("fdatasync", path);
  std::move(remove).Cancel();
  return path;
}

struct File {
  fs::path path;
  fs::file_time_type used;
  int64_t bytes = 0;
};

// The artifacts of a folder. One that another process removes meanwhile is left out.
absl::StatusOr<std::vector<File>> Artifacts(const std::string& folder) {
  std::vector<File> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const bool regular = at->is_regular_file(gone);
    const auto used = at->last_write_time(gone);
    const auto bytes = at->file_size(gone);
    if (gone || !regular || at->path().filename().string().starts_with('.')) continue;
    files.push_back({.path = at->path(), .used = used, .bytes = static_cast<int64_t>(bytes)});
  }
  if (error) return absl::ErrnoToStatus(error.value(), Concat("readdir ", folder));
  return files;
}

void RemoveAbandoned(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const auto written = at->last_write_time(gone);
    if (gone || !at->path().filename().string().starts_with(kTemporaryPrefix)) continue;
    if (fs::file_time_type::clock::now() - written > kAbandonedAfter) fs::remove(at->path(), gone);
  }
}

}  // namespace

absl::StatusOr<ArtifactStore> ArtifactStore::Open(std::string folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && !fs::is_directory(folder, error))
    error = std::make_error_code(std::errc::not_a_directory);
  if (error) return absl::ErrnoToStatus(error.value(), Concat("mkdir ", folder));
  RemoveAbandoned(folder);
  return ArtifactStore(std::move(folder));
}

absl::StatusOr<std::string> ArtifactStore::Adopt(const std::string& path, std::string_view digest,
                                                 std::string_view extension) {
  RETURN_IF_ERROR(CheckName(digest, extension));
  std::string place = Concat(folder_, "/", digest, ".", extension);
  if (Find(digest, extension).ok()) return place;
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  if (Sha256Hex(bytes) != digest) {
    return absl::DataLossError(
        Concat(path, " does not have the digest ", digest, "; compile it again"));
  }
  ASSIGN_OR_RETURN(const std::string temporary, WriteTemporary(folder_, bytes));
  if (rename(temporary.c_str(), place.c_str()) != 0) {
    const absl::Status status = Refused("rename", temporary);
    unlink(temporary.c_str());
    return status;
  }
  return place;
}

absl::StatusOr<std::string> ArtifactStore::Find(std::string_view digest,
                                                std::string_view extension) {
  RETURN_IF_ERROR(CheckName(digest, extension));
  std::string place = Concat(folder_, "/", digest, ".", extension);
  const absl::StatusOr<std::string> bytes = ReadFile(place);
  if (!bytes.ok()) {
    return absl::NotFoundError(Concat("artifact ", digest, ".", extension, " is not in ", folder_));
  }
  if (Sha256Hex(*bytes) != digest) {
    unlink(place.c_str());
    return absl::NotFoundError(Concat("artifact ", place, " was damaged, and is removed"));
  }
  // On a read-only disk it can be used though its time cannot be renewed.
  utimensat(AT_FDCWD, place.c_str(), nullptr, 0);
  return place;
}

absl::StatusOr<ArtifactStats> ArtifactStore::Trim(int64_t bytes) {
  ASSIGN_OR_RETURN(std::vector<File> files, Artifacts(folder_));
  absl::c_sort(files, [](const File& a, const File& b) {
    return a.used != b.used ? a.used < b.used : a.path < b.path;
  });
  ArtifactStats left = {.files = static_cast<int64_t>(files.size())};
  for (const File& file : files) left.bytes += file.bytes;
  for (const File& file : files) {
    if (left.bytes <= bytes) break;
    if (unlink(file.path.c_str()) != 0 && errno != ENOENT)
      return FromErrno("unlink", file.path.string());
    left.bytes -= file.bytes;
    --left.files;
  }
  return left;
}

absl::StatusOr<ArtifactStats> ArtifactStore::Stats() const {
  ASSIGN_OR_RETURN(const std::vector<File> files, Artifacts(folder_));
  ArtifactStats stats = {.files = static_cast<int64_t>(files.size())};
  for (const File& file : files) stats.bytes += file.bytes;
  return stats;
}

}  // namespace phobos::cache
