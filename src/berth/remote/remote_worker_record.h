// A RemoteWorker keeps a record in its directory on this machine for later runners: which attempts
// may run on the other machine, and when a runner has last sent anything to the agent. Only
// messages of a runner renew the agent's lease, so an agent that cannot be asked is over once its
// lease has passed since then.
//
// The record is not synced, for it need only survive processes. Where this machine was restarted,
// the time since its start counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/base/ids.h"
#include "berth/os/env.h"

namespace berth::remote {

/// Records that something is about to be sent to the agent, whose lease is `lease` at most. More
/// may be sent without another record until a third of the lease has passed.
Status record_contact(os::Env& env, const std::string& directory, Duration lease);

/// What is to be fetched when an attempt has ended.
struct StageOut {
  std::vector<std::string> paths;
  bool if_stopped = true;  ///< Also of one that was stopped: a later attempt goes on from it.
};

/// Records that the attempt may run there and leaves this; to be called before the launch.
Status record_attempt(os::Env& env, const std::string& directory, Token token,
                      const StageOut& stage_out);
void forget_attempt(os::Env& env, const std::string& directory, Token token);

/// The file in the RemoteWorker's directory that has its LeaseDirectory, as JSON.
inline std::string lease_file(const std::string& directory) {
  return directory + "/place.json";
}

struct RecordedAttempt {
  Token token;
  StageOut stage_out;
};
/// An error where it cannot be told what was recorded.
Result<std::vector<RecordedAttempt>> recorded_attempts(os::Env& env, const std::string& directory);

/// For how long the agent may go on running tasks: 0 once that time is over, nullopt where nothing
/// is recorded. An agent that may outlive its lease is counted on for `timeout`.
std::optional<Duration> recorded_time_left(os::Env& env, const std::string& directory,
                                           Duration timeout);

}  // namespace berth::remote
