// HTTP in front of a Planner: who may speak to it, and until when.
//
// Nothing but this machine reaches it unless asked for; beyond it only with a token and TLS. Pages
// that a browser got elsewhere are sent away (by Host, Origin and Sec-Fetch-Site), for every
// request: some GETs change the fleet.
#pragma once

#include <functional>
#include <string>

#include "berth/api/planner.h"
#include "berth/base/result.h"
#include "berth/os/env.h"

namespace berth::api {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8321;    // 0: any that is free
  std::string token;  // that requests bear ("Authorization: Bearer …"); empty: none is wanted
  std::string certificate, key;  // PEM files; empty: no TLS
};

/// Serves until a stop signal; `listening` is told the port once requests are taken. usage: beyond
/// this machine without token or TLS; io: the address cannot be listened at, a bad certificate.
Status serve(os::Env& env, Planner& planner, const ServerOptions& options,
             const std::function<void(int port)>& listening);

}  // namespace berth::api
