// SPDX-License-Identifier: Apache-2.0
#include "compiler/manifest/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/concat.h"
#include "base/status_macros.h"
#include "google/protobuf/util/json_util.h"

namespace phobos::compiler {
namespace {

absl::Status SystemError(std::string_view call, const std::string& path, int code) {
  return absl::UnavailableError(Concat(call, " ", path, ": ", strerror(code)));
}

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("write", path, errno);
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const google::protobuf::util::Status status =
      google::protobuf::util::MessageToJsonString(message, &json, options);
  if (status.ok()) return json;
  return absl::InternalError(Concat("MessageToJsonString: ", status.ToString()));
}

absl::Status WriteFile(const std::string& folder, std::string_view name, std::string_view bytes) {
  const std::string path = Concat(folder, "/", name);
  const std::string temporary = Concat(path, ".", getpid(), ".tmp");
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return SystemError("open", temporary, errno);
  absl::Status status = WriteAll(fd, bytes, temporary);
  if (close(fd) != 0 && status.ok()) status = SystemError("close", temporary, errno);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
    status = SystemError("rename", path, errno);
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

absl::Status MakeFolder(const std::string& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) return SystemError("mkdir", folder, code.value());
  return absl::OkStatus();
}

}  // namespace phobos::compiler
