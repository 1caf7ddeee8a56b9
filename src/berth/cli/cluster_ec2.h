// berth cluster, of EC2: what the account lets Berth do, what runs, and the end of what is left.
#pragma once

#include <string>
#include <vector>

#include "berth/remote/clusters.h"
#include "berth/remote/ec2_commands.h"

namespace berth::cli {

struct Ec2Probed {
  std::string cluster;
  std::vector<remote::Ec2Permission> permissions = {};
  std::vector<remote::Ec2Found> instances = {};  // of runs of this state directory
  bool good() const;                             // all is allowed
};
Result<Ec2Probed> probe_ec2(os::Env& env, const remote::ClusterEntry& entry);
std::string to_text(const Ec2Probed& probed);
std::string to_json(const Ec2Probed& probed);

/// Ends instances whose run nobody drives, and says which. usage: no such cluster's kind.
Result<std::vector<remote::Ec2Found>> clean_ec2(os::Env& env, const remote::ClusterEntry& entry);
std::string to_json(const remote::Ec2Found& found);

}  // namespace berth::cli
