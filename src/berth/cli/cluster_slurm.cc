// berth cluster, of Slurm: the partitions, and what of them is free.
#include "berth/cli/cluster_slurm.h"

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/table.h"
#include "berth/remote/slurm_commands.h"
#include "berth/remote/slurm_entry.h"

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
  return SlurmProbed{entry.name, remote::slurm_partitions(env, options)};
}

std::string to_text(const SlurmProbed& probed) {
  if (!probed.partitions)
    return fmt::format("{}: {}\n", probed.cluster, probed.partitions.error().message);
  Table table({"cluster", "partition", "nodes", "idle", "down", "cpu free", "mem free", "GPUs free",
               "types", "time limit"});
  for (const auto& each : *probed.partitions) {
    std::vector<std::string> types;
    for (const auto& [type, count] : each.gpus)
      if (!type.empty()) types.push_back(fmt::format("{} {}", count, clip(type)));
    table.add(
        {probed.cluster, each.name + (each.standard ? "*" : "") + (each.open ? "" : " closed"),
         fmt::format("{}", each.nodes), fmt::format("{}", each.idle), fmt::format("{}", each.down),
         of(each, Known::cpu, "cpu"), of(each, Known::mem, "mem"), of(each, Known::gpu, "gpu"),
         join(types, ", "), limit(each)});
  }
  return table.text();
}

std::string to_json(const SlurmProbed& probed) {
  if (!probed.partitions)
    return fmt::format(R"({{"cluster":{},"error":{}}})", json_quote(probed.cluster),
                       json_quote(probed.partitions.error().message));
  std::string partitions;
  for (const auto& each : *probed.partitions) {
    std::string gpus;
    for (const auto& [type, count] : each.gpus)
      gpus += fmt::format(R"({}{{"type":{},"count":{}}})", gpus.empty() ? "" : ",",
                          json_quote(type), count);
    partitions += fmt::format(
        R"({}{{"name":{},"standard":{},"open":{},"time_limit_s":{},"nodes":{},"idle":{},"down":{},"free":{},"total":{},"gpus":[{}]}})",
        partitions.empty() ? "" : ",", json_quote(each.name), each.standard, each.open,
        each.longest ? fmt::format("{}", to_ms(*each.longest) / 1000) : "null", each.nodes,
        each.idle, each.down, to_json(each.free), to_json(each.total), gpus);
  }
  return fmt::format(R"({{"cluster":{},"partitions":[{}]}})", json_quote(probed.cluster),
                     partitions);
}

}  // namespace berth::cli
