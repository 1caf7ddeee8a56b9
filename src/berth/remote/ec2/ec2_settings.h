// What a person says about an EC2 cluster, and the instance types there are. Pure, but for
// find_credentials().
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/document.h"
#include "berth/cluster/cluster.h"
#include "berth/os/env.h"
#include "berth/remote/cloud/cloud.h"

namespace berth::remote {

/// What one instance of a type is, and what it costs on demand.
struct Ec2Type {
  std::string name;      // "g5.xlarge"
  std::int64_t cpu = 0;  // vCPUs
  std::int64_t mem = 0;  // bytes
  std::int64_t gpus = 0;
  std::string gpu_model;     // empty: no GPUs
  std::int64_t gpu_mem = 0;  // bytes of each
  std::int64_t price = 0;    // thousandths of a cent an hour
};

/// The types that Berth knows, with list prices of us-east-1 as of the middle of 2025.
std::span<const Ec2Type> known_ec2_types();

struct Ec2Settings {
  enum class AtEnd : std::uint8_t { terminate, stop, keep };  // the last only of named ones
  static constexpr auto kAtEndNames =
      names<AtEnd>({{AtEnd::terminate, "terminate"}, {AtEnd::stop, "stop"}, {AtEnd::keep, "keep"}});

  std::string name;  // of the cluster
  std::string region, endpoint, profile;
  std::vector<std::string> instances;  // "i-…": these are started and stopped; else ours are run
  std::string image;
  std::vector<Ec2Type> types;  // that may be run, or that the named ones are
  bool spot = false;
  std::string key_name, subnet, instance_profile;
  std::vector<std::string> security_groups;
  std::string user = "ec2-user", key_file;
  std::int64_t port = 22;
  std::size_t most = 1;                         // instances side by side
  std::optional<std::int64_t> budget;           // cents that a run may cost
  std::optional<AtEnd> at_end;                  // none: terminate what we ran, stop what we started
  Duration idle = std::chrono::minutes(1);      // until one that nobody needs is ended
  Duration lease = std::chrono::minutes(10);    // `guard`: it ends itself when nobody renews
  Duration timeout = std::chrono::minutes(10);  // until ssh has to answer

  AtEnd end() const { return at_end.value_or(instances.empty() ? AtEnd::terminate : AtEnd::stop); }
};

/// The keys of an `ec2` cluster in the file of clusters; region and endpoint may come from
/// AWS_REGION and AWS_ENDPOINT_URL too. invalid: names file, line and key.
Result<Ec2Settings> read_ec2_settings(os::Env& env, std::string name, const Field& field);

/// Of a profile ("" : $AWS_PROFILE or default) in what stands in ~/.aws/credentials. not_found.
Result<Credentials> read_credentials(std::string_view text, std::string_view profile);
/// From AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN), unless a profile is named;
/// else from AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials. denied: there are none.
Result<Credentials> find_credentials(os::Env& env, const std::string& profile);

/// How a state directory of this machine is called in the tags of instances: short, and no path of
/// anybody's.
std::string ec2_home(os::Env& env, const std::string& state_directory);

/// Of the types with room for `min`, that with the least price for as many of it as fit side by
/// side, up to `width`; all of them, best first. Empty: none has room.
std::vector<Ec2Type> fitting(std::span<const Ec2Type> types, const cluster::Wish& wish);
/// How many of `min` an instance of the type has room for, up to `width`.
std::int64_t how_often(const Ec2Type& type, const cluster::Wish& wish);
/// What an instance of it surely has: an eighth of the memory is left to the system.
machine::Block block_of(const Ec2Type& type);

}  // namespace berth::remote
