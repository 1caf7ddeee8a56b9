// Objects from this machine straight to another: what `berth-agent push` does for a runner that is
// connected to both, and would else carry them. It starts the command that leads to the other
// machine's `berth-agent files` (files.h), which has nothing but what this machine's user has.
//
//   f… t REQUEST  →  n…        bytes so far, every second
//                    .         all of them are there, says that machine
//                    e KIND TEXT
//
// A name may mean another machine here than it does to the runner. So the runner has brought a
// nonce into the object store that it means, and no byte goes to a machine that does not give it
// back by its digest.
//
// It ends with the runner's connection, and when nothing moves. What has come by then stays, for
// whoever goes on (intake.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/digest.h"
#include "berth/os/env.h"

namespace berth::agent {

inline constexpr std::int64_t kNonceBytes = 32;

struct PushRequest {
  std::vector<std::string> command;  // that leads there
  Digest nonce;                      // of some bytes that only the store there has
  bool operator==(const PushRequest&) const = default;
};
std::string to_json(const PushRequest& request);
/// invalid.
Result<PushRequest> parse_push(std::string_view text);

/// For how long nothing may move once these have been sent: each is hashed and synced where it
/// comes, while the next wait on their way.
Duration still_most(std::int64_t objects, std::int64_t bytes);

/// Until it is done, or the connection ends.
Status serve_push(os::Env& env);

}  // namespace berth::agent
