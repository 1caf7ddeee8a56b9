#include "berth/api/connection.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace berth::api {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(10);
constexpr std::int64_t kLeastBytesPerSecond = 64 << 10;
constexpr Duration kIdle = std::chrono::seconds(5);         // until the next request begins
constexpr Duration kLinger = std::chrono::seconds(1);       // for what follows the last answer
constexpr Duration kLook = std::chrono::milliseconds(200);  // between two checks for a stop signal
constexpr int kMostDrained = 64;                            // buffers that are read while closing

}  // namespace

Connection::Connection(int socket, SSL_CTX* tls, const std::atomic<int>& waiting)
    : env_(os::posix_env()),
      waiting_(waiting),
      socket_(*env_, socket),
      tls_(tls == nullptr ? nullptr : SSL_new(tls)) {
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  if (tls_) SSL_set_fd(tls_.get(), socket);
}

Connection::~Connection() {
  if (tls_ && is_open_) SSL_shutdown(tls_.get());
  ::shutdown(socket(), SHUT_WR);
  waited_ = {};
  for (int parts = 0; parts < kMostDrained && ready(POLLIN, kLinger - waited_); ++parts)
    if (::recv(socket(), buffer_.data(), buffer_.size(), 0) <= 0) return;
}

bool Connection::open() {
  is_open_ = !tls_ || moved(POLLIN, [&] { return SSL_accept(tls_.get()); }) == 1;
  return is_open_;
}

bool Connection::next_request() {
  is_stranger_ = true;
  const bool has_bytes = begin_ < end_ || (tls_ && SSL_has_pending(tls_.get()) == 1);
  const bool begins = has_bytes || ready(POLLIN, kIdle);
  waited_ = {};
  bytes_ = 0;
  return begins;
}

bool Connection::receive() {
  if (begin_ < end_) return true;
  const ssize_t got = moved(POLLIN, [&]() -> ssize_t {
    return tls_ ? SSL_read(tls_.get(), buffer_.data(), static_cast<int>(buffer_.size()))
                : ::recv(socket(), buffer_.data(), buffer_.size(), 0);
  });
  begin_ = 0;
  end_ = got > 0 ? static_cast<std::size_t>(got) : 0;
  return got > 0;
}

bool Connection::send(std::string_view text) {
  while (!text.empty()) {
    const std::size_t part = std::min(text.size(), buffer_.size());
    const ssize_t sent = moved(POLLOUT, [&]() -> ssize_t {
      return tls_ ? SSL_write(tls_.get(), text.data(), static_cast<int>(part))
                  : ::send(socket(), text.data(), part, MSG_NOSIGNAL);
    });
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Connection::client_left() const {
  pollfd one{socket(), POLLRDHUP, 0};
  return ::poll(&one, 1, 0) > 0;  // POLLHUP and POLLERR are reported unasked
}

/// Returns what `attempt` returns once the socket is ready: 0 at the end of the stream, -1 after a
/// failure.
template <class Attempt>
ssize_t Connection::moved(short direction, const Attempt& attempt) {
  for (;;) {
    if (tls_) ERR_clear_error();
    const ssize_t bytes = attempt();
    if (bytes > 0) {
      bytes_ += bytes;
      return bytes;
    }
    const short events = awaited(direction, bytes);
    if (events == 0) return bytes;
    const Duration timeout =
        kTimeout + std::chrono::seconds(1) * bytes_ / kLeastBytesPerSecond - waited_;
    if (!ready(events, timeout)) return -1;
  }
}

/// The poll event to wait for before another attempt; 0: there is to be none.
short Connection::awaited(short direction, ssize_t bytes) const {
  if (!tls_) return bytes < 0 && (errno == EAGAIN || errno == EINTR) ? direction : 0;
  const int error = SSL_get_error(tls_.get(), static_cast<int>(bytes));
  return error == SSL_ERROR_WANT_READ ? POLLIN : error == SSL_ERROR_WANT_WRITE ? POLLOUT : 0;
}

bool Connection::ready(short events, Duration timeout) {
  if (timeout <= Duration{}) return false;
  const Mono before = env_->now();
  pollfd one{socket(), events, 0};
  int found = 0;
  for (bool in_time = true; found == 0 && in_time;) {
    const Duration so_far = env_->now() - before;
    Duration left = timeout - so_far;
    // After a stop signal a client has a second.
    if (env_->stop_signals() > 0) left = std::min(left, kLinger - so_far);
    if (is_stranger_ && waiting_ > 0)
      left = std::min(left, kLinger / (1 + waiting_ / kMostConnections) - waited_ - so_far);
    in_time = left > Duration{};
    const auto part =
        std::chrono::ceil<std::chrono::milliseconds>(std::clamp(left, Duration{}, kLook));
    found = ::poll(&one, 1, static_cast<int>(part.count()));
  }
  waited_ += env_->now() - before;
  return found > 0;
}

}  // namespace berth::api
