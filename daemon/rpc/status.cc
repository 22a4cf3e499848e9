// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/status.h"

#include <string>

#include "daemon/error/error.h"
#include "proto/google/rpc/status.pb.h"

namespace phobos::rpc {
namespace {

// A status travels in HTTP/2 headers, of which gRPC accepts 8 KiB: the message percent-encoded, the
// details in base64.
constexpr size_t kLongestEncodedMessage = 2400;
constexpr size_t kLongestDetails = 4000;

// The longest beginning of `text` of which the percent-encoded form has at most `limit` bytes, cut
// between characters.
std::string Fitting(absl::string_view text, size_t limit) {
  size_t encoded = 0;
  size_t end = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_continuation = (byte & 0xC0) == 0x80;
    if (!is_continuation) end = i;
    encoded += byte < 0x20 || byte > 0x7E || byte == '%' ? 3 : 1;
    if (encoded > limit) return std::string(text.substr(0, end));
  }
  return std::string(text);
}

// The detail, with the reasons of its variants shortened, then the last ones left out, until it
// fits.
std::string FittingDetails(google::rpc::Status& status, tuner::v1::ErrorDetail detail) {
  for (size_t longest = 400; longest >= 50; longest /= 2) {
    for (tuner::v1::VariantResult& variant : *detail.mutable_variants()) {
      variant.set_reason(Fitting(variant.reason(), longest));
    }
    status.clear_details();
    status.add_details()->PackFrom(detail);
    if (status.ByteSizeLong() <= kLongestDetails) return status.SerializeAsString();
  }
  while (detail.variants_size() > 0 && status.ByteSizeLong() > kLongestDetails) {
    detail.mutable_variants()->RemoveLast();
    status.mutable_details(0)->PackFrom(detail);
  }
  return status.SerializeAsString();
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.raw_code());
  google::rpc::Status details;
  details.set_code(code);
  details.set_message(Fitting(status.message(), kLongestEncodedMessage));
  return grpc::Status(code, details.message(), FittingDetails(details, error::DetailOf(status)));
}

}  // namespace phobos::rpc
