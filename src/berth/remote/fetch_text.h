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

/// GET. Waits, and looks for stop signals. Errors: io: no whole answer within the limits;
/// interrupted; each names the URL, and the session is of no more use.
Result<FetchedText> fetch_text(os::Env& env, HttpSession& session, const std::string& url,
                               const TextLimits& limits = {});

}  // namespace berth::remote
