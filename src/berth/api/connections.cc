#include "berth/api/connections.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace berth::api {
namespace {

constexpr int kMostConnections = 64;  // that are answered at a time; others wait
constexpr int kMostWaiting = 512;     // to be accepted
constexpr Duration kTimeout = std::chrono::seconds(10);
constexpr std::int64_t kLeastBytesPerSecond = 64 << 10;
constexpr Duration kIdle = std::chrono::seconds(5);         // until the next request begins
constexpr Duration kLinger = std::chrono::seconds(1);       // for what comes behind the last answer
constexpr Duration kLook = std::chrono::milliseconds(200);  // whether the server is to end
constexpr int kMostDrained = 64;                            // of its parts

struct TlsFree {
  void operator()(SSL* tls) const { SSL_free(tls); }
};

/// One client's bytes, over TLS or plain. Closes the socket when it goes.
class Connection final : public httplib::Stream {
 public:
  /// `waiting`: how many others wait for a thread.
  Connection(int socket, SSL_CTX* tls, const std::atomic<int>& waiting)
      : env_(os::posix_env()),
        waiting_(waiting),
        socket_(*env_, socket),
        tls_(tls == nullptr ? nullptr : SSL_new(tls)) {
    ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
    if (tls_) SSL_set_fd(tls_.get(), socket);
  }
  ~Connection() override {
    if (tls_ && is_open_) SSL_shutdown(tls_.get());
    ::shutdown(socket(), SHUT_WR);
    // Closing on what still comes would take our answer away from whoever has not read it.
    waited_ = {};
    for (int parts = 0; parts < kMostDrained && ready(POLLIN, kLinger - waited_); ++parts)
      if (::recv(socket(), buffer_.data(), buffer_.size(), 0) <= 0) return;
  }

  /// Whether the two ends agree on how to speak.
  bool open() {
    is_open_ = !tls_ || moved(POLLIN, [&] { return SSL_accept(tls_.get()); }) == 1;
    return is_open_;
  }

  /// Waits for a request to begin; from then on its time is counted.
  bool next_request() {
    is_stranger_ = true;
    const bool begins = is_readable() || ready(POLLIN, kIdle);
    waited_ = {};
    bytes_ = 0;
    return begins;
  }

  /// Whoever has shown who it is may take its time.
  void is_known() { is_stranger_ = false; }

  bool is_readable() const override {
    return begin_ < end_ || (tls_ && SSL_has_pending(tls_.get()) == 1);
  }
  bool is_writable() const override { return true; }
  socket_t socket() const override { return socket_.number(); }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}

  ssize_t read(char* to, std::size_t size) override {
    if (begin_ == end_) {
      const ssize_t got = moved(POLLIN, [&]() -> ssize_t {
        return tls_ ? SSL_read(tls_.get(), buffer_.data(), static_cast<int>(buffer_.size()))
                    : ::recv(socket(), buffer_.data(), buffer_.size(), 0);
      });
      if (got <= 0) return got;
      begin_ = 0;
      end_ = static_cast<std::size_t>(got);
    }
    const std::size_t part = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, part);
    begin_ += part;
    return static_cast<ssize_t>(part);
  }

  ssize_t write(const char* from, std::size_t size) override {
    for (std::size_t done = 0; done < size;) {
      const std::size_t part = std::min(size - done, buffer_.size());
      const ssize_t sent = moved(POLLOUT, [&]() -> ssize_t {
        return tls_ ? SSL_write(tls_.get(), from + done, static_cast<int>(part))
                    : ::send(socket(), from + done, part, MSG_NOSIGNAL);
      });
      if (sent <= 0) return -1;
      done += static_cast<std::size_t>(sent);
    }
    return static_cast<ssize_t>(size);
  }

 private:
  /// Returns what `attempt` returns once the socket is ready: 0 at the end of the stream, -1 for a
  /// failure.
  template <class Attempt>
  ssize_t moved(short direction, const Attempt& attempt) {
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
  short awaited(short direction, ssize_t bytes) const {
    if (!tls_) return bytes < 0 && (errno == EAGAIN || errno == EINTR) ? direction : 0;
    const int error = SSL_get_error(tls_.get(), static_cast<int>(bytes));
    return error == SSL_ERROR_WANT_READ ? POLLIN : error == SSL_ERROR_WANT_WRITE ? POLLOUT : 0;
  }

  bool ready(short events, Duration timeout) {
    if (timeout <= Duration{}) return false;
    const Mono before = env_->now();
    pollfd one{socket(), events, 0};
    int found = 0;
    for (bool in_time = true; found == 0 && in_time;) {
      const Duration so_far = env_->now() - before;
      Duration left = timeout - so_far;
      if (env_->stop_signals() > 0) left = std::min(left, kLinger - so_far);  // nobody waits for it
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

  std::unique_ptr<os::Env> env_;
  const std::atomic<int>& waiting_;
  os::Fd socket_;
  std::unique_ptr<SSL, TlsFree> tls_;
  bool is_stranger_ = true;
  bool is_open_ = false;
  Duration waited_{};       // in this request
  std::int64_t bytes_ = 0;  // of it and of its answer
  std::array<char, 16384> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what was received and not yet read
};

/// The library's threads, and how many connections wait for one.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(std::shared_ptr<std::atomic<int>> waiting)
      : waiting_(std::move(waiting)) {}
  void enqueue(std::function<void()> connection) override {
    ++*waiting_;
    threads_.enqueue([waiting = waiting_, connection = std::move(connection)] {
      --*waiting;
      connection();
    });
  }
  void shutdown() override { threads_.shutdown(); }

 private:
  const std::shared_ptr<std::atomic<int>> waiting_;
  httplib::ThreadPool threads_{kMostConnections};
};

/// What the library should not do to a request: keep a form's body to 8 KiB (which is what curl
/// calls any body unless told otherwise), and wait for the end of the connection where a POST does
/// not say that it has no body. Nor should it compress what it answers: where a client takes Brotli
/// it does so at its slowest, 22 s for 13 MB that take half a second to make.
void as_plain_request(httplib::Request& request) {
  request.headers.erase("Content-Type");
  request.headers.erase("Accept-Encoding");
  if (!request.has_header("Content-Length") && !request.has_header("Transfer-Encoding"))
    request.set_header("Content-Length", std::string("0"));
}

}  // namespace

Result<TlsContext> tls_context(const std::string& certificate, const std::string& key) {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1)
    return fail(ErrorKind::invalid, "{} and {}: wanted a certificate and its key, as PEM",
                certificate, key);
  return context;
}

BoundedServer::BoundedServer(TlsContext tls, Admits admits)
    : tls_(std::move(tls)), admits_(std::move(admits)) {
  new_task_queue = [waiting = waiting_] { return new ConnectionThreads(waiting); };
}

int BoundedServer::bind(const std::string& host, int port) {
  if (port == 0)
    port = bind_to_any_port(host);
  else if (!bind_to_port(host, port))
    port = -1;
  if (port >= 0) ::listen(svr_sock_, kMostWaiting);
  return port;
}

bool BoundedServer::process_and_close_socket(socket_t socket) {
  Connection connection(socket, tls_.get(), *waiting_);
  bool goes_on = connection.open(), closed = false, refused = false;
  const auto set_up = [&](httplib::Request& request) {
    as_plain_request(request);
    const auto role = admits_(request);
    refused = !role;
    if (role && *role != Role::none) connection.is_known();
    if (!refused) return;
    request.headers.erase("Connection");
    request.set_header("Connection", std::string("close"));
  };
  for (std::size_t left = keep_alive_max_count_; goes_on && !closed && !refused && left > 0; --left)
    goes_on = svr_sock_ != INVALID_SOCKET && connection.next_request() &&
              process_request(connection, left == 1, closed, set_up);
  return goes_on;
}

}  // namespace berth::api
