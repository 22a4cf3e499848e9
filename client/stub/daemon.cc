// SPDX-License-Identifier: Apache-2.0
#include "client/stub/daemon.h"

#include <chrono>
#include <mutex>
#include <utility>

namespace phobos::stub {
namespace {

constexpr char kService[] = "/phobos.tuner.v1.TunerService/";
constexpr int32_t kWireVersion = 1;
// From the connection to the answer to Hello: a daemon that is there answers in a millisecond.
constexpr std::chrono::milliseconds kHelloLimit(15000);
// Memory that no tune needed for this long is given back, at a later call.
constexpr std::chrono::seconds kIdleSegments(60);

std::string Method(std::string_view verb) { return std::string(kService) + std::string(verb); }

// A call with one request. `take` gets each message of the answer.
Status Converse(Connection& connection, const std::string& method, const std::string& request,
                const Patience& patience, const std::function<Status(std::string)>& take,
                bool& may_repeat) {
  std::chrono::milliseconds limit(0);
  if (patience.deadline != Clock::time_point::max()) {
    limit =
        std::max(std::chrono::milliseconds(1),
                 std::chrono::ceil<std::chrono::milliseconds>(patience.deadline - Clock::now()));
  }
  const std::unique_ptr<Call> call = connection.Start(method, limit);
  call->Send(request, true);
  while (true) {
    StatusOr<std::optional<std::string>> message = call->Receive(patience);
    if (!message.ok()) {
      may_repeat = message.status().code() == Code::kUnavailable && call->is_lost();
      return message.status();
    }
    if (!message->has_value()) return Status();
    if (Status status = take(**std::move(message)); !status.ok()) return status;
  }
}

StatusOr<HelloResponse> SayHello(Connection& connection, const std::string& client_name,
                                 const Patience& patience, bool& may_repeat) {
  HelloRequest request;
  request.wire_version = kWireVersion;
  request.client = client_name;
  std::optional<HelloResponse> response;
  Status status = Converse(
      connection, Method("Hello"), Encode(request), patience.AtMost(kHelloLimit),
      [&](const std::string& message) {
        StatusOr<HelloResponse> decoded = Decode<HelloResponse>(message);
        if (!decoded.ok()) return decoded.status();
        response = *std::move(decoded);
        return Status();
      },
      may_repeat);
  if (!status.ok()) return status;
  if (!response.has_value()) return Status(Code::kInternal, "the daemon did not answer Hello");
  return *std::move(response);
}

}  // namespace

void TuneCall::Send(const TuneRequest& request, bool last) { call_->Send(Encode(request), last); }

StatusOr<std::optional<TuneEvent>> TuneCall::Receive(const Patience& patience) {
  StatusOr<std::optional<std::string>> message = call_->Receive(patience);
  if (!message.ok()) return message.status();
  if (!message->has_value()) return std::optional<TuneEvent>();
  StatusOr<TuneEvent> event = Decode<TuneEvent>(**message);
  if (!event.ok()) return event.status();
  return std::optional<TuneEvent>(*std::move(event));
}

// The link of one process.
class Daemon::State {
 public:
  StatusOr<std::shared_ptr<Link>> Get(const Options& options, const Patience& patience) {
    // Only one thread connects; the others wait, but not deaf to their callers.
    std::unique_lock<std::timed_mutex> lock(mutex_, std::defer_lock);
    while (!lock.try_lock_for(kTick)) {
      if (patience.IsInterrupted()) return Status(Code::kCancelled, "the caller cancelled");
    }
    if (link_ != nullptr && link_->connection->is_usable()) return link_;
    link_ = nullptr;
    StatusOr<std::shared_ptr<Link>> link = OpenAny(options, options.places, patience);
    if (link.ok() && !(*link)->hello.redirect_socket.empty()) {
      // Another daemon owns the cache that this one was to serve.
      Places there = options.places;
      there.given_socket = (*link)->hello.redirect_socket;
      there.why_none_starts = "the cache's lock says that one is there";
      link = OpenAny(options, there, patience);
    }
    if (link.ok()) link_ = *link;
    return link;
  }

 private:
  // A daemon that ended before it read our greeting may have a successor, or get one from us.
  static StatusOr<std::shared_ptr<Link>> OpenAny(const Options& options, const Places& places,
                                                 const Patience& patience) {
    bool may_repeat = false;
    StatusOr<std::shared_ptr<Link>> link = Open(options, places, patience, may_repeat);
    return may_repeat ? Open(options, places, patience, may_repeat) : link;
  }

  static StatusOr<std::shared_ptr<Link>> Open(const Options& options, const Places& places,
                                              const Patience& patience, bool& may_repeat) {
    StatusOr<Reached> reached = Reach(places, patience);
    if (!reached.ok()) return reached.status();
    for (const std::string& warning : reached->warnings) options.warn(warning);
    auto link = std::make_shared<Link>();
    link->socket = reached->path;
    link->connection = Connection::Open(std::move(reached->socket));
    StatusOr<HelloResponse> hello =
        SayHello(*link->connection, options.client_name, patience, may_repeat);
    if (!hello.ok()) {
      return Status(hello.status().code(), link->socket + ": " + hello.status().message(),
                    hello.status().detail());
    }
    link->hello = *std::move(hello);
    link->segments = std::make_unique<Segments>(link->hello.side_socket);
    return link;
  }

  std::timed_mutex mutex_;
  std::shared_ptr<Link> link_;  // guarded by mutex_
};

Daemon::Daemon(Options options)
    : options_(std::move(options)), state_([] { return std::make_unique<State>(); }) {}

Daemon::~Daemon() = default;

StatusOr<std::shared_ptr<Link>> Daemon::Connect(const Patience& patience) {
  StatusOr<std::shared_ptr<Link>> link = state_.Get().Get(options_, patience);
  if (link.ok()) (*link)->segments->DropUnused(kIdleSegments);
  return link;
}

Status Daemon::Ask(std::string_view verb, const std::string& request, const Patience& patience,
                   const std::function<void()>& begin,
                   const std::function<Status(std::string message)>& take) {
  for (bool is_first = true;; is_first = false) {
    StatusOr<std::shared_ptr<Link>> link = Connect(patience);
    if (!link.ok()) return link.status();
    begin();
    bool may_repeat = false;
    Status status =
        Converse(*(*link)->connection, Method(verb), request, patience, take, may_repeat);
    if (status.ok() || !may_repeat || !is_first) return status;
  }
}

template <typename Response, typename Request>
StatusOr<Response> Daemon::AskUnary(std::string_view verb, const Request& request,
                                    const Patience& patience) {
  std::optional<StatusOr<Response>> response;
  Status status = Ask(
      verb, Encode(request), patience, [&] { response.reset(); },
      [&](std::string message) {
        response = Decode<Response>(message);
        return response->status();
      });
  if (!status.ok()) return status;
  if (!response.has_value()) {
    return Status(Code::kInternal, "the daemon answered " + std::string(verb) + " with nothing");
  }
  return *std::move(response);
}

StatusOr<LookupResponse> Daemon::Lookup(const LookupRequest& request, const Patience& patience) {
  return AskUnary<LookupResponse>("Lookup", request, patience);
}

StatusOr<CompileResponse> Daemon::Compile(const CompileRequest& request, const Patience& patience) {
  return AskUnary<CompileResponse>("Compile", request, patience);
}

StatusOr<AdoptResponse> Daemon::Adopt(const AdoptRequest& request, const Patience& patience) {
  return AskUnary<AdoptResponse>("Adopt", request, patience);
}

StatusOr<std::string> Daemon::GetArtifact(const GetArtifactRequest& request,
                                          const Patience& patience) {
  std::string bytes;
  Status status = Ask(
      "GetArtifact", Encode(request), patience, [&] { bytes.clear(); },
      [&](const std::string& message) {
        StatusOr<ArtifactChunk> chunk = Decode<ArtifactChunk>(message);
        if (!chunk.ok()) return chunk.status();
        bytes += chunk->bytes;
        return Status();
      });
  if (!status.ok()) return status;
  return bytes;
}

StatusOr<std::unique_ptr<TuneCall>> Daemon::Tune(bool warm, const Patience& patience) {
  StatusOr<std::shared_ptr<Link>> link = Connect(patience);
  if (!link.ok()) return link.status();
  std::unique_ptr<Call> call =
      (*link)->connection->Start(Method(warm ? "Warm" : "Tune"), std::chrono::milliseconds(0));
  return std::make_unique<TuneCall>(*std::move(link), std::move(call));
}

}  // namespace phobos::stub
