#include "berth/render/machines/clusters.h"

#include <algorithm>

#include "berth/base/record_json.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::render {
namespace {

std::int64_t lease_ms(const engine::ListedCluster& cluster) {
  return to_ms(cluster.lease);
}

std::optional<std::int64_t> time_limit_s(const remote::SlurmPartition& partition) {
  return partition.longest ? std::optional(to_ms(*partition.longest) / 1000) : std::nullopt;
}

std::optional<std::vector<remote::SlurmPartition>> partitions(const engine::SlurmProbed& probed) {
  return probed.partitions ? std::optional(*probed.partitions) : std::nullopt;
}

bool is_allowed(const remote::Ec2Permission& permission) {
  return permission.allowed.has_value();
}

std::string why_denied(const remote::Ec2Permission& permission) {
  return permission.allowed ? "" : permission.allowed.error().message;
}

std::int64_t removed_bytes(const agent::Cleaned& cleaned) {
  return cleaned.lease_bytes + cleaned.object_bytes;
}

}  // namespace
}  // namespace berth::render

namespace berth {

template <>
inline constexpr std::string_view kSchemaNameOf<Resources> = "Amounts";

template <>
inline constexpr auto kRecordOf<engine::ListedCluster> =
    Record{"Cluster",
           "A configured cluster.",
           key("name", &engine::ListedCluster::name),
           key("kind", &engine::ListedCluster::kind),
           key("lease_ms", render::lease_ms),
           optional_key("error", error_of<&engine::ListedCluster::checked>)};
template <>
inline constexpr auto kRecordOf<engine::ListedClusters> =
    Record{"Clusters", "The configured clusters.", version_key(),
           key("clusters", &engine::ListedClusters::clusters)};
template <>
inline constexpr auto kRecordOf<engine::RemovedClusters> = Record{
    "RemovedClusters", "The removed clusters.", version_key(),
    key("removed", &engine::RemovedClusters::names), key("file", &engine::RemovedClusters::file)};

template <>
inline constexpr auto kRecordOf<agent::Holder> =
    Record{"HostHolder", "Who uses a part of a host, or waits for one.",
           key("what", &agent::Holder::label), key("resources", &agent::Holder::resources),
           key("waits", &agent::Holder::waiting)};
template <auto kMember>
inline constexpr auto offered = if_present<&engine::HostProbed::offer, kMember>;
template <>
inline constexpr auto kRecordOf<engine::HostProbed> = Record{
    "ProbedHost",
    "A host with its free resources, or the error.",
    key("cluster", &engine::HostProbed::cluster),
    key("host", &engine::HostProbed::host),
    optional_key("error", error_of<&engine::HostProbed::offer>),
    optional_key("name", offered<&agent::MachineOffer::host>),
    optional_key("system", offered<&agent::MachineOffer::system>),
    optional_key("free", offered<inner<&agent::MachineOffer::free, &machine::Block::resources>>),
    optional_key("total", offered<inner<&agent::MachineOffer::total, &machine::Block::resources>>),
    optional_key("devices", offered<&agent::MachineOffer::devices>),
    optional_key("holders", offered<&agent::MachineOffer::holders>)};

template <>
inline constexpr auto kRecordOf<remote::SlurmGpus> =
    Record{"SlurmGpus", "The GPUs of a partition, by type.", key("type", &remote::SlurmGpus::type),
           key("count", &remote::SlurmGpus::count)};
template <>
inline constexpr auto kRecordOf<remote::SlurmPartition> =
    Record{"SlurmPartition",
           "A partition of a Slurm cluster.",
           key("name", &remote::SlurmPartition::name),
           key("standard", &remote::SlurmPartition::standard),
           key("open", &remote::SlurmPartition::open),
           key("time_limit_s", render::time_limit_s),
           key("nodes", &remote::SlurmPartition::nodes),
           key("idle", &remote::SlurmPartition::idle),
           key("down", &remote::SlurmPartition::down),
           key("free", &remote::SlurmPartition::free),
           key("total", &remote::SlurmPartition::total),
           key("gpus", &remote::SlurmPartition::gpus)};
template <>
inline constexpr auto kRecordOf<engine::SlurmProbed> =
    Record{"ProbedSlurm", "The partitions of a Slurm cluster, or the error.",
           key("cluster", &engine::SlurmProbed::cluster),
           optional_key("error", error_of<&engine::SlurmProbed::status>),
           optional_key("partitions", render::partitions)};

template <>
inline constexpr auto kRecordOf<remote::Ec2Found> =
    Record{"Ec2Instance",
           "An instance of a run.",
           key("id", &remote::Ec2Found::id),
           key("run", &remote::Ec2Found::run),
           key("type", &remote::Ec2Found::type),
           key("state", &remote::Ec2Found::state),
           key("address", &remote::Ec2Found::address)};
template <>
inline constexpr auto kRecordOf<remote::Ec2Permission> =
    Record{"Ec2Permission", "Whether the credentials allow an action, or why not.",
           key("action", &remote::Ec2Permission::action), key("allowed", render::is_allowed),
           key("why", render::why_denied)};
template <>
inline constexpr auto kRecordOf<engine::Ec2Probed> =
    Record{"ProbedEc2", "The permissions and the instances on EC2.",
           key("cluster", &engine::Ec2Probed::cluster),
           key("permissions", &engine::Ec2Probed::permissions),
           key("instances", &engine::Ec2Probed::instances)};

using ClusterError = std::pair<std::string, Error>;
template <>
inline constexpr auto kRecordOf<ClusterError> = Record{
    "ClusterError", "Why a cluster could not be asked.", key("cluster", &ClusterError::first),
    key("error", inner<&ClusterError::second, &Error::message>)};
template <>
inline constexpr auto kRecordOf<engine::ProbedClusters> =
    Record{"ProbedClusters",
           "The answers of clusters, and the errors of those that could not be asked.",
           version_key(),
           key("hosts", &engine::ProbedClusters::hosts),
           key("ec2", &engine::ProbedClusters::ec2),
           key("slurm", &engine::ProbedClusters::slurm),
           key("errors", &engine::ProbedClusters::errors)};

template <auto kMember>
inline constexpr auto cleaned = if_present<&remote::HostCleaned::cleaned, kMember>;
template <>
inline constexpr auto kRecordOf<remote::HostCleaned> =
    Record{"CleanedHost",
           "The files removed from a host, or the error.",
           key("host", &remote::HostCleaned::host),
           optional_key("error", error_of<&remote::HostCleaned::cleaned>),
           optional_key("leases", cleaned<&agent::Cleaned::leases>),
           optional_key("objects", cleaned<&agent::Cleaned::objects>),
           optional_key("bytes", cleaned<render::removed_bytes>)};
template <>
inline constexpr auto kRecordOf<engine::CleanedClusters> =
    Record{"CleanedClusters",
           "The files removed from hosts, and the instances ended on EC2.",
           version_key(),
           key("dry_run", &engine::CleanedClusters::dry_run),
           key("hosts", &engine::CleanedClusters::hosts),
           key("ended", &engine::CleanedClusters::ended)};

}  // namespace berth

namespace berth::render {

void add_cluster_schemas(JsonWriter& json) {
  add_schemas<engine::ListedCluster, engine::ListedClusters, engine::RemovedClusters, agent::Holder,
              engine::HostProbed, remote::SlurmGpus, remote::SlurmPartition, engine::SlurmProbed,
              remote::Ec2Found, remote::Ec2Permission, engine::Ec2Probed, ClusterError,
              engine::ProbedClusters, remote::HostCleaned, engine::CleanedClusters>(json);
}

std::string to_json(const engine::ListedClusters& all) {
  return json_line(all);
}

std::string to_json(const engine::RemovedClusters& removed) {
  return json_line(removed);
}

std::string to_json(const engine::ProbedClusters& all) {
  return json_line(all);
}

std::string to_json(const engine::CleanedClusters& all) {
  return json_line(all);
}

namespace {

std::string amounts_text(const Resources& free, const Resources& total) {
  std::vector<std::string> parts;
  total.each([&](std::string_view name, std::int64_t amount) {
    if (name == "disk") return;
    parts.push_back(fmt::format("{} {} of {}", name, format_amount(name, free.get(name)),
                                format_amount(name, amount)));
  });
  return join(parts, ", ");
}

std::string gpus_text(std::int64_t count, std::string_view model) {
  if (model.empty()) return fmt::format("{} {}", count, count == 1 ? "GPU" : "GPUs");
  return fmt::format("{} {}", count, clip(model));
}

/// The GPUs of a host, of which `models` has one entry each: "2 NVIDIA H100, 1 GPU".
std::string gpus_text(const std::vector<std::string>& models) {
  std::vector<std::string> parts, counted;
  for (const auto& model : models) {
    if (std::ranges::find(counted, model) != counted.end()) continue;
    counted.push_back(model);
    parts.push_back(gpus_text(std::ranges::count(models, model), model));
  }
  return join(parts, ", ");
}

std::string part_text(const remote::SlurmPartition& partition, Known known, std::string_view name) {
  const auto total = partition.total.get(known);
  return total == 0 ? ""
                    : fmt::format("{} of {}", format_amount(name, partition.free.get(known)),
                                  format_amount(name, total));
}

std::string limit(const remote::SlurmPartition& partition) {
  return partition.longest ? format_duration(*partition.longest) : "none";
}

std::string no_clusters(const std::string& file) {
  return fmt::format("no clusters in {}; see berth cluster --help\n", file);
}

}  // namespace

std::string to_text(const std::vector<engine::HostProbed>& probed, const View& view) {
  Table table(
      {"cluster", "host", {"free", Column::kCut}, {"GPUs", 1}, {"system", 3}, {"used by", 2}});
  std::string errors;  // not in the table: a long one would move all other columns
  for (const auto& [cluster, host, offer] : probed) {
    if (!offer) {
      errors += fmt::format("{}/{}: {}\n", cluster, host, offer.error().message);
      continue;
    }
    std::vector<std::string> holders;
    for (const auto& holder : offer->holders)
      if (!holder.waiting) holders.push_back(holder.label);
    table.add({cluster, host, amounts_text(offer->free.resources, offer->total.resources),
               gpus_text(offer->devices), offer->system, join(holders, ", ")});
  }
  return (table.empty() ? "" : to_text(table, view)) + errors;
}

std::string to_text(const engine::SlurmProbed& probed, const View& view) {
  if (!probed.partitions)
    return fmt::format("{}: {}\n", probed.cluster, probed.partitions.error().message);
  const std::string error = probed.entry ? "" : probed.entry.error().message + "\n";
  if (probed.partitions->empty()) return error;
  Table table({"cluster",
               "partition",
               {"nodes", 4},
               "idle",
               {"down", 5},
               "cpu free",
               {"mem free", 1},
               "GPUs free",
               {"types", 3},
               {"time limit", 2}});
  for (const auto& each : *probed.partitions) {
    std::vector<std::string> types;
    for (const auto& [type, count] : each.gpus) types.push_back(gpus_text(count, type));
    table.add(
        {probed.cluster, each.name + (each.standard ? "*" : "") + (each.open ? "" : " closed"),
         fmt::format("{}", each.nodes), fmt::format("{}", each.idle), fmt::format("{}", each.down),
         part_text(each, Known::cpu, "cpu"), part_text(each, Known::mem, "mem"),
         part_text(each, Known::gpu, "gpu"), join(types, ", "), limit(each)});
  }
  return to_text(table, view) + error;
}

std::string to_text(const engine::Ec2Probed& probed, const View& view) {
  Table may({"cluster", "EC2 action", {"allowed", Column::kCut}});
  for (const auto& one : probed.permissions)
    may.add({probed.cluster, one.action, one.allowed ? "yes" : one.allowed.error().message});
  Table runs({"instance", "run", {"type", 2}, "state", {"address", 1}});
  for (const auto& one : probed.instances)
    runs.add({one.id, one.run, one.type, one.state, one.address});
  return to_text(may, view) + (runs.empty() ? "" : to_text(runs, view));
}

std::string to_text(const engine::ProbedClusters& all, const View& view) {
  if (all.is_empty) return no_clusters(all.file);
  std::string text;
  for (const auto& one : all.ec2) text += to_text(one, view);
  for (const auto& one : all.slurm) text += to_text(one, view);
  text += to_text(all.hosts, view);
  for (const auto& [cluster, error] : all.errors)
    text += fmt::format("{}: {}\n", cluster, error.message);
  return text;
}

std::string to_text(const engine::CleanedClusters& all, const View& view) {
  Table table({"host", "leases", "objects", all.dry_run ? "would free" : "freed"});
  std::string errors;
  for (const auto& [host, cleaned] : all.hosts) {
    if (cleaned)
      table.add({host, fmt::format("{}", cleaned->leases), fmt::format("{}", cleaned->objects),
                 format_bytes(cleaned->lease_bytes + cleaned->object_bytes)});
    else
      errors += fmt::format("{}: {}\n", host, cleaned.error().message);
  }
  std::string text = (table.empty() ? "" : to_text(table, view)) + errors;
  for (const auto& one : all.ended) text += fmt::format("ended {} of {}\n", one.id, one.run);
  return text.empty() ? "nothing was left\n" : text;
}

std::string to_text(const engine::ListedClusters& all, const View& view) {
  Table table({"cluster", "kind", {"lease", 1}, {"hosts", Column::kCut}});
  for (const auto& [name, kind, lease, hosts, checked] : all.clusters) {
    const std::string count = hosts ? fmt::format("{}", *hosts) : "";
    table.add({name, kind, format_duration(lease), checked ? count : checked.error().message});
  }
  return table.empty() ? no_clusters(all.file) : to_text(table, view);
}

std::string to_json(const engine::AddedCluster& added) {
  JsonWriter json;
  json.object().add("version", 1).add("name", added.name).add("kind", "ssh");
  return json.key("hosts").list(added.hosts).add("file", added.file).end().take() + "\n";
}

std::string to_text(const engine::AddedCluster& added, const View&) {
  const std::size_t count = added.hosts.size();
  return fmt::format("added cluster '{0}' ({1} host{2}) to {3}; test it: berth cluster probe {0}\n",
                     added.name, count, count == 1 ? "" : "s", added.file);
}

std::string to_text(const engine::RemovedClusters& removed, const View&) {
  return fmt::format("removed from {}: {}\n", removed.file, join(removed.names, ", "));
}

}  // namespace berth::render
