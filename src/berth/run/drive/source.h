// The sources of a run are the clusters that its allocs come from, beside this machine. Sources are
// plain values, made anew for each runner.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/cluster/cluster.h"
#include "berth/exec/worker.h"

namespace berth::run {

/// A cluster, and the function that starts a worker on an alloc of it.
struct Source {
  std::string name;  ///< Of the cluster: "lab".
  std::unique_ptr<cluster::Cluster> cluster;
  /// Where it is empty, this process or an agent of this machine works on the alloc.
  std::function<std::unique_ptr<exec::Worker>(const cluster::Alloc&)> start_worker = {};
  /// Does what is due of the cluster's own accord (it ends machines that nobody uses, say), and
  /// returns when it has to be called next, unless the cluster says before that something has
  /// changed; empty, or nullopt: not before.
  std::function<std::optional<Mono>()> tend = {};
};

/// For how long a run tries a source again that returns nothing but errors, with the growing pauses
/// that its cluster asks for. Then the run goes on without that source, or ends if it has no other.
/// Busy is no error: the run waits, and shows the reason.
inline constexpr Duration kRefusedMost = std::chrono::seconds(2);    ///< The error will stay.
inline constexpr Duration kUnreachedMost = std::chrono::minutes(1);  ///< It never gave an alloc.
inline constexpr Duration kLostMost = std::chrono::minutes(30);      ///< It gave one in this run.

/// For how long no task at all may come to start before the run ends and is left for a resume.
inline constexpr Duration kNoStartMost = std::chrono::seconds(30);

struct Sources {
  std::optional<Source> main;       ///< nullopt: this machine.
  std::vector<Source> auxiliary{};  ///< Asked in turn for what finds no room in those before.
};

}  // namespace berth::run
