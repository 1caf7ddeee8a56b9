// berth cluster: the machines elsewhere that runs may go to.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/cluster_ec2.h"
#include "berth/cli/cluster_slurm.h"
#include "berth/cli/commands.h"
#include "berth/cli/table.h"
#include "berth/remote/cleaning.h"
#include "berth/remote/clusters.h"
#include "berth/remote/ssh.h"

namespace berth::cli {
namespace {

constexpr std::size_t kFileMost = 1 << 20;
constexpr Duration kProbesWithin = std::chrono::seconds(60);

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
    if (!open.empty()) BERTH_TRY(env.wait({}, env.now() + std::chrono::milliseconds(10)));
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

Result<int> probe_command(os::Env& env, const Arguments& arguments) {
  os::install_stop_signals();
  std::vector<remote::ClusterEntry> entries;
  if (arguments.target.empty()) {
    BERTH_ASSIGN(entries, remote::read_clusters(env));
  } else {
    BERTH_ASSIGN(auto entry, remote::find_cluster(env, arguments.target));
    entries.push_back(std::move(entry));
  }
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
  if (arguments.json) {
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

Result<int> list_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(const auto entries, remote::read_clusters(env));
  if (arguments.json) {
    std::string text;
    for (const auto& entry : entries)
      text += fmt::format(R"({}{{"name":{},"kind":{},"lease_ms":{}}})", text.empty() ? "" : ",",
                          json_quote(entry.name), json_quote(entry.kind), to_ms(entry.lease));
    print("{\"version\":1,\"clusters\":[" + text + "]}\n");
    return 0;
  }
  Table table({"cluster", "kind", "lease", "hosts"});
  for (const auto& entry : entries) {
    const auto hosts = entry.body.find("hosts");
    const auto items = hosts ? hosts->items() : Result<std::vector<Field>>(std::vector<Field>{});
    table.add({entry.name, entry.kind, format_duration(entry.lease),
               items ? fmt::format("{}", items->size()) : ""});
  }
  BERTH_ASSIGN(const auto file, remote::clusters_file(env));
  print(table.empty() ? fmt::format("no clusters in {}; see berth cluster --help\n", file)
                      : table.text());
  return 0;
}

Status change(os::Env& env, const Arguments& arguments) {
  if (arguments.target.empty()) return fail(ErrorKind::usage, "wanted the cluster's name");
  BERTH_ASSIGN(auto file, remote::clusters_file(env));
  if (const auto real = env.real_path(file)) file = *real;  // of a link, what it leads to
  const auto present = env.read_file(file, kFileMost);
  if (!present && present.error().kind != ErrorKind::not_found)
    return std::unexpected(present.error());
  const std::string text = present.value_or("");
  if (arguments.action == "remove") {
    BERTH_ASSIGN(const auto now, remote::without_cluster(text, arguments.target));
    return env.replace_file(file, now, 0600);
  }
  if (arguments.targets.empty()) return fail(ErrorKind::usage, "wanted hosts; see --help");
  std::string entry = fmt::format("{}:\n  kind: ssh\n  hosts:\n", arguments.target);
  for (const auto& host : arguments.targets) {
    const std::string line = arguments.name.empty() ? host : host + " " + arguments.name;
    const auto parsed = remote::parse_ssh_host(line);
    if (!parsed) return fail(ErrorKind::usage, "{}", parsed.error().message);
    entry += fmt::format("    - {}\n", json_quote(line));
  }
  BERTH_ASSIGN(const auto now, remote::with_cluster(text, arguments.target, entry));
  if (const auto slash = file.rfind('/'); slash != std::string::npos && slash > 0)
    BERTH_TRY(env.make_directory(file.substr(0, slash), 0700));
  return env.replace_file(file, now, 0600);
}

std::string cleaned_json(const std::vector<remote::HostCleaned>& hosts, bool dry_run) {
  std::string text;
  for (const auto& [host, cleaned] : hosts) {
    text += fmt::format(R"({}{{"host":{},)", text.empty() ? "" : ",", json_quote(host));
    text += cleaned ? fmt::format(R"("leases":{},"objects":{},"bytes":{}}})", cleaned->leases,
                                  cleaned->objects, cleaned->lease_bytes + cleaned->object_bytes)
                    : fmt::format(R"("error":{}}})", json_quote(cleaned.error().message));
  }
  return fmt::format("{{\"version\":1,\"dry_run\":{},\"hosts\":[{}]}}\n", dry_run, text);
}

std::string cleaned_text(const std::vector<remote::HostCleaned>& hosts, bool dry_run) {
  Table table({"host", "leases", "objects", dry_run ? "would free" : "freed"});
  for (const auto& [host, cleaned] : hosts) {
    if (cleaned)
      table.add({host, fmt::format("{}", cleaned->leases), fmt::format("{}", cleaned->objects),
                 format_bytes(cleaned->lease_bytes + cleaned->object_bytes)});
    else
      table.add({host, "", "", cleaned.error().message});
  }
  return table.text();
}

Result<int> clean_hosts(os::Env& env, const remote::ClusterEntry& entry,
                        const Arguments& arguments) {
  const auto age = parse_duration(arguments.older_than.empty() ? "30d" : arguments.older_than);
  if (!age) return std::unexpected(within("--older-than", age.error()));
  BERTH_ASSIGN(const auto agent, remote::agent_file(env));
  BERTH_ASSIGN(const auto opened, remote::open_cluster(env, entry, agent));
  std::vector<remote::Door> doors;
  for (const auto* host : opened.hosts) doors.push_back(host->door());
  os::install_stop_signals();
  BERTH_ASSIGN(const auto hosts, remote::clean_hosts(env, doors, agent, {*age, arguments.dry_run}));
  print(arguments.json ? cleaned_json(hosts, arguments.dry_run)
                       : cleaned_text(hosts, arguments.dry_run));
  const bool good = std::ranges::all_of(hosts, [](const auto& one) { return bool(one.cleaned); });
  return good ? 0 : exit_code(ErrorKind::io);
}

Result<int> clean_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(const auto entry, remote::find_cluster(env, arguments.target));
  if (entry.kind == "ssh") return clean_hosts(env, entry, arguments);
  if (entry.kind != "ec2")
    return fail(ErrorKind::usage, "{} is of kind {}: clean is for ssh and ec2", entry.name,
                entry.kind);
  if (arguments.dry_run || !arguments.older_than.empty())
    return fail(ErrorKind::usage, "--dry-run and --older-than are for hosts, and {} is of kind {}",
                entry.name, entry.kind);
  BERTH_ASSIGN(const auto ended, clean_ec2(env, entry));
  std::string text;
  for (const auto& one : ended) text += (text.empty() ? "" : ",") + to_json(one);
  if (arguments.json) print("{\"version\":1,\"ended\":[" + text + "]}\n");
  if (arguments.json) return 0;
  for (const auto& one : ended) print(fmt::format("ended {} of {}\n", one.id, one.run));
  if (ended.empty()) print("nothing was left\n");
  return 0;
}

}  // namespace

Result<int> cluster_command(os::Env& env, const Arguments& arguments) {
  if (arguments.action == "clean") return clean_command(env, arguments);
  if (arguments.action == "list") return list_command(env, arguments);
  if (arguments.action == "probe") return probe_command(env, arguments);
  BERTH_TRY(change(env, arguments));
  return 0;
}

}  // namespace berth::cli
