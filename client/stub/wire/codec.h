// SPDX-License-Identifier: Apache-2.0
//
// Messages to protobuf's wire format and back, by the field lists of fields.h and protozero. Pure,
// any thread. Instantiated for the messages that travel by themselves (codec.cc).
#ifndef PHOBOS_CLIENT_STUB_WIRE_CODEC_H_
#define PHOBOS_CLIENT_STUB_WIRE_CODEC_H_

#include <optional>
#include <string>
#include <string_view>

#include "client/launch/status.h"
#include "client/stub/wire/types.h"

namespace phobos::stub {

template <typename Message>
std::string Encode(const Message& message);

// Fields that are not known, or have another type than ours, are passed over. Internal: not a
// protobuf message.
template <typename Message>
StatusOr<Message> Decode(std::string_view bytes);

// The ErrorDetail inside the bytes of grpc-status-details-bin (google.rpc.Status), if there is one.
StatusOr<std::optional<ErrorDetail>> DecodeErrorDetail(std::string_view rpc_status);

}  // namespace phobos::stub

#endif  // PHOBOS_CLIENT_STUB_WIRE_CODEC_H_
