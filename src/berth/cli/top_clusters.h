// What berth top shows of the machines elsewhere: each host of an ssh cluster, partition of a Slurm
// cluster and instance of an EC2 cluster, as it was told last. Nothing waits: what has not answered
// yet says so.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/os/aside.h"
#include "berth/os/env.h"
#include "berth/remote/clusters.h"

namespace berth::cli {

/// A machine, or machines alike, of which something is held.
struct TopRow {
  std::string host;
  Resources free = {}, total = {};
  std::string holders = {};
  std::string state = {};  // as the cluster has it, where that tells more
  std::string error = {};  // instead of all that
};

class TopClusters {
 public:
  /// All clusters of the person's file; without one, none.
  static Result<TopClusters> open(os::Env& env);

  /// Whether each has answered, or cannot be reached; asks again those that have not for a while.
  bool settled();
  /// A table, after an empty line; "" without clusters.
  std::string text();
  /// A list of the clusters, each with its hosts; "" without clusters.
  std::string json();

 private:
  using Rows = Result<std::vector<TopRow>>;
  struct Cluster {
    std::string name, kind;
    Result<remote::OpenedCluster> opened = {};
    std::function<Rows(os::Env&)> ask = {};  // of a cluster without hosts: beside the loop
    std::optional<Rows> rows = {};           // what it answered last
    std::optional<Mono> ask_at = Mono{};     // none: it is being asked
  };
  bool has_settled(Cluster& cluster);
  static Rows rows_of(Cluster& cluster);

  os::Env* env_ = nullptr;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::unique_ptr<os::Aside> aside_;  // goes first
};

}  // namespace berth::cli
