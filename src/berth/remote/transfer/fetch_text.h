// A small text from an HTTP server, once and within bounds, for who asks a server's API; files are
// fetched by Elsewhere, which asks again and goes on where it was cut off.
#pragma once

#include <cstddef>
#include <string>

#include "berth/base/result.h"
#include "berth/os/env.h"
#include "berth/remote/cloud/cloud.h"

namespace berth::remote {

struct TextLimits {
  std::size_t most_bytes = 16U << 20;
  Duration within = std::chrono::seconds(30);
};

struct FetchedText {
  int status = 0;    // of HTTP: whatever it is, the server answered
  std::string body;  // also of an answer that says no
};

/// Waits, and looks for stop signals; the request's take() is this function's own. Errors: io: no
/// whole answer within the limits; interrupted; each names the URL. What is under way then is ended
/// by the session's next request.
Result<FetchedText> fetch_text(os::Env& env, HttpSession& session, HttpRequest request,
                               const TextLimits& limits = {});

}  // namespace berth::remote
