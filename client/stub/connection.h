// SPDX-License-Identifier: Apache-2.0
//
// One gRPC connection over a Unix socket: HTTP/2 by nghttp2, gRPC's framing and status by hand. It
// has no thread: whoever waits for an answer reads the socket, for all calls of the connection. Not
// for a forked child, which must open its own. Connection: any thread. Call: one thread at a time.
#ifndef PHOBOS_CLIENT_STUB_CONNECTION_H_
#define PHOBOS_CLIENT_STUB_CONNECTION_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "client/launch/status.h"
#include "client/stub/patience.h"

namespace phobos::stub {

class Session;
struct Stream;

// One call: unary or streaming, as the method has it. Destroyed before its end, it is cancelled.
class Call {
 public:
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Queues a message; `last` ends our side. Does not wait for the server. Errors show in Receive.
  void Send(std::string_view message, bool last);

  // The next message, or nothing when the server has ended the call well. Errors: the server's
  // status, with its ErrorDetail; DeadlineExceeded and Cancelled by patience; Unavailable when the
  // connection is lost. After an error or the end the call is over.
  StatusOr<std::optional<std::string>> Receive(const Patience& patience);

  // Receive's Unavailable tells of the end of the connection or of the server, or of a call that
  // the server never looked at: the call may be made again on another connection.
  bool is_lost() const;

 private:
  friend class Connection;
  Call(std::shared_ptr<Session> session, std::shared_ptr<Stream> stream)
      : session_(std::move(session)), stream_(std::move(stream)) {}
  const std::shared_ptr<Session> session_;
  const std::shared_ptr<Stream> stream_;
};

class Connection {
 public:
  // Takes over a connected socket and greets. Does not wait for the server.
  static std::unique_ptr<Connection> Open(Fd socket);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // False when it is lost or the server lets no new call in (GOAWAY): open another.
  bool is_usable();

  // Begins a call of "/package.Service/Method". `limit` is told to the server; zero: none.
  std::unique_ptr<Call> Start(const std::string& method, std::chrono::milliseconds limit);

 private:
  explicit Connection(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  const std::shared_ptr<Session> session_;
};

}  // namespace phobos::stub

#endif  // PHOBOS_CLIENT_STUB_CONNECTION_H_
