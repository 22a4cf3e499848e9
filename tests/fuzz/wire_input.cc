// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/wire_input.h"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/fd.h"
#include "client/stub/connection.h"
#include "client/stub/stream.h"
#include "client/stub/wire/codec.h"
#include "client/stub/wire/types.h"
#include "client/stub/wire/verbs.h"

namespace phobos::testing {
namespace {

using stub::Decode;
using stub::Encode;

template <typename Message>
void DecodeAsMessage(std::string_view bytes) {
  const StatusOr<Message> message = Decode<Message>(bytes);
  if (!message.ok()) return;
  const std::string once = Encode(*message);
  const StatusOr<Message> again = Decode<Message>(once);
  if (!again.ok() || Encode(*again) != once) abort();
}

void ReadBody(std::string_view bytes) {
  // In pieces, of which the sizes come from the input too.
  stub::Stream stream;
  stub::TakeHeader(stream, ":status", "200");
  while (!bytes.empty()) {
    const size_t size = std::min<size_t>(bytes.size(), 1 + static_cast<uint8_t>(bytes[0]) % 16);
    stub::TakeBody(stream, bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  stub::TakeHeader(stream, "grpc-status", "0");
  (void)stub::EndOf(stream);
}

void ReadStatus(std::string_view bytes) {
  stub::Stream stream;
  const size_t half = bytes.size() / 2;
  stub::TakeHeader(stream, ":status", "200");
  stub::TakeHeader(stream, "grpc-status", bytes.substr(0, half / 2));
  stub::TakeHeader(stream, "grpc-message", bytes.substr(0, half));
  stub::TakeHeader(stream, "grpc-status-details-bin", bytes.substr(half));
  (void)stub::EndOf(stream);
  (void)stub::DecodeErrorDetail(bytes);
}

// The bytes of a server that then hangs up, to a client in a call.
void ReadConnection(std::string_view bytes) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  const std::unique_ptr<stub::Connection> connection = stub::Connection::Open(Fd(ends[0]));
  Fd server(ends[1]);
  const std::unique_ptr<stub::Call> call =
      connection->Start("/phobos.tuner.v1.TunerService/Lookup", std::chrono::milliseconds(0));
  call->Send("request", true);
  if (write(server.get(), bytes.data(), bytes.size()) < 0) return;
  server.Reset();
  stub::Patience patience;
  patience.deadline = stub::Clock::now() + std::chrono::seconds(5);
  while (true) {
    const StatusOr<std::optional<std::string>> message = call->Receive(patience);
    // A peer that hung up is noticed at once, whatever it said before: perhaps that it ran out of
    // time itself.
    if (stub::Clock::now() >= patience.deadline) abort();
    if (!message.ok() || !message->has_value()) return;
  }
}

}  // namespace

void TakeWireInput(std::string_view input) {
  using Reader = void (*)(std::string_view);
  constexpr Reader kReaders[] = {
      DecodeAsMessage<KernelDescription>,
      DecodeAsMessage<Result>,
      DecodeAsMessage<ErrorDetail>,
      DecodeAsMessage<stub::HelloResponse>,
      DecodeAsMessage<stub::LookupRequest>,
      DecodeAsMessage<stub::LookupResponse>,
      DecodeAsMessage<stub::TuneRequest>,
      DecodeAsMessage<stub::TuneEvent>,
      DecodeAsMessage<stub::CompileResponse>,
      DecodeAsMessage<stub::ArtifactChunk>,
      DecodeAsMessage<stub::AdoptResponse>,
      ReadBody,
      ReadStatus,
      ReadConnection,
  };
  if (input.empty()) return;
  kReaders[static_cast<uint8_t>(input[0]) % std::size(kReaders)](input.substr(1));
}

}  // namespace phobos::testing
