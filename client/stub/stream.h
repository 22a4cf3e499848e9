// SPDX-License-Identifier: Apache-2.0
//
// Stream: what is known of one call on a connection, with gRPC's framing of messages and its status
// out of headers and trailers. No socket and no nghttp2 in here; the connection (connection.cc)
// feeds it, under its lock.
#ifndef PHOBOS_CLIENT_STUB_STREAM_H_
#define PHOBOS_CLIENT_STUB_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "client/launch/status.h"

namespace phobos::stub {

struct Stream {
  int32_t id = 0;

  // Ours to the server: framed bytes of which `sent` are gone.
  std::string output;
  size_t sent = 0;
  bool output_ends = false;  // after `output` comes nothing

  // The server's to us.
  std::string input;                 // of a message that is not whole yet
  std::deque<std::string> messages;  // whole, not yet received
  size_t unconsumed = 0;             // bytes for which the server was given no new window yet
  int http_status = 0;
  std::string content_type;
  std::string encoding;
  std::optional<int> grpc_status;
  std::string grpc_message;    // still percent-encoded
  std::string status_details;  // still base64
  bool has_ended = false;      // the server's side
  bool is_closed = false;      // both sides
  uint32_t close_code = 0;     // HTTP/2's
  bool is_refused = false;
  Status failure;  // what we ourselves found wrong; the stream is then reset
};

// Appends a message with gRPC's prefix.
void Frame(std::string_view message, std::string& output);

void TakeHeader(Stream& stream, std::string_view name, std::string_view value);

// Takes a piece of the body; fills messages, or failure.
void TakeBody(Stream& stream, std::string_view bytes);

// How the call ended. REQUIRES: stream.has_ended, or failure is set.
Status EndOf(const Stream& stream);

}  // namespace phobos::stub

#endif  // PHOBOS_CLIENT_STUB_STREAM_H_
