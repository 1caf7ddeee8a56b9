// Where the allocs of a run come from, beside this machine. Plain values, made anew for each
// runner.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/cluster/cluster.h"
#include "berth/exec/workplace.h"

namespace berth::run {

/// A cluster, and who works on what it leases: without `staff`, this process or an agent here.
struct Source {
  std::string name;  // "lab"
  std::unique_ptr<cluster::Cluster> cluster;
  std::function<std::unique_ptr<exec::Workplace>(const cluster::Alloc&)> staff = {};
  /// What the cluster does by itself between calls (end machines that nobody uses, say), and when
  /// next; none: nothing, ever.
  std::function<std::optional<Mono>()> tend = {};
};

/// For how long a source that gives nothing but errors is tried again, with the growing pauses that
/// its cluster asks for. Then the run goes on without it, or ends when it has no other. Busy is no
/// error: it is waited for, with its reason in sight.
inline constexpr Duration kRefusedMost = std::chrono::seconds(2);    // by an error that will stay
inline constexpr Duration kUnreachedMost = std::chrono::minutes(1);  // it never gave anything
inline constexpr Duration kLostMost = std::chrono::minutes(30);  // it worked before, in this run

/// For how long no task at all may come to start before the run ends, for a later resume.
inline constexpr Duration kNoStartMost = std::chrono::seconds(30);

struct Sources {
  std::optional<Source> main;       // none: this machine
  std::vector<Source> auxiliary{};  // asked, in turn, for what finds no room in those before
};

}  // namespace berth::run
