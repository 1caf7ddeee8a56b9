// `berth-agent push` sends objects from this machine straight to another one, for a runner that is
// connected to both and would otherwise carry them. It starts the command that leads to the other
// machine's `berth-agent files` (files.h), with nothing but what this machine's user has.
//
//   f… t REQUEST  →  n…        how many bytes have gone, every second
//                    .         the other machine says that it has all of them
//                    e KIND TEXT
//
// A host name may mean another machine here than it does for the runner. So the runner first brings
// a nonce into the object store that it means; no byte goes to a machine that cannot return the
// nonce for its digest.
//
// A push ends with the runner's connection, and when nothing moves for too long. What has arrived
// by then stays, and the next transfer goes on behind it (object_receiver.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/digest.h"
#include "berth/os/env.h"

namespace berth::agent {

inline constexpr std::int64_t kNonceBytes = 32;

struct PushRequest {
  std::vector<std::string> command;  ///< It leads to the other machine.
  Digest nonce;                      ///< Of bytes that no other object store has.
  bool operator==(const PushRequest&) const = default;
};
std::string to_json(const PushRequest& request);
/// Failure: invalid.
Result<PushRequest> parse_push(std::string_view text);

/// For how long nothing may move after so many objects and bytes were sent: the other machine
/// hashes and syncs each object before it takes the next.
Duration still_most(std::int64_t objects, std::int64_t bytes);

/// Serves its standard input and output until the push is done, or the connection ends.
Status serve_push(os::Env& env);

}  // namespace berth::agent
