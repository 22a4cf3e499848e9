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
// same object gives the same bytes; nothing is written to a disk. Errors: Unavailable with the
// system's word where the machine lacks descriptors, memory or threads. Internal with lld's words:
// an undefined symbol, any fault of lld. Aborted: lld broke off this link or an earlier one, and no
// further link of this process can be believed.
absl::StatusOr<std::string> LinkSharedObject(std::string_view object);

}  // namespace phobos::compiler::host

#endif  // PHOBOS_COMPILER_CODEGEN_HOST_OBJECT_LINK_H_
