// HTTP in front of a table of routes: who may send which request, and how long one may take.
//
// Only this machine reaches the server by default; others reach it only with a token and TLS.
// Requests of web pages from elsewhere are refused by Host, Origin and Sec-Fetch-Site, whatever
// their method: some GETs change the fleet. Of what is refused no body is read.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "berth/api/routes.h"
#include "berth/api/sessions.h"
#include "berth/base/result.h"
#include "berth/os/env.h"

namespace berth::api {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8321;                     ///< 0 means any free port.
  std::string token, read_token;       ///< Whose bearers have the role control, read; "": none.
  std::string certificate, key;        ///< PEM files; "" means no TLS.
  const Sessions* sessions = nullptr;  ///< Whose cookies have roles; nullptr: there are none.
  Role most = Role::control;           ///< The most that any request is allowed.
  /// Is told the status of each answer, on any number of threads at once.
  std::function<void(int status)> on_answer = {};

  bool has_tokens() const { return !token.empty() || !read_token.empty(); }
};

/// Answers by the routes until a stop signal. Where there are neither tokens nor sessions each
/// request is allowed all. `listening` is called with the port once requests are accepted, then
/// `work`, on the caller's thread: serving ends when it returns, which it should upon a stop
/// signal. Without `work` the caller's thread waits for that signal. Errors: those of `work`;
/// usage: the address is beyond this machine, without token or TLS; io: the address cannot be
/// listened at; invalid: the certificate is none.
Status serve(os::Env& env, std::span<const Route> routes, const ServerOptions& options,
             const std::function<void(int port)>& listening,
             const std::function<Status()>& work = {});

}  // namespace berth::api
