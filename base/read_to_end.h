// SPDX-License-Identifier: Apache-2.0
//
// Reads what is left of an open file. Not the opening, and no message: the caller knows what the
// file is to it. A stream of the language's library does not serve, for it throws where the system
// refuses a read. Any thread.
#ifndef PHOBOS_BASE_READ_TO_END_H_
#define PHOBOS_BASE_READ_TO_END_H_

#include <errno.h>
#include <unistd.h>

#include <cstddef>
#include <string>

namespace phobos {

// Appends all that `fd` still gives to `bytes`. 0, or the errno of the read that failed; what came
// before it is there.
inline int ReadToEnd(int fd, std::string& bytes) {
  constexpr size_t kStep = size_t{64} << 10;
  size_t size = bytes.size();
  while (true) {
    bytes.resize(size + kStep);
    const ssize_t got = read(fd, bytes.data() + size, kStep);
    if (got < 0 && errno == EINTR) continue;
    const int code = got < 0 ? errno : 0;
    if (got > 0) size += static_cast<size_t>(got);
    bytes.resize(size);
    if (got <= 0) return code;
  }
}

}  // namespace phobos

#endif  // PHOBOS_BASE_READ_TO_END_H_
