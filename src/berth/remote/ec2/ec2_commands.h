// What a person may ask of an EC2 cluster outside of a run: whether it would be allowed, what there
// is of Berth's, and the end of that. These wait for their answers, a minute at most.
#pragma once

#include <string>
#include <vector>

#include "berth/remote/ec2/ec2_api.h"
#include "berth/remote/ec2/ec2_settings.h"

namespace berth::remote {

/// An action that a run takes, and whether EC2 would have it (asked with DryRun).
struct Ec2Permission {
  std::string action;
  Status allowed;
};
/// denied: there are no credentials.
Result<std::vector<Ec2Permission>> ec2_permissions(os::Env& env, const Ec2Settings& settings);

struct Ec2Found {
  std::string id, run, type, state, address;
};
/// What runs, or is about to, with the tags of this cluster and `home`; named ones are not ours.
Result<std::vector<Ec2Found>> ec2_instances(os::Env& env, const Ec2Settings& settings,
                                            const std::string& home);
/// Ends them as the settings say.
Status end_ec2_instances(os::Env& env, const Ec2Settings& settings,
                         const std::vector<Ec2Found>& instances);

/// One that the caller has opened, for tests.
Result<std::vector<Ec2Permission>> ec2_permissions(Ec2Api& api, const Ec2Settings& settings);
Result<std::vector<Ec2Found>> ec2_instances(Ec2Api& api, const Ec2Settings& settings,
                                            const std::string& home);

/// A connection by the settings' credentials. denied, not_found (berth-cloud.so).
Result<std::unique_ptr<Ec2Api>> open_ec2(os::Env& env, const Ec2Settings& settings);

}  // namespace berth::remote
