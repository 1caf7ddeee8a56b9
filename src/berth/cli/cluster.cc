// berth cluster: the machines elsewhere that runs may go to.
#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/cluster_ec2.h"
#include "berth/cli/cluster_slurm.h"
#include "berth/cli/cluster_ssh.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/cli/table.h"
#include "berth/remote/ssh.h"

namespace berth::cli {
namespace {

struct ClusterOptions {
  bool json = false, dry_run = false;
  std::string action, name, older_than, key;
  std::vector<std::string> more;  // of add: hosts; else further clusters

  void add_to(Options& options) {
    options.json(json);
    options.value("ACTION", action, "list, probe, add, remove or clean")
        .required()
        .one_of({"list", "probe", "add", "remove", "clean"});
    options.value("CLUSTER", name, "the cluster; list and probe: all without it");
    options.list("MORE", more,
                 "of add: hosts, each user@host[:port] or a name of your ssh config; else further "
                 "clusters");
    options.flag("--dry-run", dry_run, "of clean, of hosts: only say how much");
    options.value("--older-than", older_than,
                  "of clean, of hosts: what came there longer ago, such as 7d (default 30d)");
    options.value("--key", key, "of add: the key file of these hosts").named("FILE");
    options.footer(
        "Examples:\n"
        "  berth cluster add lab alice@10.0.0.7:2222 gpu-box --key ~/.ssh/lab\n"
        "  berth cluster probe lab hpc\n"
        "  berth run --cluster lab sweep.yaml\n"
        "  berth cluster clean lab --older-than 7d     removes from its hosts what nobody uses\n"
        "  berth cluster clean cloud     ends what dead runs have left running on EC2\n"
        "They stand in ~/.config/berth/clusters.yaml, or the file that BERTH_CLUSTERS names, "
        "which\n"
        "takes more than add writes: see docs/reference/clusters.md.");
  }

  /// What was named behind the action.
  std::vector<std::string> names() const {
    std::vector<std::string> all = more;
    if (!name.empty()) all.insert(all.begin(), name);
    return all;
  }
};

template <typename Each>
void add_list(JsonWriter& json, std::string_view name, const std::vector<Each>& all) {
  json.key(name).array();
  for (const auto& one : all) json.raw(to_json(one));
  json.end();
}

/// Those that were named, in this order, or all.
Result<std::vector<remote::ClusterEntry>> entries_of(os::Env& env, const ClusterOptions& options) {
  const auto names = options.names();
  if (names.empty()) return remote::read_clusters(env);
  std::vector<remote::ClusterEntry> entries;
  for (const auto& name : names) {
    BERTH_ASSIGN(auto entry, remote::find_cluster(env, name));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<int> probe_clusters(os::Env& env, const ClusterOptions& options) {
  os::install_stop_signals();
  BERTH_ASSIGN(const auto entries, entries_of(env, options));
  std::vector<HostProbed> hosts;
  std::vector<Ec2Probed> ec2;
  std::vector<SlurmProbed> slurm;
  for (const auto& entry : entries) {
    if (entry.kind == "slurm") {
      BERTH_ASSIGN(slurm.emplace_back(), probe_slurm(env, entry));
      continue;
    }
    if (entry.kind == "ec2") {
      BERTH_ASSIGN(ec2.emplace_back(), probe_ec2(env, entry));
      continue;
    }
    BERTH_ASSIGN(auto probed, probe_hosts(env, entry));
    std::ranges::move(probed, std::back_inserter(hosts));
  }
  const bool good =
      std::ranges::all_of(hosts, [](const HostProbed& one) { return one.offer.has_value(); }) &&
      std::ranges::all_of(ec2, &Ec2Probed::good) &&
      std::ranges::all_of(slurm, [](const SlurmProbed& one) { return one.partitions.has_value(); });
  if (options.json) {
    JsonWriter json;
    json.object().add("version", 1);
    add_list(json, "hosts", hosts);
    add_list(json, "ec2", ec2);
    add_list(json, "slurm", slurm);
    print(json.end().take() + "\n");
    return good ? 0 : exit_code(ErrorKind::busy);
  }
  for (const auto& one : ec2) print(to_text(one));
  for (const auto& one : slurm) print(to_text(one));
  print(to_text(hosts));
  if (entries.empty()) print("no clusters; see berth cluster --help\n");
  return good ? 0 : exit_code(ErrorKind::busy);
}

Result<int> list_clusters(os::Env& env, const ClusterOptions& options) {
  BERTH_ASSIGN(const auto entries, entries_of(env, options));
  Table table({"cluster", "kind", "lease", "hosts"});
  JsonWriter json;
  json.object().add("version", 1).key("clusters").array();
  int code = 0;
  for (const auto& entry : entries) {
    const auto good = remote::check_cluster(env, entry);
    if (!good) code = exit_code(good.error().kind);
    const auto hosts = entry.body.find("hosts");
    const auto items = hosts ? hosts->items() : Result<std::vector<Field>>(std::vector<Field>{});
    const std::string count = items && hosts ? fmt::format("{}", items->size()) : "";
    table.add({entry.name, entry.kind, format_duration(entry.lease),
               good ? count : good.error().message});
    json.object().add("name", entry.name).add("kind", entry.kind);
    json.add("lease_ms", to_ms(entry.lease));
    if (!good) json.add("error", good.error().message);
    json.end();
  }
  BERTH_ASSIGN(const auto file, remote::clusters_file(env));
  if (options.json)
    print(json.end().end().take() + "\n");
  else
    print(table.empty() ? fmt::format("no clusters in {}; see berth cluster --help\n", file)
                        : table.text());
  return code;
}

/// The file's text with the cluster that is to be added, which a run would take.
Result<std::string> added(os::Env& env, const std::string& text, const ClusterOptions& options) {
  const std::string& name = options.name;
  if (options.more.empty()) return fail(ErrorKind::usage, "expected hosts; see --help");
  std::vector<std::string> hosts;
  for (const auto& host : options.more) {
    hosts.push_back(options.key.empty() ? host : host + " " + options.key);
    const auto parsed = remote::parse_ssh_host(hosts.back());
    if (!parsed) return fail(ErrorKind::usage, "{}", parsed.error().message);
  }
  BERTH_ASSIGN(auto now, remote::with_cluster(text, name, hosts));
  BERTH_ASSIGN(const auto entries, remote::parse_clusters(now, "clusters.yaml"));
  BERTH_TRY(
      remote::check_cluster(env, *std::ranges::find(entries, name, &remote::ClusterEntry::name)));
  return now;
}

Status change(os::Env& env, const ClusterOptions& options) {
  if (options.name.empty()) return fail(ErrorKind::usage, "expected the cluster's name");
  return remote::edit_clusters(env, [&](std::string text) -> Result<std::string> {
    if (options.action == "add") return added(env, text, options);
    for (const auto& name : options.names()) {
      BERTH_ASSIGN(text, remote::without_cluster(text, name));
    }
    return text;
  });
}

/// What was left on hosts, and what on EC2.
struct CleanedAll {
  std::vector<remote::HostCleaned> hosts;
  std::vector<remote::Ec2Found> ended;
};

std::string cleaned_json(const CleanedAll& all, bool dry_run) {
  JsonWriter json;
  json.object().add("version", 1).add("dry_run", dry_run);
  add_list(json, "hosts", all.hosts);
  add_list(json, "ended", all.ended);
  return json.end().take() + "\n";
}

std::string cleaned_text(const CleanedAll& all, bool dry_run) {
  Table table({"host", "leases", "objects", dry_run ? "would free" : "freed"});
  for (const auto& [host, cleaned] : all.hosts) {
    if (cleaned)
      table.add({host, fmt::format("{}", cleaned->leases), fmt::format("{}", cleaned->objects),
                 format_bytes(cleaned->lease_bytes + cleaned->object_bytes)});
    else
      table.add({host, "", "", cleaned.error().message});
  }
  std::string text = all.hosts.empty() ? "" : table.text();
  for (const auto& one : all.ended) text += fmt::format("ended {} of {}\n", one.id, one.run);
  return text.empty() ? "nothing was left\n" : text;
}

Result<int> clean_clusters(os::Env& env, const ClusterOptions& options) {
  if (options.name.empty()) return fail(ErrorKind::usage, "expected the cluster's name");
  BERTH_ASSIGN(const auto entries, entries_of(env, options));
  BERTH_ASSIGN(const Duration age, age_of("--older-than", options.older_than));
  for (const auto& entry : entries) {
    if (entry.kind != "ssh" && entry.kind != "ec2")
      return fail(ErrorKind::usage, "{} is of kind {}: clean is for ssh and ec2", entry.name,
                  entry.kind);
    if (entry.kind == "ec2" && (options.dry_run || !options.older_than.empty()))
      return fail(ErrorKind::usage,
                  "--dry-run and --older-than are for hosts, and {} is of kind ec2", entry.name);
  }
  os::install_stop_signals();
  CleanedAll all;
  for (const auto& entry : entries) {
    if (entry.kind == "ssh") {
      BERTH_ASSIGN(auto hosts, clean_hosts(env, entry, {age, options.dry_run}));
      std::ranges::move(hosts, std::back_inserter(all.hosts));
    } else {
      BERTH_ASSIGN(auto ended, clean_ec2(env, entry));
      std::ranges::move(ended, std::back_inserter(all.ended));
    }
  }
  print(options.json ? cleaned_json(all, options.dry_run) : cleaned_text(all, options.dry_run));
  const bool good =
      std::ranges::all_of(all.hosts, [](const auto& one) { return bool(one.cleaned); });
  return good ? 0 : exit_code(ErrorKind::io);
}

Result<int> use_clusters(os::Env& env, const ClusterOptions& options) {
  if (options.action != "clean" && (options.dry_run || !options.older_than.empty()))
    return fail(ErrorKind::usage, "--dry-run and --older-than are only for clean");
  if (options.action != "add" && !options.key.empty())
    return fail(ErrorKind::usage, "--key is only for add");
  if (options.action == "clean") return clean_clusters(env, options);
  if (options.action == "list") return list_clusters(env, options);
  if (options.action == "probe") return probe_clusters(env, options);
  BERTH_TRY(change(env, options));
  return 0;
}

}  // namespace

Command cluster_command() {
  return command("cluster", "the machines elsewhere that runs may go to", use_clusters);
}

}  // namespace berth::cli
