// SPDX-License-Identifier: Apache-2.0
//
// The version of the daemon, as clients are told. Constant.
#ifndef PHOBOS_DAEMON_MAIN_VERSION_H_
#define PHOBOS_DAEMON_MAIN_VERSION_H_

namespace phobos {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace phobos

#endif  // PHOBOS_DAEMON_MAIN_VERSION_H_
