// HTTP in front of a Planner: who may send requests, and how long one may take.
//
// Only this machine reaches the server by default; others reach it only with a token and TLS.
// Requests of web pages from elsewhere are refused by Host, Origin and Sec-Fetch-Site, whatever
// their method: some GETs change the fleet.
#pragma once

#include <functional>
#include <string>

#include "berth/api/planner.h"
#include "berth/base/result.h"
#include "berth/os/env.h"

namespace berth::api {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8321;               ///< 0 means any free port.
  std::string token;             ///< Requests bear it ("Authorization: Bearer …"); "" means none.
  std::string certificate, key;  ///< PEM files; "" means no TLS.
};

/// Serves until a stop signal. `listening` is called with the port once requests are accepted.
/// usage: the address is beyond this machine, without token or TLS; io: the address cannot be
/// listened at; invalid: the certificate is none.
Status serve(os::Env& env, Planner& planner, const ServerOptions& options,
             const std::function<void(int port)>& listening);

}  // namespace berth::api
