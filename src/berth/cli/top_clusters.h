// What berth top shows of the machines elsewhere: each host of an ssh cluster as it answered last.
// Nothing waits: a host that has not answered yet says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "berth/os/env.h"
#include "berth/remote/clusters.h"

namespace berth::cli {

class TopClusters {
 public:
  /// All clusters of the person's file; without one, none.
  static Result<TopClusters> open(os::Env& env);

  /// Whether each host has answered, or cannot be reached.
  bool settled();
  /// A table, after an empty line; "" without clusters.
  std::string text();
  /// ",\"clusters\":[…]" for the end of an object: each with its hosts.
  std::string json();

 private:
  struct Cluster {
    std::string name, kind;
    Result<remote::OpenedCluster> opened;
  };
  std::vector<Cluster> clusters_;
};

}  // namespace berth::cli
