#include "berth/engine/machines/clusters.h"

#include <algorithm>

#include "berth/engine/context.h"
#include "berth/engine/queries/run_state.h"
#include "berth/os/loop.h"
#include "berth/remote/slurm/slurm_commands.h"
#include "berth/remote/slurm/slurm_entry.h"
#include "berth/remote/ssh/ssh.h"
#include "berth/run/drive/runner.h"

namespace berth::engine {
namespace {

constexpr Duration kProbesWithin = std::chrono::seconds(60);
constexpr Duration kUnusedFor = std::chrono::hours(24 * 30);

/// Returns the named clusters in this order, or all.
Result<std::vector<remote::ClusterEntry>> entries_of(os::Env& env,
                                                     const std::vector<std::string>& names) {
  if (names.empty()) return remote::read_clusters(env);
  std::vector<remote::ClusterEntry> entries;
  for (const auto& name : names) {
    BERTH_ASSIGN(auto entry, remote::find_cluster(env, name));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Status probe_one(os::Env& env, const remote::ClusterEntry& entry, ProbedClusters& all) {
  if (entry.kind == "slurm") {
    BERTH_ASSIGN(auto probed, probe_slurm(env, entry));
    all.slurm.push_back(std::move(probed));
  } else if (entry.kind == "ec2") {
    BERTH_ASSIGN(auto probed, probe_ec2(env, entry));
    all.ec2.push_back(std::move(probed));
  } else {
    BERTH_ASSIGN(auto probed, probe_hosts(env, entry));
    std::ranges::move(probed, std::back_inserter(all.hosts));
  }
  return {};
}

/// The key with its whole path, because runs start in other directories; "~/" stays.
Result<std::string> key_to_add(os::Env& env, std::string key, std::string& warning) {
  if (key.empty()) return key;
  std::string path = key;
  if (key.starts_with("~/")) {
    path = env.variable("HOME").value_or("") + key.substr(1);
  } else if (!key.starts_with('/')) {
    BERTH_ASSIGN(const auto here, env.real_path("."));
    path = key = here + "/" + key;
  }
  if (!env.status(path)) warning = fmt::format("there is no key file {}", path);
  return key;
}

/// The hosts of the command line as the clusters file has them, each with the key.
Result<std::vector<std::string>> hosts_to_add(const std::vector<std::string>& all,
                                              const std::string& key) {
  std::vector<std::string> hosts, seen;
  for (const auto& host : all) {
    hosts.push_back(key.empty() ? host : host + " " + key);
    const auto parsed = remote::parse_ssh_host(hosts.back());
    if (!parsed) return fail(ErrorKind::usage, "{}", parsed.error().message);
    auto address =
        parsed->port == 0 ? parsed->host : fmt::format("{}:{}", parsed->host, parsed->port);
    if (std::ranges::find(seen, address) != seen.end())
      return fail(ErrorKind::usage, "{} is listed twice", address);
    seen.push_back(std::move(address));
  }
  return hosts;
}

/// Returns the text of `file` with the cluster added, after the checks that a run does.
Result<std::string> added(os::Env& env, const std::string& text, const std::string& file,
                          const std::string& name, const std::vector<std::string>& hosts) {
  BERTH_TRY(remote::parse_clusters(text, file));
  BERTH_ASSIGN(auto now, remote::with_cluster(text, name, hosts));
  BERTH_ASSIGN(const auto entries, remote::parse_clusters(now, file));
  BERTH_TRY(
      remote::check_cluster(env, *std::ranges::find(entries, name, &remote::ClusterEntry::name)));
  return now;
}

}  // namespace

Result<std::vector<HostProbed>> probe_hosts(os::Env& env, const remote::ClusterEntry& entry) {
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  BERTH_ASSIGN(const auto opened, remote::open_cluster(env, entry, agent));
  std::vector<HostProbed> probed;
  std::vector<remote::Host*> open = opened.hosts;
  const Mono until = env.now() + kProbesWithin;
  while (!open.empty() && env.stop_signals() == 0) {
    std::erase_if(open, [&](remote::Host* host) {
      auto offer = host->look();
      if (!offer && !host->failure() && env.now() < until) return false;
      if (!offer && host->failure()) offer = std::unexpected(*host->failure());
      probed.push_back({entry.name, host->name(), std::move(offer)});
      return true;
    });
    if (!open.empty()) BERTH_TRY(env.loop().turn(until));
  }
  std::ranges::sort(probed, {}, &HostProbed::host);
  return probed;
}

Result<std::vector<remote::HostCleaned>> clean_hosts(os::Env& env,
                                                     const remote::ClusterEntry& entry,
                                                     const agent::CleanOptions& options) {
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  BERTH_ASSIGN(const auto opened, remote::open_cluster(env, entry, agent));
  std::vector<remote::Transport> transports;
  for (const auto* host : opened.hosts) transports.push_back(host->transport());
  return remote::clean_hosts(env, transports, agent, options);
}

Result<SlurmProbed> probe_slurm(os::Env& env, const remote::ClusterEntry& entry) {
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  BERTH_ASSIGN(const auto options, remote::read_slurm(env, entry, agent));
  auto answer = remote::slurm_partitions(env, options);
  if (!answer) return SlurmProbed{entry.name, std::unexpected(answer.error())};
  SlurmProbed probed{entry.name, std::move(answer->used)};
  if (!answer->problem.empty())
    probed.entry = entry.body.find("partitions").value_or(entry.body).error(answer->problem);
  return probed;
}

Status SlurmProbed::status() const {
  return partitions ? entry : Status(std::unexpected(partitions.error()));
}

Result<Ec2Probed> probe_ec2(os::Env& env, const remote::ClusterEntry& entry) {
  Ec2Probed probed{.cluster = entry.name};
  BERTH_ASSIGN(const auto settings, remote::read_ec2_settings(env, entry.name, entry.body));
  BERTH_ASSIGN(const std::string state, run::state_directory(env));
  BERTH_ASSIGN(probed.permissions, remote::ec2_permissions(env, settings));
  if (probed.permissions.front().allowed) {
    BERTH_ASSIGN(probed.instances,
                 remote::ec2_instances(env, settings, remote::ec2_home(env, state)));
  }
  return probed;
}

Result<std::vector<remote::Ec2Found>> clean_ec2(os::Env& env, const remote::ClusterEntry& entry) {
  BERTH_ASSIGN(const auto settings, remote::read_ec2_settings(env, entry.name, entry.body));
  BERTH_ASSIGN(const Context context, open_context(env));
  const std::string home = remote::ec2_home(env, context.state_directory);
  BERTH_ASSIGN(auto found, remote::ec2_instances(env, settings, home));
  std::erase_if(found, [&](const remote::Ec2Found& instance) {
    const auto run = context.store->find_run(instance.run);
    return run && is_under_way(state_now(env, *run));
  });
  BERTH_TRY(remote::end_ec2_instances(env, settings, found));
  return found;
}

bool Ec2Probed::good() const {
  return std::ranges::all_of(permissions, [](const auto& one) { return one.allowed.has_value(); });
}

int ProbedClusters::code() const {
  std::vector<int> codes{0};
  for (const auto& [cluster, error] : errors) codes.push_back(exit_code(error.kind));
  for (const auto& one : slurm)
    if (!one.entry) codes.push_back(exit_code(one.entry.error().kind));
  const int wrong_file = exit_code(ErrorKind::invalid);
  if (std::ranges::find(codes, wrong_file) != codes.end()) return wrong_file;
  const bool good =
      errors.empty() &&
      std::ranges::all_of(hosts, [](const HostProbed& one) { return one.offer.has_value(); }) &&
      std::ranges::all_of(ec2, &Ec2Probed::good) &&
      std::ranges::all_of(slurm, [](const SlurmProbed& one) { return one.partitions.has_value(); });
  return good ? 0 : exit_code(ErrorKind::busy);
}

Result<ProbedClusters> probe_clusters(os::Env& env, const std::vector<std::string>& names) {
  BERTH_ASSIGN(const auto entries, entries_of(env, names));
  ProbedClusters all{.is_empty = entries.empty()};
  BERTH_ASSIGN(all.file, remote::clusters_file(env));
  for (const auto& entry : entries) {
    const auto probed = probe_one(env, entry, all);
    if (probed) continue;
    if (entries.size() == 1 || probed.error().kind == ErrorKind::interrupted)
      return std::unexpected(probed.error());
    all.errors.emplace_back(entry.name, probed.error());
  }
  return all;
}

Result<ListedClusters> list_clusters(os::Env& env, const std::vector<std::string>& names) {
  BERTH_ASSIGN(const auto entries, entries_of(env, names));
  ListedClusters all;
  BERTH_ASSIGN(all.file, remote::clusters_file(env));
  for (const auto& entry : entries) {
    auto& listed = all.clusters.emplace_back();
    listed = {.name = entry.name, .kind = entry.kind, .lease = entry.lease};
    listed.checked = remote::check_cluster(env, entry);
    if (!listed.checked) all.code = exit_code(listed.checked.error().kind);
    const auto hosts = entry.body.find("hosts");
    if (!hosts) continue;
    if (const auto items = hosts->items()) listed.hosts = items->size();
  }
  return all;
}

Result<AddedCluster> add_cluster(os::Env& env, const std::string& name,
                                 const std::vector<std::string>& hosts, const std::string& key) {
  AddedCluster result{.name = name};
  BERTH_ASSIGN(const auto path, key_to_add(env, key, result.warning));
  BERTH_ASSIGN(result.hosts, hosts_to_add(hosts, path));
  BERTH_ASSIGN(result.file, remote::clusters_file(env));
  BERTH_TRY(remote::edit_clusters(env, [&](const std::string& text) {
    return added(env, text, result.file, name, result.hosts);
  }));
  return result;
}

Result<RemovedClusters> remove_clusters(os::Env& env, const std::vector<std::string>& names) {
  for (const auto& name : names) BERTH_TRY(remote::find_cluster(env, name));
  BERTH_TRY(remote::edit_clusters(env, [&](std::string text) -> Result<std::string> {
    for (const auto& name : names) {
      BERTH_ASSIGN(text, remote::without_cluster(text, name));
    }
    return text;
  }));
  BERTH_ASSIGN(auto file, remote::clusters_file(env));
  return RemovedClusters{names, std::move(file)};
}

Result<CleanedClusters> clean_clusters(os::Env& env, const std::vector<std::string>& names,
                                       const CleanRequest& request) {
  BERTH_ASSIGN(const auto entries, entries_of(env, names));
  for (const auto& entry : entries) {
    if (entry.kind != "ssh" && entry.kind != "ec2")
      return fail(ErrorKind::usage,
                  "cluster '{}' is of kind {}; berth cluster clean works on ssh and ec2 clusters",
                  entry.name, entry.kind);
    if (entry.kind == "ec2" && (request.dry_run || request.older_than))
      return fail(ErrorKind::usage,
                  "--dry-run and --older-than work on ssh clusters; cluster '{}' is of kind ec2",
                  entry.name);
  }
  CleanedClusters all{.dry_run = request.dry_run};
  const Duration age = request.older_than.value_or(kUnusedFor);
  for (const auto& entry : entries) {
    if (entry.kind == "ssh") {
      BERTH_ASSIGN(auto hosts, clean_hosts(env, entry, {age, request.dry_run}));
      std::ranges::move(hosts, std::back_inserter(all.hosts));
    } else {
      BERTH_ASSIGN(auto ended, clean_ec2(env, entry));
      std::ranges::move(ended, std::back_inserter(all.ended));
    }
  }
  return all;
}

}  // namespace berth::engine
