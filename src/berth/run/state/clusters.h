// A run has clusters: these functions keep with the run which they are, open them for a runner, and
// find the remote workers that earlier runners left there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "berth/agent/client/agent_client.h"
#include "berth/run/drive/source.h"
#include "berth/run/state/context.h"
#include "berth/store/store.h"

namespace berth::run {

/// The clusters that a person has chosen for a run.
struct ClusterChoice {
  std::vector<std::string> names;  ///< The first is the main cluster, the others are auxiliary.
  std::string own;                 ///< Entries of a file of clusters that are the run's alone.
  bool confirmed = false;          ///< A person has agreed to send the folder, whatever its size.
};
/// Checks that there are such clusters. Failure: not_found, invalid.
Status check_clusters(os::Env& env, const ClusterChoice& where);
Status keep_clusters(Context& context, const store::RunRecord& record, const ClusterChoice& where);
/// Keeps with the run that a person has agreed to send its folder, whatever its size.
Status confirm_sending(Context& context, const store::RunRecord& record);
/// The sources of the run's allocs by the choice that was kept; this machine where there is none.
Result<Sources> sources_of(Context& context, const store::RunRecord& record);

/// A remote worker that an earlier runner left; each has a directory in RUN/outposts.
struct RecoveredRemoteWorker {
  std::string directory, machine;
  Duration time_left;  ///< For so long tasks may go on there; 0: all of them have ended.
  std::optional<std::vector<Token>> attempts;  ///< That may run there; nullopt: not known.
  std::unique_ptr<agent::AgentClient> worker;
};
/// An error where it cannot be told what was left.
Result<std::vector<RecoveredRemoteWorker>> find_remote_workers(Context& context,
                                                               const store::RunRecord& record);

/// The names in a directory; none where it is not there.
Result<std::vector<std::string>> list_there(os::Env& env, const std::string& directory);

/// "1, 2, 3, 4, 5 and 7 more".
std::string list_of(std::vector<std::string> labels);

}  // namespace berth::run
