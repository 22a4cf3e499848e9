// SPDX-License-Identifier: Apache-2.0
//
// Fd owns one file descriptor and closes it when destroyed. Movable, not copyable; no more
// synchronized than an int.
#ifndef PHOBOS_BASE_FD_H_
#define PHOBOS_BASE_FD_H_

#include <unistd.h>

#include <utility>

namespace phobos {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}  // takes over; -1: none
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // Gives the descriptor to the caller.
  int Release() { return std::exchange(fd_, -1); }
  // Closes what is owned and takes over `fd`. An error of close() is not told: nothing can be done.
  void Reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace phobos

#endif  // PHOBOS_BASE_FD_H_
