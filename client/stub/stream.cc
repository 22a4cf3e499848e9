// SPDX-License-Identifier: Apache-2.0
#include "client/stub/stream.h"

#include <charconv>
#include <memory>
#include <utility>

#include "client/stub/wire/codec.h"
#include "client/stub/wire/types.h"

namespace phobos::stub {
namespace {

constexpr size_t kPrefixBytes = 5;  // compressed or not, then the size, big-endian
// Results with all samples of a large space are the longest messages: some megabytes.
constexpr size_t kLongestMessage = 32 << 20;

// HTTP/2's error codes that mean something of their own here.
constexpr uint32_t kRefusedStream = 7;
constexpr uint32_t kCancel = 8;
constexpr uint32_t kEnhanceYourCalm = 11;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// grpc-message: bytes that are no plain ASCII come as %XX; what is no such escape stands for
// itself.
std::string PercentDecoded(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      plain += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Standard base64, padding or not; nothing for anything else.
std::optional<std::string> Base64Decoded(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    uint32_t digit = 0;
    if (c >= 'A' && c <= 'Z') {
      digit = static_cast<uint32_t>(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      digit = static_cast<uint32_t>(c - 'a' + 26);
    } else if (c >= '0' && c <= '9') {
      digit = static_cast<uint32_t>(c - '0' + 52);
    } else if (c == '+') {
      digit = 62;
    } else if (c == '/') {
      digit = 63;
    } else {
      return std::nullopt;
    }
    bits = bits << 6 | digit;
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>(bits >> held & 0xff);
    }
  }
  return bytes;
}

Code CodeOf(int grpc_status) {
  const bool is_known = grpc_status >= 0 && grpc_status <= static_cast<int>(Code::kDataLoss);
  if (is_known) return static_cast<Code>(grpc_status);
  // 16 is gRPC's "unauthenticated", which our own list leaves out.
  return grpc_status == 16 ? Code::kPermissionDenied : Code::kUnknown;
}

std::shared_ptr<const ErrorDetail> DetailOf(const Stream& stream) {
  const std::optional<std::string> bytes = Base64Decoded(stream.status_details);
  if (!bytes.has_value() || bytes->empty()) return nullptr;
  const StatusOr<std::optional<ErrorDetail>> detail = DecodeErrorDetail(*bytes);
  // A detail that cannot be read is no reason to lose the error itself.
  if (!detail.ok() || !detail->has_value()) return nullptr;
  return std::make_shared<const ErrorDetail>(**detail);
}

Status EndWithoutStatus(const Stream& stream) {
  if (stream.http_status != 0 && stream.http_status != 200) {
    return Status(Code::kUnavailable, "the peer answers HTTP status " +
                                          std::to_string(stream.http_status) +
                                          ", so it is no gRPC server");
  }
  switch (stream.close_code) {
    case kRefusedStream:
      return Status(Code::kUnavailable, "the daemon takes no new calls; it is about to end");
    case kCancel:
      return Status(Code::kCancelled, "the daemon gave up the call");
    case kEnhanceYourCalm:
      return Status(Code::kResourceExhausted, "the daemon has too much to do for this caller");
    default:
      return Status(Code::kInternal, "the call ended without a status (HTTP/2 code " +
                                         std::to_string(stream.close_code) + ")");
  }
}

}  // namespace

void Frame(std::string_view message, std::string& output) {
  const auto size = static_cast<uint32_t>(message.size());
  output += '\0';
  for (const int shift : {24, 16, 8, 0}) output += static_cast<char>(size >> shift & 0xff);
  output += message;
}

void TakeHeader(Stream& stream, std::string_view name, std::string_view value) {
  int number = 0;
  const bool is_number =
      std::from_chars(value.data(), value.data() + value.size(), number).ec == std::errc();
  if (name == ":status" && is_number) {
    stream.http_status = number;
  } else if (name == "grpc-status") {
    stream.grpc_status = is_number ? number : static_cast<int>(Code::kUnknown);
  } else if (name == "grpc-message") {
    stream.grpc_message = value;
  } else if (name == "grpc-status-details-bin") {
    stream.status_details = value;
  } else if (name == "content-type") {
    stream.content_type = value;
    if (stream.http_status == 200 && !value.starts_with("application/grpc")) {
      stream.failure = Status(Code::kUnavailable, "the peer answers with " + std::string(value) +
                                                      ", so it is no gRPC server");
    }
  } else if (name == "grpc-encoding" && value != "identity") {
    stream.failure = Status(Code::kUnimplemented,
                            "the daemon compresses its answers with " + std::string(value) +
                                ", which this client does not read; turn compression off there");
  }
}

void TakeBody(Stream& stream, std::string_view bytes) {
  stream.input += bytes;
  std::string_view rest = stream.input;
  while (stream.failure.ok() && rest.size() >= kPrefixBytes) {
    size_t size = 0;
    for (size_t i = 1; i < kPrefixBytes; ++i) size = size << 8 | static_cast<uint8_t>(rest[i]);
    if (rest[0] != 0) {
      stream.failure = Status(Code::kUnimplemented,
                              "the daemon sent a compressed message, which this client does not "
                              "read; turn compression off there");
    } else if (size > kLongestMessage) {
      stream.failure =
          Status(Code::kResourceExhausted, "the daemon sent a message of " + std::to_string(size) +
                                               " bytes; at most " +
                                               std::to_string(kLongestMessage) + " are read");
    } else if (rest.size() < kPrefixBytes + size) {
      break;
    } else {
      stream.messages.emplace_back(rest.substr(kPrefixBytes, size));
      rest.remove_prefix(kPrefixBytes + size);
    }
  }
  stream.input.erase(0, stream.input.size() - rest.size());
}

Status EndOf(const Stream& stream) {
  if (!stream.failure.ok()) return stream.failure;
  if (!stream.grpc_status.has_value()) return EndWithoutStatus(stream);
  const Code code = CodeOf(*stream.grpc_status);
  if (code == Code::kOk) {
    if (stream.input.empty()) return Status();
    return Status(Code::kInternal, "the daemon ended the call in the middle of a message");
  }
  return Status(code, PercentDecoded(stream.grpc_message), DetailOf(stream));
}

}  // namespace phobos::stub
