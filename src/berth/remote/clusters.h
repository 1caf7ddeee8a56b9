// The clusters a person has, from one file: ~/.config/berth/clusters.yaml, or $BERTH_CLUSTERS.
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
// Each kind reads what is its own; what stands around the tasks is common to all.
//
// Failure: invalid, with file, line and key; not_found.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/base/document.h"
#include "berth/remote/door.h"
#include "berth/remote/host.h"
#include "berth/remote/outpost.h"

namespace berth::remote {

struct ClusterEntry {
  std::string name, kind;
  Field body;
  // What every kind has.
  Surroundings surroundings;
  Duration lease = std::chrono::minutes(2);  // how long an alloc lives without a word from us
  bool outlive = false;                      // tasks go on when we are gone for longer
  Duration patience{};                       // how long a machine that fell silent is waited for
  bool shares = true;                        // a folder that both machines see is used, not copied
};

/// $BERTH_CLUSTERS, else $XDG_CONFIG_HOME/berth/clusters.yaml, else ~/.config/….
Result<std::string> clusters_file(os::Env& env);
/// None where there is no file.
Result<std::vector<ClusterEntry>> read_clusters(os::Env& env);
Result<std::vector<ClusterEntry>> parse_clusters(std::string_view text, const std::string& file);
/// not_found: names those there are.
Result<ClusterEntry> find_cluster(os::Env& env, const std::string& name);

/// Replaces the file's text by what `edit` makes of it; of several processes that edit it at once
/// each sees what the one before wrote. Links and the file's mode stay. busy: another holds its
/// lock, a file beside it.
Status edit_clusters(os::Env& env,
                     const std::function<Result<std::string>(const std::string&)>& edit);

/// The file with an ssh cluster added, or without one; comments and all else stay as they are.
Result<std::string> with_cluster(std::string_view text, const std::string& name,
                                 const std::vector<std::string>& hosts);
Result<std::string> without_cluster(std::string_view text, const std::string& name);

/// The berth-agent beside this program; read once a process, to know its digest.
Result<AgentFile> agent_file(os::Env& env);

struct OpenedCluster {
  std::unique_ptr<FarCluster> cluster;
  std::vector<Host*> hosts = {};  // of it, where they are known beforehand
};
/// For whom: a cluster that starts machines of its own notes them with the run.
struct ForRun {
  std::string name, directory;  // of the run
  std::string home;             // the state directory
};
/// impossible: a cluster of that kind has no hosts but a run's.
Result<OpenedCluster> open_cluster(os::Env& env, const ClusterEntry& entry, const AgentFile& agent,
                                   const std::optional<ForRun>& run = {});
/// Whether a run could go there, as far as the entry tells. invalid.
Status check_cluster(os::Env& env, const ClusterEntry& entry);

}  // namespace berth::remote
