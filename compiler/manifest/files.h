// SPDX-License-Identifier: Apache-2.0
//
// What the compiler writes: the JSON form of its messages, and files that appear whole or not at
// all. Any thread.
#ifndef PHOBOS_COMPILER_MANIFEST_FILES_H_
#define PHOBOS_COMPILER_MANIFEST_FILES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"

namespace phobos::compiler {

// proto3 JSON with the field names of the .proto file, indented, fields of default value left out.
absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message);

// Writes `bytes` to `folder`/`name` under a temporary name beside it and renames. Errors:
// Unavailable with the system's word and the path.
absl::Status WriteFile(const std::string& folder, std::string_view name, std::string_view bytes);

// Makes `folder` and those above it that are missing. Errors: as WriteFile.
absl::Status MakeFolder(const std::string& folder);

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_MANIFEST_FILES_H_
