#include "berth/render/machines/clusters.h"

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::render {
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

template <typename Each>
void add_list(JsonWriter& json, std::string_view name, const std::vector<Each>& all) {
  json.key(name).array();
  for (const auto& one : all) json.raw(to_json(one));
  json.end();
}

std::string no_clusters(const std::string& file) {
  return fmt::format("no clusters in {}; see berth cluster --help\n", file);
}

}  // namespace

std::string to_json(const remote::Ec2Found& one) {
  return JsonWriter()
      .object()
      .add("id", one.id)
      .add("run", one.run)
      .add("type", one.type)
      .add("state", one.state)
      .add("address", one.address)
      .end()
      .take();
}

std::string to_json(const remote::HostCleaned& of) {
  JsonWriter json;
  json.object().add("host", of.host);
  if (!of.cleaned) return json.add("error", of.cleaned.error().message).end().take();
  return json.add("leases", of.cleaned->leases)
      .add("objects", of.cleaned->objects)
      .add("bytes", of.cleaned->lease_bytes + of.cleaned->object_bytes)
      .end()
      .take();
}

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

std::string to_json(const engine::HostProbed& probed) {
  const auto& offer = probed.offer;
  JsonWriter json;
  json.object().add("cluster", probed.cluster).add("host", probed.host);
  if (!offer) return json.add("error", offer.error().message).end().take();
  json.add("name", offer->host).add("system", offer->system);
  json.key("free").raw(to_json(offer->free.resources));
  json.key("total").raw(to_json(offer->total.resources));
  json.key("devices").list(offer->devices).key("holders").array();
  for (const auto& holder : offer->holders)
    json.object()
        .add("what", holder.label)
        .key("resources")
        .raw(to_json(holder.resources))
        .add("waits", holder.waiting)
        .end();
  return json.end().end().take();
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

std::string to_json(const engine::SlurmProbed& probed) {
  JsonWriter json;
  json.object().add("cluster", probed.cluster);
  if (const Status status = probed.status(); !status) json.add("error", status.error().message);
  if (!probed.partitions) return json.end().take();
  json.key("partitions").array();
  for (const auto& each : *probed.partitions) {
    json.object().add("name", each.name).add("standard", each.standard).add("open", each.open);
    json.key("time_limit_s");
    each.longest ? json.value(to_ms(*each.longest) / 1000) : json.raw("null");
    json.add("nodes", each.nodes).add("idle", each.idle).add("down", each.down);
    json.key("free").raw(to_json(each.free)).key("total").raw(to_json(each.total));
    json.key("gpus").array();
    for (const auto& [type, count] : each.gpus)
      json.object().add("type", type).add("count", count).end();
    json.end().end();
  }
  return json.end().end().take();
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

std::string to_json(const engine::Ec2Probed& probed) {
  JsonWriter json;
  json.object().add("cluster", probed.cluster).key("permissions").array();
  for (const auto& one : probed.permissions)
    json.object()
        .add("action", one.action)
        .add("allowed", one.allowed.has_value())
        .add("why", one.allowed ? "" : one.allowed.error().message)
        .end();
  json.end().key("instances").array();
  for (const auto& one : probed.instances) json.raw(to_json(one));
  return json.end().end().take();
}

std::string to_json(const engine::ProbedClusters& all) {
  JsonWriter json;
  json.object().add("version", 1);
  add_list(json, "hosts", all.hosts);
  add_list(json, "ec2", all.ec2);
  add_list(json, "slurm", all.slurm);
  json.key("errors").array();
  for (const auto& [cluster, error] : all.errors)
    json.object().add("cluster", cluster).add("error", error.message).end();
  return json.end().end().take() + "\n";
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

std::string to_json(const engine::CleanedClusters& all) {
  JsonWriter json;
  json.object().add("version", 1).add("dry_run", all.dry_run);
  add_list(json, "hosts", all.hosts);
  add_list(json, "ended", all.ended);
  return json.end().take() + "\n";
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

std::string to_json(const engine::ListedClusters& all) {
  JsonWriter json;
  json.object().add("version", 1).key("clusters").array();
  for (const auto& entry : all.clusters) {
    json.object().add("name", entry.name).add("kind", entry.kind);
    json.add("lease_ms", to_ms(entry.lease));
    if (!entry.checked) json.add("error", entry.checked.error().message);
    json.end();
  }
  return json.end().end().take() + "\n";
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

std::string to_json(const engine::RemovedClusters& removed) {
  JsonWriter json;
  json.object().add("version", 1).key("removed").list(removed.names).add("file", removed.file);
  return json.end().take() + "\n";
}

std::string to_text(const engine::RemovedClusters& removed, const View&) {
  return fmt::format("removed from {}: {}\n", removed.file, join(removed.names, ", "));
}

}  // namespace berth::render
