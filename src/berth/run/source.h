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

struct Sources {
  std::optional<Source> main;       // none: this machine
  std::vector<Source> auxiliary{};  // asked, in turn, for what finds no room in those before
};

}  // namespace berth::run
