// SPDX-License-Identifier: Apache-2.0
#include "client/stub/connection.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "client/stub/stream.h"

// Debian's libnghttp2.a is position independent but for its use of stderr in a function that nobody
// calls; BUILD.bazel renames that to this.
extern "C" {
FILE* nghttp2_has_no_stderr = nullptr;
}

namespace phobos::stub {
namespace {

// How much the server may send ahead of what is received, a stream and in all.
constexpr int32_t kStreamWindow = 1 << 20;
constexpr int32_t kConnectionWindow = 8 << 20;
constexpr size_t kReadBytes = 32 << 10;
constexpr char kUserAgent[] = "grpc-phobos/1";

nghttp2_nv Header(std::string_view name, std::string_view value) {
  nghttp2_nv header = {};
  header.name = reinterpret_cast<uint8_t*>(const_cast<char*>(name.data()));
  header.namelen = name.size();
  header.value = reinterpret_cast<uint8_t*>(const_cast<char*>(value.data()));
  header.valuelen = value.size();
  return header;
}

// A limit as grpc-timeout says it: at most eight digits and a unit, so long ones in seconds.
std::string TimeoutText(std::chrono::milliseconds limit) {
  constexpr int64_t kMost = 99999999;
  if (limit.count() <= kMost) return std::to_string(limit.count()) + "m";
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(limit);
  return std::to_string(std::min<int64_t>(seconds.count(), kMost)) + "S";
}

std::string_view View(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

// The connection's state, shared by its calls. Everything is guarded by mutex_, but for the socket,
// on which a thread may poll without it.
class Session {
 public:
  explicit Session(Fd socket) : socket_(std::move(socket)) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &OnData);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &OnFrame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &OnClose);
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    // The window grows as messages are received, so a server cannot fill our memory.
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_session_client_new2(&session_, callbacks, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
    };
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  }

  ~Session() { nghttp2_session_del(session_); }

  bool IsUsable() {
    if (IsForeign()) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    // Shows a farewell or a hang-up that came while nobody waited.
    if (loss_.ok() && !is_reading_) Read();
    return loss_.ok() && !is_leaving_ && nghttp2_session_check_request_allowed(session_) != 0;
  }

  std::shared_ptr<Stream> Start(const std::string& method, std::chrono::milliseconds limit) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto stream = std::make_shared<Stream>();
    const std::string timeout = TimeoutText(limit);
    nghttp2_nv headers[] = {
        Header(":method", "POST"),        Header(":scheme", "http"),
        Header(":path", method),          Header(":authority", "localhost"),
        Header("te", "trailers"),         Header("content-type", "application/grpc"),
        Header("user-agent", kUserAgent), Header("grpc-accept-encoding", "identity"),
        Header("grpc-timeout", timeout),
    };
    const size_t count = std::size(headers) - (limit.count() > 0 ? 0 : 1);
    nghttp2_data_provider provider = {};
    provider.source.ptr = stream.get();
    provider.read_callback = &ReadOutput;
    stream->id = nghttp2_submit_request(session_, nullptr, headers, count, &provider, stream.get());
    if (stream->id < 0) {
      stream->is_closed = true;
      stream->failure = Status(
          Code::kInternal, std::string("nghttp2_submit_request: ") + nghttp2_strerror(stream->id));
      return stream;
    }
    streams_[stream->id] = stream;
    return stream;
  }

  void Send(Stream& stream, std::string_view message, bool last) {
    if (IsForeign()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stream.is_closed) return;
    stream.output.erase(0, std::exchange(stream.sent, 0));
    Frame(message, stream.output);
    stream.output_ends = last;
    nghttp2_session_resume_data(session_, stream.id);
    Write();
  }

  StatusOr<std::optional<std::string>> Receive(Stream& stream, const Patience& patience) {
    if (IsForeign()) {
      return Status(Code::kUnavailable, "this call belongs to the process that was forked");
    }
    std::unique_lock<std::mutex> lock(mutex_);
    if (Status status = Await(lock, stream, patience); !status.ok()) {
      Reset(stream);
      return status;
    }
    if (stream.failure.ok() && !stream.messages.empty()) {
      std::string message = std::move(stream.messages.front());
      stream.messages.pop_front();
      GiveWindow(stream);
      Write();
      return std::optional<std::string>(std::move(message));
    }
    if (!stream.has_ended && stream.failure.ok()) return loss_;
    Status end = EndOf(stream);
    Reset(stream);
    if (!end.ok()) return end;
    return std::optional<std::string>();
  }

  void Drop(Stream& stream) {
    if (IsForeign()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    Reset(stream);
  }

  bool IsLost(const Stream& stream) {
    if (IsForeign()) return true;
    const std::lock_guard<std::mutex> lock(mutex_);
    return !loss_.ok() || is_leaving_ || stream.is_refused;
  }

 private:
  bool IsForeign() const { return getpid() != process_; }

  // Waits until the stream has a message, has ended, or the connection is lost. One waiter at a
  // time reads the socket, for all; the others wait for it to find something of theirs, or to
  // leave.
  Status Await(std::unique_lock<std::mutex>& lock, const Stream& stream, const Patience& patience) {
    Clock::time_point asked = Clock::now();
    while (stream.messages.empty() && !stream.has_ended && stream.failure.ok() && loss_.ok()) {
      const Clock::time_point now = Clock::now();
      if (now >= patience.deadline) {
        return Status(Code::kDeadlineExceeded, "the daemon did not answer in time");
      }
      const auto wait = std::min<Clock::duration>(kTick, patience.deadline - now);
      bool signalled = false;
      if (is_reading_) {
        changed_.wait_for(lock, wait);
      } else {
        signalled = ReadAfter(lock, wait);
      }
      if (signalled || Clock::now() - asked >= kTick) {
        lock.unlock();
        const bool stop = patience.IsInterrupted();
        lock.lock();
        if (stop) return Status(Code::kCancelled, "the caller cancelled");
        asked = Clock::now();
      }
    }
    return Status();
  }

  // Waits for the socket without the lock, then reads. True: a signal came instead.
  bool ReadAfter(std::unique_lock<std::mutex>& lock, Clock::duration wait) {
    is_reading_ = true;
    pollfd ready = {socket_.get(), POLLIN, 0};
    if (!unsent_.empty()) ready.events |= POLLOUT;
    const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(wait);
    lock.unlock();
    const int count = poll(&ready, 1, static_cast<int>(timeout.count()));
    const bool signalled = count < 0 && errno == EINTR;
    lock.lock();
    is_reading_ = false;
    if (count > 0) {
      Read();
      Write();
    }
    changed_.notify_all();  // somebody else must read now
    return signalled;
  }

  void Read() {
    uint8_t buffer[kReadBytes];
    while (loss_.ok()) {
      const ssize_t count = recv(socket_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (count <= 0) {
        Lose(count == 0 ? "it closed the connection" : strerror(errno));
        return;
      }
      const ssize_t taken = nghttp2_session_mem_recv(session_, buffer, static_cast<size_t>(count));
      if (taken < 0) {
        Lose(std::string("it does not speak HTTP/2: ") + nghttp2_strerror(static_cast<int>(taken)));
        return;
      }
      changed_.notify_all();
      if (static_cast<size_t>(count) < sizeof(buffer)) return;
    }
  }

  // Sends what there is to send as far as the socket takes it; the rest goes after a later poll.
  void Write() {
    while (loss_.ok()) {
      if (unsent_.empty()) {
        const uint8_t* bytes = nullptr;
        const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
        if (size == 0) break;
        if (size < 0) {
          Lose(std::string("nghttp2_session_mem_send: ") +
               nghttp2_strerror(static_cast<int>(size)));
          return;
        }
        unsent_.assign(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
      }
      const ssize_t sent =
          send(socket_.get(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (sent < 0) {
        // What the server said before it went away may still be there to read.
        const std::string why = strerror(errno);
        Read();
        Lose(why);
        return;
      }
      unsent_.erase(0, static_cast<size_t>(sent));
    }
    // nghttp2 wants nothing more after an error in what it read, and after a farewell's last call.
    if (nghttp2_session_want_read(session_) == 0) {
      Lose(is_leaving_ ? "it is about to end" : "it does not speak HTTP/2");
    }
  }

  void Lose(const std::string& why) {
    if (loss_.ok()) loss_ = Status(Code::kUnavailable, "the daemon went away: " + why);
    changed_.notify_all();
  }

  void Reset(Stream& stream) {
    if (stream.is_closed || !loss_.ok()) return;
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_CANCEL);
    Write();
  }

  // Lets the server send more once what it sent was received, but keep at most a message ahead.
  void GiveWindow(Stream& stream) {
    if (stream.messages.size() > 1 || stream.unconsumed == 0) return;
    nghttp2_session_consume_stream(session_, stream.id, std::exchange(stream.unconsumed, 0));
  }

  static Stream* Find(nghttp2_session* session, int32_t id) {
    return static_cast<Stream*>(nghttp2_session_get_stream_user_data(session, id));
  }

  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t, void*) {
    Stream* stream = Find(session, frame->hd.stream_id);
    if (stream != nullptr) TakeHeader(*stream, View(name, name_size), View(value, value_size));
    return 0;
  }

  static int OnData(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* bytes,
                    size_t size, void*) {
    nghttp2_session_consume_connection(session, size);
    Stream* stream = Find(session, id);
    if (stream == nullptr) return 0;
    TakeBody(*stream, View(bytes, size));
    stream->unconsumed += size;
    if (stream->messages.size() <= 1) {
      nghttp2_session_consume_stream(session, id, std::exchange(stream->unconsumed, 0));
    }
    return 0;
  }

  static int OnFrame(nghttp2_session* session, const nghttp2_frame* frame, void* self) {
    if (frame->hd.type == NGHTTP2_GOAWAY) static_cast<Session*>(self)->is_leaving_ = true;
    const bool carries_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (!carries_end || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    if (Stream* stream = Find(session, frame->hd.stream_id)) stream->has_ended = true;
    return 0;
  }

  static int OnClose(nghttp2_session* session, int32_t id, uint32_t code, void* self) {
    if (Stream* stream = Find(session, id)) {
      stream->has_ended = true;
      stream->is_closed = true;
      stream->close_code = code;
      stream->is_refused = code == NGHTTP2_REFUSED_STREAM;
    }
    static_cast<Session*>(self)->streams_.erase(id);
    return 0;
  }

  static ssize_t ReadOutput(nghttp2_session*, int32_t, uint8_t* buffer, size_t size,
                            uint32_t* flags, nghttp2_data_source* source, void*) {
    Stream& stream = *static_cast<Stream*>(source->ptr);
    const size_t count = std::min(size, stream.output.size() - stream.sent);
    std::copy_n(stream.output.data() + stream.sent, count, buffer);
    stream.sent += count;
    if (stream.sent == stream.output.size() && stream.output_ends) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (count == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(count);
  }

  const pid_t process_ = getpid();
  const Fd socket_;
  std::mutex mutex_;
  std::condition_variable changed_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, std::shared_ptr<Stream>> streams_;  // those that nghttp2 points at
  std::string unsent_;
  bool is_reading_ = false;  // a waiter polls the socket
  bool is_leaving_ = false;  // the server said GOAWAY
  Status loss_;              // not OK: the connection is gone
};

Call::~Call() { session_->Drop(*stream_); }

void Call::Send(std::string_view message, bool last) { session_->Send(*stream_, message, last); }

StatusOr<std::optional<std::string>> Call::Receive(const Patience& patience) {
  return session_->Receive(*stream_, patience);
}

bool Call::is_lost() const { return session_->IsLost(*stream_); }

std::unique_ptr<Connection> Connection::Open(Fd socket) {
  return std::unique_ptr<Connection>(new Connection(std::make_shared<Session>(std::move(socket))));
}

Connection::~Connection() = default;

bool Connection::is_usable() { return session_->IsUsable(); }

std::unique_ptr<Call> Connection::Start(const std::string& method,
                                        std::chrono::milliseconds limit) {
  return std::unique_ptr<Call>(new Call(session_, session_->Start(method, limit)));
}

}  // namespace phobos::stub
