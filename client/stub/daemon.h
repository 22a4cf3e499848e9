// SPDX-License-Identifier: Apache-2.0
//
// Daemon: the daemon as this process sees it. Connects when first needed, by the rules of
// endpoint.h, says Hello, connects anew when the daemon went away or this is a forked child, and
// makes the calls of TunerService. Not the meaning of a tune (client/cpp/tune/tune.h). Daemon: any
// thread. TuneCall: one thread.
#ifndef PHOBOS_CLIENT_STUB_DAEMON_H_
#define PHOBOS_CLIENT_STUB_DAEMON_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/launch/per_process.h"
#include "client/launch/status.h"
#include "client/stub/connection.h"
#include "client/stub/endpoint.h"
#include "client/stub/patience.h"
#include "client/stub/segments.h"
#include "client/stub/wire/codec.h"
#include "client/stub/wire/verbs.h"

namespace phobos::stub {

// One connection that was greeted, and the memory that goes with it.
struct Link {
  std::unique_ptr<Connection> connection;
  std::string socket;
  HelloResponse hello;
  std::unique_ptr<Segments> segments;
};

// A Tune or Warm stream.
class TuneCall {
 public:
  TuneCall(std::shared_ptr<Link> link, std::unique_ptr<Call> call)
      : link_(std::move(link)), call_(std::move(call)) {}

  void Send(const TuneRequest& request, bool last = false);
  // The next event, or nothing when the daemon ended the stream well.
  StatusOr<std::optional<TuneEvent>> Receive(const Patience& patience);
  // An Unavailable of Receive was the loss of the daemon: the tune may be asked for again.
  bool is_lost() const { return call_->is_lost(); }
  Segments& segments() { return *link_->segments; }

 private:
  const std::shared_ptr<Link> link_;
  const std::unique_ptr<Call> call_;
};

class Daemon {
 public:
  struct Options {
    Places places;
    std::string client_name;
    std::function<void(const std::string&)> warn;
  };
  explicit Daemon(Options options);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Connects if need be; what the daemon said of itself and where it is. Errors: as Reach and Ask.
  StatusOr<std::shared_ptr<Link>> Connect(const Patience& patience);

  // Unary verbs. All of them may be made twice, so each is made again, once, when the connection
  // was lost. Errors: the daemon's; Unavailable: it cannot be reached.
  StatusOr<LookupResponse> Lookup(const LookupRequest& request, const Patience& patience);
  StatusOr<CompileResponse> Compile(const CompileRequest& request, const Patience& patience);
  StatusOr<AdoptResponse> Adopt(const AdoptRequest& request, const Patience& patience);

  // The whole artifact.
  StatusOr<std::string> GetArtifact(const GetArtifactRequest& request, const Patience& patience);

  // Opens a stream; `warm`: Warm, else Tune.
  StatusOr<std::unique_ptr<TuneCall>> Tune(bool warm, const Patience& patience);

 private:
  class State;

  // Calls a verb with an encoded request. `begin` is called before each attempt, `take` with each
  // message of the answer.
  Status Ask(std::string_view verb, const std::string& request, const Patience& patience,
             const std::function<void()>& begin,
             const std::function<Status(std::string message)>& take);
  template <typename Response, typename Request>
  StatusOr<Response> AskUnary(std::string_view verb, const Request& request,
                              const Patience& patience);

  const Options options_;
  launch::PerProcess<State> state_;
};

}  // namespace phobos::stub

#endif  // PHOBOS_CLIENT_STUB_DAEMON_H_
