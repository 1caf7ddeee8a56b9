// The HTTP library's server with connections of our own, because the library's wait anew for each
// byte: a client that sends one now and then would keep a thread for ever.
//
// Threads: each connection has one; what the library calls handlers are called on them.
#pragma once

#include <httplib.h>
#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <string>

#include "berth/base/result.h"
#include "berth/os/env.h"

namespace berth::api {

struct TlsContextFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, TlsContextFree>;

/// What the server shows of itself under TLS. invalid: the files hold no certificate and its key.
Result<TlsContext> tls_context(const std::string& certificate, const std::string& key);

/// A request is given up when the server has waited too long for its bytes and for those of its
/// answer to go: ten seconds, and a second more for each 64 KiB that came or went.
class BoundedServer final : public httplib::Server {
 public:
  using Refused = std::function<bool(const httplib::Request&)>;
  /// Without `tls` it speaks plain HTTP. Behind what is `refused` the connection is closed: the
  /// library reads no body of it, and would take that for the next request.
  BoundedServer(TlsContext tls, Refused refused);

 private:
  bool process_and_close_socket(socket_t socket) override;
  TlsContext tls_;
  Refused refused_;
};

}  // namespace berth::api
