// The HTTP library's server with connections of our own. The library's connections start their
// timeout anew at each byte: a client that sends one now and then would keep a thread for ever.
//
// Each connection has a thread; the library's handlers are called on it.
#pragma once

#include <httplib.h>
#include <openssl/ssl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "berth/api/routes.h"
#include "berth/base/result.h"
#include "berth/os/env.h"

namespace berth::api {

struct TlsContextFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, TlsContextFree>;

/// Reads the server's certificate and key. invalid: the files do not hold them.
Result<TlsContext> tls_context(const std::string& certificate, const std::string& key);

/// A server that gives up a request whose bytes, or those of its answer, took too long: more than
/// ten seconds, and a second for each 64 KiB that came or went.
///
/// While connections wait for a thread, one that has not shown a role gives way when the server has
/// waited a second for it, or less where more wait than there are threads.
class BoundedServer final : public httplib::Server {
 public:
  /// The role of a request; nullopt: it is refused.
  using Admits = std::function<std::optional<Role>(const httplib::Request&)>;
  /// Without `tls` the server speaks plain HTTP. It closes the connection behind a request that is
  /// refused: the library does not read its body, and would take that for the next request.
  BoundedServer(TlsContext tls, Admits admits);
  /// Binds an address, or any port of it where `port` is 0, and lets hundreds of connections wait
  /// to be accepted: of the library's own five each further one tries again after a second. Returns
  /// the port; -1: it cannot be had.
  int bind(const std::string& host, int port);

 private:
  bool process_and_close_socket(socket_t socket) override;
  TlsContext tls_;
  Admits admits_;
  const std::shared_ptr<std::atomic<int>> waiting_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace berth::api
