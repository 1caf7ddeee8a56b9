// The clusters of a run: which they are, and the workers on what they lease.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "berth/agent/link.h"
#include "berth/run/site.h"
#include "berth/run/source.h"
#include "berth/store/store.h"

namespace berth::run {

/// Where a run goes.
struct Whereabouts {
  std::vector<std::string> names;  // of clusters: the first is its main one, the others help
  std::string own;                 // entries of a file of clusters that are the run's alone
  bool confirmed = false;          // somebody said yes to sending its folder, whatever its size
};
/// That there are such clusters. not_found, invalid.
Status check_clusters(os::Env& env, const Whereabouts& where);
/// Keeps it with the run.
Status keep_clusters(Site& site, const store::RunRecord& record, const Whereabouts& where);
/// That somebody said yes to sending the run's folder, whatever its size.
Status confirm_sending(Site& site, const store::RunRecord& record);
/// What was kept; without any, this machine.
Result<Sources> sources_of(Site& site, const store::RunRecord& record);

/// What earlier runners left elsewhere, each in a directory of RUN/outposts.
struct LeftElsewhere {
  std::string directory, machine;
  Duration time_left;  // for so long what runs there may do so; 0: all of it has ended
  std::optional<std::vector<Token>> attempts;  // that may run there; none: not known
  std::unique_ptr<agent::Attached> worker;
};
std::vector<LeftElsewhere> find_outposts(Site& site, const store::RunRecord& record);

/// "1, 2, 3, 4, 5 and 7 more".
std::string list_of(std::vector<std::string> labels);

}  // namespace berth::run
