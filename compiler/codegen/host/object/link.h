// SPDX-License-Identifier: Apache-2.0
//
// One object file to one shared object by lld, inside this process. lld keeps global state, so
// links are serialized here (0.4 ms each). Any thread.
#ifndef PHOBOS_COMPILER_CODEGEN_HOST_OBJECT_LINK_H_
#define PHOBOS_COMPILER_CODEGEN_HOST_OBJECT_LINK_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace phobos::compiler::host {

// The bytes of a shared object that needs no other library and exports what `object` exports. The
// same object gives the same bytes. Internal, with lld's words: an undefined symbol, no room for
// temporary files, any fault of lld.
absl::StatusOr<std::string> LinkSharedObject(std::string_view object);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_OBJECT_LINK_H_
