// The HTTP library's server with connections of our own. The library's connections start their
// timeout anew at each byte: a client that sends one now and then would keep a thread for ever.
//
// Each connection has a thread; the library's handlers are called on it.
#pragma once

#include <httplib.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "berth/api/connection.h"
#include "berth/api/http_message.h"
#include "berth/api/routes.h"
#include "berth/base/result.h"

namespace berth::api {

/// Reads the server's certificate and key. invalid: the files do not hold them.
Result<TlsContext> tls_context(const std::string& certificate, const std::string& key);

/// The limits of a request's body, and of the bodies of all requests that are under way, in bytes.
inline constexpr std::size_t kLargestBody = 64U << 20, kMostBodies = 256U << 20;

/// Returns true if the client of the request that this thread answers has closed its connection.
bool client_left();

/// The large requests that are under way. What a request needs of memory is a multiple of its body.
struct LargeRequests {
  std::atomic<std::size_t> bodies = 0;  ///< Bytes of all bodies that were received.
  std::timed_mutex turn;                ///< One request with a large body is answered at a time.
};

/// A server that reads each request itself, strictly and within limits (http_message.h), and leaves
/// the answer to the library.
///
/// It gives up a request whose bytes, or those of its answer, took too long: more than ten seconds,
/// and a second for each 64 KiB that came or went. While connections wait for a thread, one that
/// has not shown a role gives way when the server has waited a second for it, or less where more
/// wait than there are threads.
///
/// Requests with large bodies are answered one after another, and their memory goes back to the
/// system. A body for which there is no room among the others is refused with 503.
class BoundedServer final : public httplib::Server {
 public:
  /// The role of a request, of which only the head is read yet; nullopt: it is refused.
  using Admits = std::function<std::optional<Role>(const httplib::Request&)>;
  /// Receives the status of each answer that the library does not see; any thread.
  using OnAnswer = std::function<void(int status)>;
  /// Without `tls` the server speaks plain HTTP. It closes the connection after a request that is
  /// refused or cannot be read, whose body would otherwise be taken for the next request.
  BoundedServer(TlsContext tls, Admits admits, OnAnswer on_answer);
  /// Binds an address, or any port of it where `port` is 0, and lets hundreds of connections wait
  /// to be accepted: of the library's own five each further one tries again after a second. Returns
  /// the port; -1: it cannot be had.
  int bind(const std::string& host, int port);

 private:
  bool process_and_close_socket(socket_t socket) override;
  bool answer_one(Connection& connection, bool is_last);
  std::optional<Refusal> wait_for_turn(std::unique_lock<std::timed_mutex>& turn) const;
  void refuse(Connection& connection, const Refusal& refusal) const;
  TlsContext tls_;
  Admits admits_;
  OnAnswer on_answer_;
  LargeRequests large_;
  const std::shared_ptr<std::atomic<int>> waiting_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace berth::api
