// What stands in the directory of an Outpost here for runners that come later: which attempts may
// run on its machine, and since when nobody has said anything to its agent. An agent is renewed by
// a runner's words alone, so one that cannot be asked is over once its lease has passed since then.
//
// Not synced: it has to survive processes. Where this machine was started anew, the time since then
// is what is known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/base/ids.h"
#include "berth/os/env.h"

namespace berth::remote {

/// Something is about to be said to the agent, whose lease is at most so long; it may be said again
/// until a third of that has passed.
Status record_contact(os::Env& env, const std::string& directory, Duration lease);

/// The attempt may run there, and leaves these paths. A launch comes after it.
Status record_attempt(os::Env& env, const std::string& directory, Token token,
                      const std::vector<std::string>& brings);
void forget_attempt(os::Env& env, const std::string& directory, Token token);

struct RecordedAttempt {
  Token token;
  std::vector<std::string> brings;
};
std::vector<RecordedAttempt> recorded_attempts(os::Env& env, const std::string& directory);

/// For how long the agent may still run what it runs: 0 once that is over; nullopt where nothing is
/// known of it. `patience`: of an agent that may outlive its lease.
std::optional<Duration> recorded_time_left(os::Env& env, const std::string& directory,
                                           Duration patience);

}  // namespace berth::remote
