// berth cluster: the machines elsewhere that runs may go to.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/cluster_ec2.h"
#include "berth/cli/cluster_slurm.h"
#include "berth/cli/shared_options.h"
#include "berth/cli/table.h"
#include "berth/os/loop.h"
#include "berth/remote/cleaning.h"
#include "berth/remote/clusters.h"
#include "berth/remote/ssh.h"

namespace berth::cli {
namespace {

constexpr Duration kProbesWithin = std::chrono::seconds(60);

struct ClusterOptions {
  bool json = false, dry_run = false;
  std::string action, name, older_than, key;
  std::vector<std::string> more;  // of add: hosts; else further clusters

  void add_to(Options& options) {
    options.json(json);
    options.value("ACTION", action, "list, probe, add, remove or clean")
        .required()
        .one_of({"list", "probe", "add", "remove", "clean"});
    options.value("NAME", name, "the cluster; list and probe: all without it");
    options.list("MORE", more,
                 "of add: hosts, each user@host[:port] or a name of your ssh config; else further "
                 "clusters");
    options.flag("--dry-run", dry_run, "of clean, of hosts: only say how much");
    options.value("--older-than", older_than,
                  "of clean, of hosts: what came there longer ago, such as 7d (default 30d)");
    options.value("--key", key, "of add: the key file of these hosts");
    options.footer(
        "Examples:\n"
        "  berth cluster add lab alice@10.0.0.7:2222 gpu-box --key ~/.ssh/lab\n"
        "  berth cluster probe lab hpc\n"
        "  berth run --cluster lab sweep.yaml\n"
        "  berth cluster clean lab --older-than 7d     removes from its hosts what nobody uses\n"
        "  berth cluster clean cloud     ends what dead runs have left running on EC2\n"
        "They stand in ~/.config/berth/clusters.yaml, or the file that BERTH_CLUSTERS names, "
        "which\n"
        "takes more than add writes: see docs/files.md.");
  }

  /// What was named behind the action.
  std::vector<std::string> names() const {
    std::vector<std::string> all = more;
    if (!name.empty()) all.insert(all.begin(), name);
    return all;
  }
};

struct Probed {
  std::string cluster, host;
  Result<agent::MachineOffer> offer;
};

std::string amounts(const Resources& free, const Resources& total) {
  std::vector<std::string> parts;
  total.each([&](std::string_view name, std::int64_t amount) {
    if (name == "disk") return;
    parts.push_back(fmt::format("{} {} of {}", name, format_amount(name, free.get(name)),
                                format_amount(name, amount)));
  });
  return join(parts, ", ");
}

/// Of all hosts of a cluster at once.
Result<std::vector<Probed>> probe(os::Env& env, const remote::ClusterEntry& entry) {
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  BERTH_ASSIGN(const auto opened, remote::open_cluster(env, entry, agent));
  std::vector<Probed> probed;
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
    if (!open.empty()) BERTH_TRY(env.loop().turn(env.now() + std::chrono::milliseconds(10)));
  }
  std::ranges::sort(probed, {}, &Probed::host);
  return probed;
}

template <typename Each>
std::string list_json(const std::vector<Each>& all) {
  std::string text;
  for (const auto& one : all) text += (text.empty() ? "" : ",") + to_json(one);
  return text;
}

std::string hosts_json(const std::vector<Probed>& probed) {
  std::string text;
  for (const auto& [cluster, host, offer] : probed) {
    text += fmt::format(R"({}{{"cluster":{},"host":{})", text.empty() ? "" : ",",
                        json_quote(cluster), json_quote(host));
    if (!offer) {
      text += fmt::format(R"(,"error":{}}})", json_quote(offer.error().message));
      continue;
    }
    std::string devices, holders;
    for (const auto& device : offer->devices)
      devices += (devices.empty() ? "" : ",") + json_quote(device);
    for (const auto& holder : offer->holders)
      holders +=
          fmt::format(R"({}{{"what":{},"resources":{},"waits":{}}})", holders.empty() ? "" : ",",
                      json_quote(holder.label), to_json(holder.resources), holder.waiting);
    text += fmt::format(
        R"(,"name":{},"system":{},"free":{},"total":{},"devices":[{}],"holders":[{}]}})",
        json_quote(offer->host), json_quote(offer->system), to_json(offer->free.resources),
        to_json(offer->total.resources), devices, holders);
  }
  return text;
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
  std::vector<Probed> all;
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
    BERTH_ASSIGN(auto probed, probe(env, entry));
    std::ranges::move(probed, std::back_inserter(all));
  }
  const bool good =
      std::ranges::all_of(all, [](const Probed& one) { return one.offer.has_value(); }) &&
      std::ranges::all_of(ec2, &Ec2Probed::good) &&
      std::ranges::all_of(slurm, [](const SlurmProbed& one) { return one.partitions.has_value(); });
  if (options.json) {
    print(fmt::format("{{\"version\":1,\"hosts\":[{}],\"ec2\":[{}],\"slurm\":[{}]}}\n",
                      hosts_json(all), list_json(ec2), list_json(slurm)));
    return good ? 0 : exit_code(ErrorKind::busy);
  }
  Table table({"cluster", "host", "free", "GPUs", "system", "held by"});
  for (const auto& [cluster, host, offer] : all) {
    if (!offer) {
      table.add({cluster, host, offer.error().message, "", "", ""});
      continue;
    }
    std::vector<std::string> holders;
    for (const auto& holder : offer->holders)
      if (!holder.waiting) holders.push_back(holder.label);
    table.add({cluster, host, amounts(offer->free.resources, offer->total.resources),
               join(offer->devices, ", "), offer->system, join(holders, ", ")});
  }
  for (const auto& one : ec2) print(to_text(one));
  for (const auto& one : slurm) print(to_text(one));
  if (!table.empty()) print(table.text());
  if (entries.empty()) print("no clusters; see berth cluster --help\n");
  return good ? 0 : exit_code(ErrorKind::busy);
}

Result<int> list_clusters(os::Env& env, const ClusterOptions& options) {
  BERTH_ASSIGN(const auto entries, entries_of(env, options));
  Table table({"cluster", "kind", "lease", "hosts"});
  std::string json;
  int code = 0;
  for (const auto& entry : entries) {
    const auto good = remote::check_cluster(env, entry);
    if (!good) code = exit_code(good.error().kind);
    const auto hosts = entry.body.find("hosts");
    const auto items = hosts ? hosts->items() : Result<std::vector<Field>>(std::vector<Field>{});
    const std::string count = items && hosts ? fmt::format("{}", items->size()) : "";
    table.add({entry.name, entry.kind, format_duration(entry.lease),
               good ? count : good.error().message});
    json += fmt::format(R"({}{{"name":{},"kind":{},"lease_ms":{}{}}})", json.empty() ? "" : ",",
                        json_quote(entry.name), json_quote(entry.kind), to_ms(entry.lease),
                        good ? "" : ",\"error\":" + json_quote(good.error().message));
  }
  BERTH_ASSIGN(const auto file, remote::clusters_file(env));
  if (options.json)
    print("{\"version\":1,\"clusters\":[" + json + "]}\n");
  else
    print(table.empty() ? fmt::format("no clusters in {}; see berth cluster --help\n", file)
                        : table.text());
  return code;
}

/// The file's text with the cluster that is to be added, which a run would take.
Result<std::string> added(os::Env& env, const std::string& text, const ClusterOptions& options) {
  const std::string& name = options.name;
  if (options.more.empty()) return fail(ErrorKind::usage, "wanted hosts; see --help");
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
  if (options.name.empty()) return fail(ErrorKind::usage, "wanted the cluster's name");
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
  std::string hosts, ended;
  for (const auto& [host, cleaned] : all.hosts) {
    hosts += fmt::format(R"({}{{"host":{},)", hosts.empty() ? "" : ",", json_quote(host));
    hosts += cleaned ? fmt::format(R"("leases":{},"objects":{},"bytes":{}}})", cleaned->leases,
                                   cleaned->objects, cleaned->lease_bytes + cleaned->object_bytes)
                     : fmt::format(R"("error":{}}})", json_quote(cleaned.error().message));
  }
  for (const auto& one : all.ended) ended += (ended.empty() ? "" : ",") + to_json(one);
  return fmt::format("{{\"version\":1,\"dry_run\":{},\"hosts\":[{}],\"ended\":[{}]}}\n", dry_run,
                     hosts, ended);
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

Result<std::vector<remote::HostCleaned>> clean_hosts(os::Env& env,
                                                     const remote::ClusterEntry& entry,
                                                     const agent::CleanOptions& what) {
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  BERTH_ASSIGN(const auto opened, remote::open_cluster(env, entry, agent));
  std::vector<remote::Door> doors;
  for (const auto* host : opened.hosts) doors.push_back(host->door());
  return remote::clean_hosts(env, doors, agent, what);
}

Result<int> clean_clusters(os::Env& env, const ClusterOptions& options) {
  if (options.name.empty()) return fail(ErrorKind::usage, "wanted the cluster's name");
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
    return fail(ErrorKind::usage, "--dry-run and --older-than are of clean");
  if (options.action != "add" && !options.key.empty())
    return fail(ErrorKind::usage, "--key is of add");
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
