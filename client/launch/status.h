// SPDX-License-Identifier: Apache-2.0
//
// Status and StatusOr of the client's rooms: what absl's are elsewhere, in the standard library
// alone, because libphobos.so must need nothing but libc (Debian's Abseil cannot be linked into
// it). Codes are gRPC's numbers. Any thread.
#ifndef PHOBOS_CLIENT_LAUNCH_STATUS_H_
#define PHOBOS_CLIENT_LAUNCH_STATUS_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace phobos {

struct ErrorDetail;  // client/stub/wire/types.h

// Canonical codes, as on the wire.
enum class Code {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(Code code, std::string message, std::shared_ptr<const ErrorDetail> detail = nullptr)
      : code_(code), message_(std::move(message)), detail_(std::move(detail)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  // What was wrong and what to do, for a person; empty when OK.
  const std::string& message() const { return message_; }
  // The kernel, the key and the rest of what is known of an error; null: nothing more.
  const std::shared_ptr<const ErrorDetail>& detail() const { return detail_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
  std::shared_ptr<const ErrorDetail> detail_;
};

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  StatusOr(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  // REQUIRES: ok().
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_LAUNCH_STATUS_H_
