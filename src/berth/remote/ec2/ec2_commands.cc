#include "berth/remote/ec2/ec2_commands.h"

#include <algorithm>

namespace berth::remote {
namespace {

constexpr Duration kTimeout = std::chrono::minutes(1);

Result<Xml> ask(Ec2Api& api, const std::string& action, Ec2Parameters parameters) {
  auto answer = std::make_shared<Result<Xml>>(
      fail(ErrorKind::io, "EC2 has not answered {} for a minute", action));
  api.call(action, std::move(parameters),
           [answer](Result<Xml> came) { *answer = std::move(came); });
  (void)api.finish(kTimeout);
  return *std::move(answer);
}

std::string_view name(Ec2Instance::State state) {
  return state == Ec2Instance::State::pending ? "pending" : "running";
}

std::string tag(const Ec2Instance& instance, std::string_view key) {
  for (const auto& [name, value] : instance.tags)
    if (name == key) return value;
  return "";
}

}  // namespace

Result<std::unique_ptr<Ec2Api>> open_ec2(os::Env& env, const Ec2Settings& settings) {
  BERTH_ASSIGN(const Cloud* cloud, load_cloud(env));
  BERTH_ASSIGN(Credentials credentials, find_credentials(env, settings.profile));
  auto http = cloud->open(
      {.url = settings.endpoint, .region = settings.region, .credentials = std::move(credentials)});
  return std::make_unique<Ec2Api>(env, *cloud, std::move(http), settings.endpoint);
}

Result<std::vector<Ec2Permission>> ec2_permissions(Ec2Api& api, const Ec2Settings& settings) {
  std::vector<std::pair<std::string, Ec2Parameters>> calls{{"DescribeInstances", {}}};
  if (settings.spot) calls.push_back({"DescribeSpotInstanceRequests", {}});
  if (settings.instances.empty()) {
    Ec2Parameters run{{"ImageId", settings.image},
                      {"InstanceType", settings.types.front().name},
                      {"MinCount", "1"},
                      {"MaxCount", "1"}};
    if (!settings.key_name.empty()) run.emplace_back("KeyName", settings.key_name);
    if (!settings.subnet.empty()) run.emplace_back("SubnetId", settings.subnet);
    calls.push_back({"RunInstances", std::move(run)});
  } else {
    Ec2Parameters ids;
    for (const auto& id : settings.instances)
      ids.emplace_back(fmt::format("InstanceId.{}", ids.size() + 1), id);
    calls.push_back({"StartInstances", ids});
    calls.push_back({"StopInstances", std::move(ids)});
  }
  std::vector<Ec2Permission> permissions;
  for (auto& [action, parameters] : calls) {
    parameters.emplace_back("DryRun", "true");
    const auto answer = ask(api, action, std::move(parameters));
    permissions.push_back({action, answer ? Status{} : std::unexpected(answer.error())});
  }
  return permissions;
}

Result<std::vector<Ec2Found>> ec2_instances(Ec2Api& api, const Ec2Settings& settings,
                                            const std::string& home) {
  std::vector<Ec2Found> found;
  std::string next;
  do {
    Ec2Parameters parameters{
        {"Filter.1.Name", "tag:berth-cluster"},   {"Filter.1.Value.1", settings.name},
        {"Filter.2.Name", "tag:berth-home"},      {"Filter.2.Value.1", home},
        {"Filter.3.Name", "instance-state-name"}, {"Filter.3.Value.1", "pending"},
        {"Filter.3.Value.2", "running"},          {"MaxResults", "500"}};
    if (!next.empty()) parameters.emplace_back("NextToken", next);
    BERTH_ASSIGN(const Xml answer, ask(api, "DescribeInstances", std::move(parameters)));
    BERTH_ASSIGN(auto page, read_instances(answer));
    for (const Ec2Instance& each : page.instances)
      found.push_back({each.id, tag(each, "berth-run"), each.type, std::string(name(each.state)),
                       each.address});
    next = std::move(page.next);
  } while (!next.empty() && found.size() < 10'000);
  return found;
}

Result<std::vector<Ec2Permission>> ec2_permissions(os::Env& env, const Ec2Settings& settings) {
  BERTH_ASSIGN(const auto api, open_ec2(env, settings));
  return ec2_permissions(*api, settings);
}

Result<std::vector<Ec2Found>> ec2_instances(os::Env& env, const Ec2Settings& settings,
                                            const std::string& home) {
  BERTH_ASSIGN(const auto api, open_ec2(env, settings));
  return ec2_instances(*api, settings, home);
}

Status end_ec2_instances(os::Env& env, const Ec2Settings& settings,
                         const std::vector<Ec2Found>& instances) {
  if (instances.empty()) return {};
  BERTH_ASSIGN(const auto api, open_ec2(env, settings));
  Ec2Parameters ids;
  for (const auto& each : instances)
    ids.emplace_back(fmt::format("InstanceId.{}", ids.size() + 1), each.id);
  const bool stop = settings.end() == Ec2Settings::AtEnd::stop;
  BERTH_TRY(ask(*api, stop ? "StopInstances" : "TerminateInstances", std::move(ids)));
  return {};
}

}  // namespace berth::remote
