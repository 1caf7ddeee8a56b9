// What an Auptimizer document says of trials on other machines, as an entry in a file of clusters.
#include <algorithm>
#include <array>
#include <set>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/exec/fields.h"
#include "berth/experiment/auptimizer.h"
#include "berth/experiment/auptimizer_elsewhere.h"
#include "berth/experiment/reading.h"
#include "berth/remote/ssh.h"

namespace berth::experiment {
namespace {

constexpr std::int64_t kDay_s = 24 * 3600;
constexpr std::int64_t kMost_s = 30 * kDay_s;

struct Mapped {
  remote::SshHost host;
  std::string line;
};

Result<std::int64_t> seconds_or(const std::optional<Field>& map, std::string_view key,
                                std::int64_t otherwise) {
  const auto field = map ? map->find(key) : std::nullopt;
  if (!field || field->is_null()) return otherwise;
  return exec::integer_within(*field, 1, kMost_s);
}

Result<bool> yes_or(const std::optional<Field>& map, std::string_view key, bool otherwise) {
  const auto field = map ? map->find(key) : std::nullopt;
  if (!field || field->is_null()) return otherwise;
  BERTH_ASSIGN(const auto choice, field->choice(kNoYes));
  return choice == 1;
}

/// Of {"0": "user@host key"}, or of a list, each once and in their order.
Result<std::vector<Mapped>> read_hosts(const Field& root) {
  std::vector<Field> fields;
  if (root.is_map()) {
    BERTH_ASSIGN(const auto entries, root.entries());
    for (const auto& [number, field] : entries) fields.push_back(field);
  } else {
    BERTH_ASSIGN(fields, root.items());
  }
  std::vector<Mapped> hosts;
  std::set<std::string> seen;
  for (const auto& field : fields) {
    BERTH_ASSIGN(const auto text, field.text());
    const std::string line(trim(text));
    auto host = remote::parse_ssh_host(line);
    if (!host) return field.error(host.error());
    if (seen.insert(line).second) hosts.push_back({*std::move(host), line});
  }
  if (hosts.empty()) return root.error("wanted one machine at least");
  return hosts;
}

/// Instances are started as one cluster: by one user and key.
Result<std::string> instances_entry(const Field& root, const std::vector<Mapped>& hosts) {
  std::string ids;
  for (const auto& [host, line] : hosts) {
    const auto& first = hosts.front().host;
    if (host.user != first.user || host.key != first.key || host.port != first.port)
      return root.error(
          "its instances differ in user, key or port; a file of clusters can have "
          "them as two: berth cluster --help");
    ids += (ids.empty() ? "" : ", ") + json_quote(host.host);
  }
  const auto& [host, line] = hosts.front();
  std::string entry = fmt::format("  instances: [{}]\n", ids);
  if (!host.user.empty()) entry += fmt::format("  user: {}\n", json_quote(host.user));
  if (!host.key.empty()) entry += fmt::format("  key_file: {}\n", json_quote(host.key));
  if (host.port != 0) entry += fmt::format("  port: {}\n", host.port);
  return entry;
}

/// As docs/slurm.md has them.
Status read_slurm(const Field& arguments, std::string& entry) {
  for (const auto* key : {"account", "time_limit"})
    if (const auto field = arguments.find(key)) {
      BERTH_ASSIGN(const auto text, field->text());
      entry += fmt::format("  {}: {}\n", key, json_quote(text));
    }
  for (const auto* key : {"partitions", "flags"})
    if (const auto field = arguments.find(key)) {
      BERTH_ASSIGN(auto names, exec::read_names(*field));
      for (auto& name : names) name = json_quote(name);
      entry += fmt::format("  {}: [{}]\n", key, join(names, ", "));
    }
  return {};
}

}  // namespace

std::string environment_value(std::string_view text, std::string_view key) {
  std::string value;
  for (const auto line : split(text, '\n')) {
    const auto equals = line.find('=');
    if (equals != std::string_view::npos && lower(trim(line.substr(0, equals))) == key)
      value = trim(line.substr(equals + 1));
  }
  return value;
}

Status read_elsewhere(const Field& root, const std::string& resource,
                      AuptimizerExperiment& experiment) {
  const auto arguments = root.find("resource_args");
  constexpr std::int64_t kWait_s = 30, kRetries = 3;  // as there
  BERTH_ASSIGN(const auto wait_s, seconds_or(arguments, "reconn_wait_time", kWait_s));
  BERTH_ASSIGN(const auto retries, seconds_or(arguments, "max_retries", kRetries));
  BERTH_ASSIGN(const auto alone_s, seconds_or(arguments, "async_timeout", kDay_s));
  BERTH_ASSIGN(const bool alone, yes_or(arguments, "async_run", false));
  std::string& entry = experiment.cluster;
  entry = fmt::format("{}:\n  kind: {}\n  lease: {}s\n", resource,
                      resource == "node"  ? "ssh"
                      : resource == "aws" ? "ec2"
                                          : "slurm",
                      std::min(kMost_s, wait_s * retries));
  if (alone) entry += fmt::format("  outlive: {}s\n", alone_s);
  if (resource == "aws") {
    BERTH_ASSIGN(const bool shutdown, yes_or(arguments, "shutdown", false));
    entry += fmt::format("  at_end: {}\n", shutdown ? "stop" : "keep");
    constexpr std::int64_t kConnections = 10;  // tries, of 30 s each
    BERTH_ASSIGN(const auto connections, seconds_or(arguments, "connection_retry", kConnections));
    entry += fmt::format("  patience: {}s\n", std::min(kMost_s, connections * kWait_s));
  }
  if (resource == "slurm" && arguments) BERTH_TRY(read_slurm(*arguments, entry));
  if (arguments && arguments->find("async_reconnect"))
    experiment.notes.emplace_back(
        "async_reconnect: passed over, a connection that broke is made again after 0.5 s, and then "
        "ever more slowly");
  return {};
}

Result<bool> read_machines(std::string_view text, const std::string& file,
                           AuptimizerExperiment& experiment) {
  const bool instances = experiment.cluster.starts_with("aws:");
  const std::string key = instances ? "aws_mapping" : "node_mapping";
  const std::string mapping = environment_value(text, key);
  if (mapping.empty()) return false;
  BERTH_ASSIGN(const Field root, Field::parse(mapping, fmt::format("{}: {}", file, key)));
  BERTH_ASSIGN(const auto hosts, read_hosts(root));
  if (instances) {
    BERTH_ASSIGN(const auto entry, instances_entry(root, hosts));
    experiment.cluster += entry;
    return true;
  }
  experiment.cluster += "  hosts:\n";
  for (const auto& [host, line] : hosts)
    experiment.cluster += fmt::format("    - {}\n", json_quote(line));
  return true;
}

}  // namespace berth::experiment
