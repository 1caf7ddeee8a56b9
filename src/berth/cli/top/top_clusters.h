// What berth top shows of the clusters: each host of an ssh cluster, partition of a Slurm cluster
// and instance of an EC2 cluster, as of its last answer. Nothing here blocks; what has not answered
// yet is shown as such.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/os/background_threads.h"
#include "berth/os/env.h"
#include "berth/remote/clusters.h"

namespace berth::cli {

/// A machine, or a group of machines, and what is held of it.
struct TopRow {
  std::string host;
  Resources free = {}, total = {};
  std::string holders = {};
  std::string state = {};  ///< In the words of the cluster, where it adds something.
  std::string error = {};  ///< Instead of all that.
};

class TopClusters {
 public:
  /// Opens all clusters of the user's file; none where there is no file.
  static Result<TopClusters> open(os::Env& env);

  /// Asks again each cluster whose last answer is old. Returns whether each has answered, or cannot
  /// be reached.
  bool settled();
  /// A table behind an empty line; "" without clusters.
  std::string text();
  /// A JSON list of the clusters, each with its hosts; "" without clusters.
  std::string json();

 private:
  using Rows = Result<std::vector<TopRow>>;
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

}  // namespace berth::cli
