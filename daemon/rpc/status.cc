// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/status.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/error/error.h"
#include "proto/google/rpc/status.pb.h"

namespace phobos::rpc {
namespace {

// A status travels in HTTP/2 headers, of which gRPC accepts 8 KiB: the message percent-encoded, the
// details in base64.
constexpr size_t kLongestEncodedMessage = 2400;
constexpr size_t kLongestDetails = 4000;

// `text`, or the longest beginning of which the percent-encoded form has at most `limit` bytes, cut
// between characters, and " ..." behind it. Without blanks at its ends: a header that has some is
// refused by the client's HTTP/2, and with it all that the status says.
std::string Fitting(absl::string_view text, size_t limit) {
  text = absl::StripAsciiWhitespace(text);
  size_t encoded = 0;
  size_t end = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_continuation = (byte & 0xC0) == 0x80;
    if (!is_continuation) end = i;
    encoded += byte < 0x20 || byte > 0x7E || byte == '%' ? 3 : 1;
    if (encoded <= limit) continue;
    return absl::StrCat(absl::StripTrailingAsciiWhitespace(text.substr(0, end)), " ...");
  }
  return std::string(text);
}

// What is left of a variant in an error: which one it is and why it failed, in few words.
void Shorten(tuner::v1::VariantResult& variant, size_t longest_reason) {
  variant.set_reason(Fitting(variant.reason(), longest_reason));
  variant.clear_race_detail();
  variant.clear_artifact_digest();
}

// Shortens the reasons of the detail's variants, then leaves the last ones out, until it fits into
// `status`. Returns how many were left out.
int FitDetail(tuner::v1::ErrorDetail detail, google::rpc::Status& status) {
  const int variants = detail.variants_size();
  status.add_details()->PackFrom(detail);
  for (size_t longest = 400; longest >= 50 && status.ByteSizeLong() > kLongestDetails;
       longest /= 2) {
    for (auto& variant : *detail.mutable_variants()) Shorten(variant, longest);
    status.mutable_details(0)->PackFrom(detail);
  }
  while (detail.variants_size() > 0 && status.ByteSizeLong() > kLongestDetails) {
    detail.mutable_variants()->RemoveLast();
    status.mutable_details(0)->PackFrom(detail);
  }
  return variants - detail.variants_size();
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.raw_code());
  google::rpc::Status details;
  details.set_code(code);
  details.set_message(Fitting(status.message(), kLongestEncodedMessage));
  const int left_out = FitDetail(error::DetailOf(status), details);
  if (left_out > 0) {
    details.mutable_message()->append(
        absl::StrCat(" (", left_out, " more variants failed; their reasons do not fit in here)"));
  }
  return grpc::Status(code, details.message(), details.SerializeAsString());
}

}  // namespace phobos::rpc
