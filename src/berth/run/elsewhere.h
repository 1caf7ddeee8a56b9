// The clusters of a run: which they are, and the workers on what they lease.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "berth/agent/link.h"
#include "berth/run/site.h"
#include "berth/run/source.h"
#include "berth/store/store.h"

namespace berth::run {

/// Keeps with the run where it goes: the first is its main cluster, the others help.
Status keep_clusters(Site& site, const store::RunRecord& record,
                     std::span<const std::string> names);
/// What was kept; without any, this machine.
Result<Sources> sources_of(Site& site, const store::RunRecord& record);

/// What earlier runners left elsewhere, each in a directory of RUN/outposts.
struct LeftElsewhere {
  std::string directory, machine;
  std::unique_ptr<agent::Attached> worker;
};
std::vector<LeftElsewhere> find_outposts(Site& site, const store::RunRecord& record);

}  // namespace berth::run
