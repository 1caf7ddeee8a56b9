// HTTP in front of whatever answers requests: who may send them, and how long one may take.
//
// Only this machine reaches the server by default; others reach it only with a token and TLS.
// Requests of web pages from elsewhere are refused by Host, Origin and Sec-Fetch-Site, whatever
// their method: some GETs change the fleet.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "berth/api/planner.h"
#include "berth/base/result.h"
#include "berth/os/env.h"

namespace berth::api {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8321;               ///< 0 means any free port.
  std::string token;             ///< Requests bear it ("Authorization: Bearer …"); "" means none.
  std::string certificate, key;  ///< PEM files; "" means no TLS.
  /// Whether a request for the path with this Cookie may pass without the token. Where it is set, a
  /// request needs one of both, on loopback too. Called on any number of threads at once.
  std::function<bool(std::string_view path, std::string_view cookie)> admits = {};
};

/// Answers a request; called on any number of threads at once.
using Answer = std::function<Reply(const Request&)>;

/// Serves until a stop signal. `listening` is called with the port once requests are accepted, then
/// `work`, on the caller's thread: serving ends when it returns, which it should upon a stop
/// signal. Without `work` the caller's thread waits for that signal. Errors: those of `work`;
/// usage: the address is beyond this machine, without token or TLS; io: the address cannot be
/// listened at; invalid: the certificate is none.
Status serve(os::Env& env, const Answer& answer, const ServerOptions& options,
             const std::function<void(int port)>& listening,
             const std::function<Status()>& work = {});

}  // namespace berth::api
