// One client's connection: bytes over TLS or plain, with limits on time. Used by one thread.
#pragma once

#include <openssl/ssl.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "berth/base/time.h"
#include "berth/os/env.h"

namespace berth::api {

struct TlsContextFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, TlsContextFree>;

inline constexpr int kMostConnections = 64;  // answered at a time; others wait

/// The time that a request and its answer may take on the wire is ten seconds, and a second for
/// each 64 KiB. The destructor closes the socket, after what the client still sends has been read
/// for up to a second: closing earlier would discard an answer that the client has not read.
class Connection {
 public:
  /// `waiting`: the number of connections that wait for a thread.
  Connection(int socket, SSL_CTX* tls, const std::atomic<int>& waiting);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Completes the TLS handshake, if there is one. Returns false if it failed.
  bool open();
  /// Waits for a request to begin and starts to count its time. Returns false if none begins.
  bool next_request();
  /// Allows the client, which has shown a role, to use its whole time while others wait.
  void is_known() { is_stranger_ = false; }

  /// Bytes that were received and not yet consumed.
  std::string_view received() const { return {buffer_.data() + begin_, end_ - begin_}; }
  void consume(std::size_t bytes) { begin_ += bytes; }
  /// Waits for bytes once received() is empty. Returns false at the end of the stream, after a
  /// failure, and when the time is up.
  bool receive();
  /// Sends everything. Returns false after a failure, and when the time is up.
  bool send(std::string_view text);

  /// Returns true once the client has closed its end of the connection.
  bool client_left() const;
  int socket() const { return socket_.number(); }

 private:
  template <class Attempt>
  ssize_t moved(short direction, const Attempt& attempt);
  short awaited(short direction, ssize_t bytes) const;
  bool ready(short events, Duration timeout);

  std::unique_ptr<os::Env> env_;
  const std::atomic<int>& waiting_;
  os::Fd socket_;
  struct TlsFree {
    void operator()(SSL* tls) const { SSL_free(tls); }
  };
  std::unique_ptr<SSL, TlsFree> tls_;
  bool is_stranger_ = true;
  bool is_open_ = false;
  Duration waited_{};       // for the present request
  std::int64_t bytes_ = 0;  // of the request and of its answer
  std::array<char, 16384> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of received() in the buffer
};

}  // namespace berth::api
