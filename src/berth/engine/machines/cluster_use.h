// The current use of the clusters: each host of an ssh cluster, partition of a Slurm cluster and
// instance of an EC2 cluster, as of its last answer.
//
// Threads: one. Failure: as of the clusters file; a cluster that does not answer has an error.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/engine/machines/machine.h"
#include "berth/os/background_threads.h"
#include "berth/os/env.h"
#include "berth/remote/clusters.h"

namespace berth::engine {

/// A machine or a group of machines, and who uses it.
struct HostUse {
  std::string host;
  Resources free = {}, total = {};
  std::string holders = {};
  std::string state = {};  ///< In the words of the cluster; "": nothing to add.
  std::string error = {};  ///< Not empty: the other members are unknown.
};

struct ClusterUse {
  std::string name, kind;
  std::vector<HostUse> hosts = {};
  std::string error = {};  ///< Why the hosts are unknown; "": they are known.
};

/// Asks the clusters again and again. Nothing here blocks: a cluster that has not answered yet has
/// an error that says so.
class ClusterWatch {
 public:
  /// Opens all clusters of the user's file; none if there is no file.
  static Result<ClusterWatch> open(os::Env& env);

  /// Asks again each cluster whose last answer is old. Returns true if each cluster has answered,
  /// or cannot be reached.
  bool settled();
  std::vector<ClusterUse> use();

 private:
  using Rows = Result<std::vector<HostUse>>;
  struct Cluster {
    std::string name, kind;
    Result<remote::OpenedCluster> opened = {};
    std::function<Rows(os::Env&)> ask = {};  // of a cluster without hosts; called on another thread
    std::optional<Rows> rows = {};           // its last answer
    std::optional<Mono> ask_at = Mono{};     // nullopt: it is being asked
  };
  bool has_settled(Cluster& cluster);
  static Rows rows_of(Cluster& cluster);

  os::Env* env_ = nullptr;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::unique_ptr<os::Poll> answers_;
  std::unique_ptr<os::BackgroundThreads> background_;  // destroyed first: it calls into clusters_
};

/// This machine and the clusters.
struct CurrentUse {
  MachineReport machine = {};
  std::vector<ClusterUse> clusters = {};
};
/// Gathers both, and waits up to 15 s for the answers of the clusters. Errors: interrupted, if
/// `is_abandoned` returned true meanwhile.
Result<CurrentUse> current_use(os::Env& env, const std::function<bool()>& is_abandoned = {});

}  // namespace berth::engine
