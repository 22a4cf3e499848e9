// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/link/launch_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <utility>

#include "daemon/error/error.h"

namespace phobos::worker {

int64_t MonotonicNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

absl::StatusOr<LaunchMark> LaunchMark::Create() {
  const int fd = memfd_create("phobos-launch-mark", MFD_CLOEXEC);
  if (fd < 0) return error::FromErrno(errno, "memfd_create");
  if (ftruncate(fd, sizeof(LaunchMarkPage)) != 0) {
    const int code = errno;
    close(fd);
    return error::FromErrno(code, "ftruncate");
  }
  auto mark = Attach(fd);
  if (mark.ok()) mark->Clear();
  return mark;
}

absl::StatusOr<LaunchMark> LaunchMark::Attach(int fd) {
  void* page = mmap(nullptr, sizeof(LaunchMarkPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) {
    const int code = errno;
    close(fd);
    return error::FromErrno(code, "mmap");
  }
  return LaunchMark(fd, static_cast<LaunchMarkPage*>(page));
}

LaunchMark::LaunchMark(LaunchMark&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), page_(std::exchange(other.page_, nullptr)) {}

LaunchMark& LaunchMark::operator=(LaunchMark&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(page_, other.page_);
  return *this;
}

LaunchMark::~LaunchMark() {
  if (page_ != nullptr) munmap(page_, sizeof(LaunchMarkPage));
  if (fd_ >= 0) close(fd_);
}

void LaunchMark::Begin(int variant) {
  page_->variant.store(variant);
  page_->started_ns.store(MonotonicNs());
}

void LaunchMark::End() {
  page_->ended_ns.store(MonotonicNs());
  page_->started_ns.store(0);
}

void LaunchMark::Clear() {
  page_->started_ns.store(0);
  page_->ended_ns.store(0);
  page_->variant.store(-1);
}

}  // namespace phobos::worker
