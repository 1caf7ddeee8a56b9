#include "berth/api/connections.h"

#include <malloc.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "berth/api/connection.h"
#include "berth/api/http_message.h"

namespace berth::api {
namespace {

constexpr int kMostWaiting = 512;                        // connections that wait to be accepted
constexpr std::size_t kLarge = 256U << 10;               // bytes of a body that waits for its turn
constexpr auto kLongestWait = std::chrono::seconds(60);  // for that turn
constexpr auto kBetweenLooks = std::chrono::milliseconds(100);  // whether the client is still there

thread_local const Connection* answered_connection = nullptr;  // by this thread

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

/// One request and its answer, as the library sees them: a head that says that there is no body,
/// and then the end of the stream. So the library cannot read a byte that belongs to another
/// request.
class Exchange final : public httplib::Stream {
 public:
  Exchange(Connection& connection, const RequestHead& head)
      : connection_(connection),
        head_(
            fmt::format("{} {} HTTP/1.1\r\nContent-Length: 0\r\n\r\n", head.method, head.target)) {
    answered_connection = &connection;
  }
  ~Exchange() override { answered_connection = nullptr; }

  bool is_readable() const override { return at_ < head_.size(); }
  bool is_writable() const override { return true; }
  socket_t socket() const override { return connection_.socket(); }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  ssize_t read(char* to, std::size_t size) override {
    const std::size_t part = std::min(size, head_.size() - at_);
    std::memcpy(to, head_.data() + at_, part);
    at_ += part;
    return static_cast<ssize_t>(part);
  }
  ssize_t write(const char* from, std::size_t size) override {
    return connection_.send({from, size}) ? static_cast<ssize_t>(size) : -1;
  }

 private:
  Connection& connection_;
  const std::string head_;
  std::size_t at_ = 0;  // bytes of the head that were read
};

/// A part of a request that was not read: it was refused, or, without a refusal, the connection
/// ended.
using NotRead = std::optional<Refusal>;

std::expected<RequestHead, NotRead> receive_head(Connection& connection) {
  std::string text;
  while (connection.receive()) {
    while (text.empty() && connection.received().starts_with("\r\n")) connection.consume(2);
    const std::size_t before = text.size();
    text += connection.received();
    const std::size_t length = head_length(text, before);
    connection.consume(length == 0 ? text.size() - before : length - before);
    if ((length == 0 ? text.size() : length) > kLongestHead)
      return std::unexpected(
          Refusal{431, fmt::format("the request's head is longer than {} bytes", kLongestHead)});
    if (length == 0) continue;
    text.resize(length);
    auto head = read_head(text);
    if (!head) return std::unexpected(std::move(head.error()));
    return *std::move(head);
  }
  return std::unexpected(std::nullopt);
}

/// The bytes of a body, as part of those of all requests.
class Charge {
 public:
  explicit Charge(std::atomic<std::size_t>& total) : total_(total) {}
  ~Charge() { total_ -= bytes_; }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  /// Returns false if the bodies are too many.
  bool add(std::size_t bytes) {
    bytes_ += bytes;
    return (total_ += bytes) <= kMostBodies;
  }

 private:
  std::atomic<std::size_t>& total_;
  std::size_t bytes_ = 0;
};

std::expected<std::string, NotRead> receive_body(Connection& connection, const RequestHead& head,
                                                 Charge& charge) {
  std::string body;
  if (head.content_length > kLargestBody)
    return std::unexpected(Refusal{413, fmt::format("larger than {} bytes", kLargestBody)});
  const bool has_body = head.is_chunked || head.content_length > 0;
  if (has_body && head.expects_continue && !connection.send("HTTP/1.1 100 Continue\r\n\r\n"))
    return std::unexpected(std::nullopt);
  if (!head.is_chunked) body.reserve(head.content_length);
  ChunkDecoder chunks(kLargestBody);
  while (head.is_chunked ? !chunks.is_done() : body.size() < head.content_length) {
    if (!connection.receive()) return std::unexpected(std::nullopt);
    const auto received = connection.received();
    std::size_t part = std::min(received.size(), head.content_length - body.size());
    if (head.is_chunked) {
      const auto decoded = chunks.decode(received, body);
      if (!decoded) return std::unexpected(decoded.error());
      part = *decoded;
    } else {
      body += received.substr(0, part);
    }
    connection.consume(part);
    if (!charge.add(part))
      return std::unexpected(Refusal{503, "the server reads too many large requests; try again"});
  }
  return body;
}

/// The fields that the library and the handlers may see. What the library would do on its own with
/// others is not done: to send ranges, as many as are asked for; to compress at the slowest level
/// (22 s for 13 MB that take half a second to make); to limit the body of a form to 8 KiB.
httplib::Headers passed_on(httplib::Headers fields) {
  for (const char* name : {"Accept-Encoding", "Connection", "Content-Length", "Content-Type",
                           "Expect", "Range", "Transfer-Encoding"})
    fields.erase(name);
  return fields;
}

}  // namespace

bool client_left() {
  return answered_connection != nullptr && answered_connection->client_left();
}

Result<TlsContext> tls_context(const std::string& certificate, const std::string& key) {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1)
    return fail(ErrorKind::invalid, "{} and {}: expected a certificate and its key, as PEM",
                certificate, key);
  return context;
}

BoundedServer::BoundedServer(TlsContext tls, Admits admits, OnAnswer on_answer)
    : tls_(std::move(tls)), admits_(std::move(admits)), on_answer_(std::move(on_answer)) {
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

/// Answers a request that the library does not see. The connection ends with it.
void BoundedServer::refuse(Connection& connection, const Refusal& refusal) const {
  const std::string body = failed({ErrorKind::invalid, refusal.why}, refusal.status).body;
  connection.send(
      fmt::format("HTTP/1.1 {} Refused\r\nConnection: close\r\nContent-Type: application/json\r\n"
                  "Content-Length: {}\r\n\r\n{}",
                  refusal.status, body.size(), body));
  if (on_answer_) on_answer_(refusal.status);
}

/// Waits until no other request with a large body is answered.
std::optional<Refusal> BoundedServer::wait_for_turn(
    std::unique_lock<std::timed_mutex>& turn) const {
  for (std::chrono::milliseconds waited{}; !turn.try_lock_for(kBetweenLooks);
       waited += kBetweenLooks)
    if (waited >= kLongestWait || client_left() || svr_sock_ == INVALID_SOCKET)
      return Refusal{503, "the server is busy with other large requests; try again"};
  return std::nullopt;
}

/// Reads one request and answers it. Returns whether another one may follow on the connection: only
/// if this one was read to its end.
bool BoundedServer::answer_one(Connection& connection, bool is_last) {
  const auto head = receive_head(connection);
  if (!head) {
    if (head.error()) refuse(connection, *head.error());
    return false;
  }
  httplib::Request request;
  request.method = head->method;
  request.target = head->target;
  for (const auto& [name, value] : head->fields) request.headers.emplace(name, value);
  const auto role = admits_(request);
  std::string body;
  Charge charge(large_.bodies);
  if (role) {
    if (*role != Role::none) connection.is_known();
    auto received = receive_body(connection, *head, charge);
    if (!received) {
      if (received.error()) refuse(connection, *received.error());
      return false;
    }
    // The bodies of these methods have no meaning (RFC 9110, 9.3.1 and 9.3.2).
    if (head->method != "GET" && head->method != "HEAD") body = *std::move(received);
  }
  const bool closes = is_last || !role || !head->keeps_connection;
  Exchange exchange(connection, *head);
  const bool is_large = body.size() > kLarge;
  std::unique_lock turn(large_.turn, std::defer_lock);
  if (is_large)
    if (const auto refusal = wait_for_turn(turn)) {
      refuse(connection, *refusal);
      return false;
    }
  bool library_closes = false;
  const bool is_answered =
      process_request(exchange, closes, library_closes, [&](httplib::Request& seen) {
        seen.path = "/";  // routes use the target
        seen.headers = passed_on(std::move(request.headers));
        seen.body = std::move(body);
      });
  if (is_large) ::malloc_trim(0);
  return is_answered && !closes;
}

bool BoundedServer::process_and_close_socket(socket_t socket) {
  Connection connection(socket, tls_.get(), *waiting_);
  bool is_open = connection.open();
  for (std::size_t left = keep_alive_max_count_; is_open && left > 0; --left)
    is_open = svr_sock_ != INVALID_SOCKET && connection.next_request() &&
              answer_one(connection, left == 1);
  return is_open;
}

}  // namespace berth::api
