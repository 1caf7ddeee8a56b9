// What berth cluster does with an EC2 cluster: what the account lets Berth do, which instances run,
// and the end of those that dead runs have left.
#pragma once

#include <string>
#include <vector>

#include "berth/remote/clusters.h"
#include "berth/remote/ec2_commands.h"

namespace berth::cli {

struct Ec2Probed {
  std::string cluster;
  std::vector<remote::Ec2Permission> permissions = {};
  std::vector<remote::Ec2Found> instances = {};  ///< Of runs of this state directory.
  bool good() const;                             ///< Whether all of it is allowed.
};
Result<Ec2Probed> probe_ec2(os::Env& env, const remote::ClusterEntry& entry);
std::string to_text(const Ec2Probed& probed);
std::string to_json(const Ec2Probed& probed);

/// Ends the instances of runs without a runner. Returns the ended ones.
Result<std::vector<remote::Ec2Found>> clean_ec2(os::Env& env, const remote::ClusterEntry& entry);
std::string to_json(const remote::Ec2Found& found);

}  // namespace berth::cli
