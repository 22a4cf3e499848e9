// SPDX-License-Identifier: Apache-2.0
//
// The release, as the daemon, the compiler and the clients say it of themselves.
#ifndef PHOBOS_BASE_VERSION_H_
#define PHOBOS_BASE_VERSION_H_

namespace phobos {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace phobos

#endif  // PHOBOS_BASE_VERSION_H_
