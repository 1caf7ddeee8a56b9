// A person's clusters are described in one file: ~/.config/berth/clusters.yaml, or $BERTH_CLUSTERS.
//
//   lab:                       # berth run --cluster lab …
//     kind: ssh
//     hosts:
//       - gpu-box              # a name of the ssh config
//       - alice@10.0.0.7:2222 ~/.ssh/lab
//     lease: 2m                # how long a host may be silent
//     env: {HF_HOME: /scratch/hf}
//     prescript: module load cuda
//
// Each kind of cluster reads its own keys; those about the environment of tasks are common to all.
//
// Failure: invalid, where the message names the file, the line and the key; not_found.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/base/document.h"
#include "berth/exec/labels.h"
#include "berth/remote/remote_worker.h"
#include "berth/remote/ssh/host.h"
#include "berth/remote/transport.h"

namespace berth::remote {

struct ClusterEntry {
  std::string name, kind;
  Field body;
  // Every kind has these.
  TaskEnvironment task_environment;
  Duration lease = std::chrono::minutes(2);  ///< So long an alloc lives without a message of ours.
  bool outlive = false;                      ///< Tasks go on when we are gone for longer than that.
  Duration timeout{};                        ///< So long a machine that fell silent is waited for.
  Duration reconnect{};  ///< Before a connection that broke is made again; 0: ever more slowly.
  bool shares = true;    ///< A folder that both machines see is used as it is, and not copied.
};

/// $BERTH_CLUSTERS, else $XDG_CONFIG_HOME/berth/clusters.yaml, else ~/.config/….
Result<std::string> clusters_file(os::Env& env);
/// The entries of the file; none, where there is no file.
Result<std::vector<ClusterEntry>> read_clusters(os::Env& env);
Result<std::vector<ClusterEntry>> parse_clusters(std::string_view text, const std::string& file);
/// Failure: not_found, with a message that names the clusters there are.
Result<ClusterEntry> find_cluster(os::Env& env, const std::string& name);

/// Replaces the file's text by what `edit` makes of it. Where several processes edit it at once,
/// each sees what the one before wrote. Symbolic links and the file's mode stay. Failure: busy,
/// where another process holds the lock, a file beside it.
Status edit_clusters(os::Env& env,
                     const std::function<Result<std::string>(const std::string&)>& edit);

/// The file's text with an ssh cluster added, or without one; comments and all else stay.
Result<std::string> with_cluster(std::string_view text, const std::string& name,
                                 const std::vector<std::string>& hosts);
Result<std::string> without_cluster(std::string_view text, const std::string& name);

/// The berth-agent beside this program. A process reads it once, to know its digest.
Result<AgentFile> agent_file(os::Env& env);

struct OpenedCluster {
  std::unique_ptr<RemoteCluster> cluster;
  std::vector<Host*> hosts = {};  ///< The cluster's hosts, where they are known beforehand.
};
/// The run that a cluster is opened for: a cluster that starts machines notes them with the run.
struct ForRun {
  std::string name, directory;  ///< Of the run.
  std::string home;             ///< The state directory.
  exec::Labels labels = {};     ///< Of the run.
};
/// Failure: impossible, where no run is given and the kind of cluster has hosts only for a run.
Result<OpenedCluster> open_cluster(os::Env& env, const ClusterEntry& entry, const AgentFile& agent,
                                   const std::optional<ForRun>& run = {});
/// Checks the entry as far as that is possible without the cluster. Failure: invalid.
Status check_cluster(os::Env& env, const ClusterEntry& entry);

}  // namespace berth::remote
