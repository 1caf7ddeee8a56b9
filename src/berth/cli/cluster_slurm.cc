#include "berth/cli/cluster_slurm.h"

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/cluster_ssh.h"
#include "berth/remote/slurm_commands.h"
#include "berth/remote/slurm_entry.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

std::string of(const remote::SlurmPartition& partition, Known known, std::string_view name) {
  const auto total = partition.total.get(known);
  return total == 0 ? ""
                    : fmt::format("{} of {}", format_amount(name, partition.free.get(known)),
                                  format_amount(name, total));
}

std::string limit(const remote::SlurmPartition& partition) {
  return partition.longest ? format_duration(*partition.longest) : "none";
}

}  // namespace

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

std::string to_text(const SlurmProbed& probed) {
  if (!probed.partitions)
    return fmt::format("{}: {}\n", probed.cluster, probed.partitions.error().message);
  const std::string error = probed.entry ? "" : probed.entry.error().message + "\n";
  if (probed.partitions->empty()) return error;
  render::Table table({"cluster", "partition", "nodes", "idle", "down", "cpu free", "mem free",
                       "GPUs free", "types", "time limit"});
  for (const auto& each : *probed.partitions) {
    std::vector<std::string> types;
    for (const auto& [type, count] : each.gpus) types.push_back(gpus_text(count, type));
    table.add(
        {probed.cluster, each.name + (each.standard ? "*" : "") + (each.open ? "" : " closed"),
         fmt::format("{}", each.nodes), fmt::format("{}", each.idle), fmt::format("{}", each.down),
         of(each, Known::cpu, "cpu"), of(each, Known::mem, "mem"), of(each, Known::gpu, "gpu"),
         join(types, ", "), limit(each)});
  }
  return render::to_text(table) + error;
}

std::string to_json(const SlurmProbed& probed) {
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

}  // namespace berth::cli
