// What an Auptimizer document says of trials on other machines, as an entry in a file of clusters.
#include <algorithm>
#include <array>
#include <set>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/exec/fields.h"
#include "berth/experiment/auptimizer/auptimizer.h"
#include "berth/experiment/auptimizer/auptimizer_elsewhere.h"
#include "berth/experiment/document/reading.h"
#include "berth/remote/ssh/ssh.h"

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
  if (hosts.empty()) return root.error("expected at least one machine");
  return hosts;
}

/// Whether it names an instance of EC2; an address or a name is reached as any host is.
bool is_instance(std::string_view host) {
  return host.starts_with("i-") && host.size() > 2 &&
         host.find_first_not_of("0123456789abcdef", 2) == std::string_view::npos;
}

void add_cluster(AuptimizerExperiment& experiment, std::string_view kind, const std::string& body) {
  auto& names = experiment.cluster_names;
  names.push_back(names.empty() ? experiment.resource
                                : fmt::format("{}-{}", experiment.resource, names.size() + 1));
  experiment.clusters +=
      fmt::format("{}:\n  kind: {}\n{}{}", names.back(), kind, experiment.settings, body);
}

void add_hosts(AuptimizerExperiment& experiment, const std::vector<Mapped>& hosts) {
  std::string body = "  hosts:\n";
  for (const auto& [host, line] : hosts) body += fmt::format("    - {}\n", json_quote(line));
  if (!hosts.empty()) add_cluster(experiment, "ssh", body);
}

/// Instances are started as one cluster: by one user, key and port.
void add_instances(AuptimizerExperiment& experiment, const std::vector<Mapped>& hosts) {
  std::vector<std::pair<remote::SshHost, std::vector<std::string>>> groups;
  for (const auto& mapped : hosts) {
    remote::SshHost how = mapped.host;
    how.host.clear();
    auto group = std::ranges::find(groups, how, [](const auto& one) { return one.first; });
    if (group == groups.end()) group = groups.insert(groups.end(), {how, {}});
    group->second.push_back(json_quote(mapped.host.host));
  }
  for (const auto& [how, ids] : groups) {
    std::string body =
        fmt::format("{}  instances: [{}]\n", experiment.instance_settings, join(ids, ", "));
    if (!how.user.empty()) body += fmt::format("  user: {}\n", json_quote(how.user));
    if (!how.key.empty()) body += fmt::format("  key_file: {}\n", json_quote(how.key));
    if (how.port != 0) body += fmt::format("  port: {}\n", how.port);
    add_cluster(experiment, "ec2", body);
  }
}

/// As docs/how-to/slurm.md has them.
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

std::span<const std::string_view> elsewhere_arguments(std::string_view resource) {
  static constexpr std::array<std::string_view, 5> kNode{
      "async_run", "async_timeout", "async_reconnect", "reconn_wait_time", "max_retries"};
  static constexpr std::array<std::string_view, 8> kAws{
      "async_run",   "async_timeout", "async_reconnect",  "reconn_wait_time",
      "max_retries", "shutdown",      "connection_retry", "retry"};
  static constexpr std::array<std::string_view, 8> kSlurm{
      "async_run",  "async_timeout", "reconn_wait_time", "max_retries",
      "partitions", "account",       "time_limit",       "flags"};
  if (resource == "node") return kNode;
  if (resource == "aws") return kAws;
  if (resource == "slurm") return kSlurm;
  return {};
}

std::string environment_value(std::string_view text, std::string_view key) {
  std::string value;
  bool within = false;     // the value of this key
  std::size_t indent = 0;  // of the last key
  for (const auto line : split(text, '\n')) {
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos || line[begin] == '#' || line[begin] == ';') continue;
    if (within && begin > indent) {
      value += " ";
      value += trim(line);
      continue;
    }
    const auto equals = line.find_first_of("=:");
    if (equals == std::string_view::npos) continue;
    indent = begin;
    within = lower(trim(line.substr(0, equals))) == key;
    if (within) value = trim(line.substr(equals + 1));
  }
  return value;
}

Status read_elsewhere(const Field& root, AuptimizerExperiment& experiment) {
  const auto arguments = root.find("resource_args");
  constexpr std::int64_t kWait_s = 30, kRetries = 3;  // as there
  BERTH_ASSIGN(const auto wait_s, seconds_or(arguments, "reconn_wait_time", kWait_s));
  BERTH_ASSIGN(const auto retries, seconds_or(arguments, "max_retries", kRetries));
  BERTH_ASSIGN(const auto alone_s, seconds_or(arguments, "async_timeout", kDay_s));
  BERTH_ASSIGN(const bool alone, yes_or(arguments, "async_run", false));
  BERTH_ASSIGN(const auto reconnect_s, seconds_or(arguments, "async_reconnect", 0));
  std::string& settings = experiment.settings;
  settings = fmt::format("  lease: {}s\n", std::min(kMost_s, wait_s * retries));
  if (alone) settings += fmt::format("  outlive: {}s\n", alone_s);
  if (experiment.resource == "aws") {
    BERTH_ASSIGN(const bool shutdown, yes_or(arguments, "shutdown", false));
    constexpr std::int64_t kConnections = 10;  // tries, of 30 s each
    BERTH_ASSIGN(const auto older, seconds_or(arguments, "retry", kConnections));
    BERTH_ASSIGN(const auto connections, seconds_or(arguments, "connection_retry", older));
    experiment.instance_settings =
        fmt::format("  at_end: {}\n  patience: {}s\n", shutdown ? "stop" : "keep",
                    std::min(kMost_s, connections * kWait_s));
  }
  if (experiment.resource == "slurm") {
    std::string body;
    if (arguments) BERTH_TRY(read_slurm(*arguments, body));
    add_cluster(experiment, "slurm", body);
  } else if (reconnect_s > 0) {
    settings += fmt::format("  reconnect: {}s\n", reconnect_s);
  }
  return {};
}

Result<bool> read_machines(std::string_view text, const std::string& file,
                           AuptimizerExperiment& experiment) {
  const bool aws = experiment.resource == "aws";
  if (!aws && experiment.resource != "node") return false;
  const std::string key = experiment.resource + "_mapping";
  const std::string mapping = environment_value(text, key);
  if (mapping.empty()) return false;
  BERTH_ASSIGN(const Field root, Field::parse(mapping, fmt::format("{}: {}", file, key)));
  BERTH_ASSIGN(auto hosts, read_hosts(root));
  const auto others = std::ranges::stable_partition(
      hosts, [&](const Mapped& one) { return aws && is_instance(one.host.host); });
  add_instances(experiment, {hosts.begin(), others.begin()});
  add_hosts(experiment, {others.begin(), others.end()});
  return true;
}

}  // namespace berth::experiment
