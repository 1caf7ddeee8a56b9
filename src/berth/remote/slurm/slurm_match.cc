#include "berth/remote/slurm/slurm_match.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/topology/topology.h"

namespace berth::remote {
namespace {

constexpr std::int64_t kCore = 1000;
const SlurmGpus kNoGpus{};

/// Whole cores, whole GPUs: of `times` the least, what a job can be asked for.
machine::Block block_to_ask(const cluster::Wish& wish, std::int64_t times,
                            const machine::Block& node) {
  machine::Block block;
  block.resources = *wish.requirements.min.times(times);
  const std::int64_t cpu = block.resources.get(Known::cpu);
  block.resources.set(Known::cpu, std::max<std::int64_t>((cpu + kCore - 1) / kCore, 1) * kCore);
  const auto need = machine::device_need(wish.requirements.min);
  const std::int64_t gpus = need.count * (need.shared() ? 1 : times);
  std::int64_t memory = 0, slots = 0;
  for (const auto& device : node.devices) {
    if (static_cast<std::int64_t>(block.devices.size()) == gpus) break;
    block.devices.push_back(device);
    memory += device.memory;
    slots += device.slots;
  }
  block.resources.set(Known::gpu, static_cast<std::int64_t>(block.devices.size()));
  block.resources.set(Known::gpu_mem, memory);
  block.resources.set(Known::gpu_slots, slots);
  return block;
}

bool among(std::span<const std::string> names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

struct Candidate {
  SlurmAsk ask;
  bool works = false;
};

/// Nodes of one kind and a wish: nullopt where it does not fit, and then `why` tells it.
std::optional<Candidate> fit(const cluster::Wish& wish, const SlurmNodes& nodes,
                             const SlurmGpuTypes& types, std::string& why) {
  std::vector<const SlurmGpus*> kinds;
  for (const auto& gpus : nodes.gpus) kinds.push_back(&gpus);
  if (kinds.empty()) kinds.push_back(&kNoGpus);
  for (const SlurmGpus* gpus : kinds) {
    const machine::Block node = block_of(nodes, gpus, types);
    const std::vector<cluster::Offer> offers{{.machine = "a node", .free = node, .total = node}};
    const auto choice = cluster::closest(offers, wish);
    if (!choice) {
      if (why.empty()) why = choice.error().message;
      continue;
    }
    const Resources& min = wish.requirements.min;
    const bool shared = machine::device_need(min).shared();
    const std::int64_t width =
        shared ? 1 : std::max<std::int64_t>(node.resources.fits(min, wish.requirements.width), 1);
    return Candidate{{.partition = nodes.partition,
                      .block = block_to_ask(wish, width, node),
                      .gpu_type = min.get(Known::gpu) > 0 || shared ? gpus->type : "",
                      .width = width},
                     works(nodes)};
  }
  return std::nullopt;
}

/// The nodes of a partition that work and hold most of the wish; nullopt: none, and `why`.
std::optional<Candidate> best_of(const std::string& partition, const cluster::Wish& wish,
                                 std::span<const SlurmNodes> nodes,
                                 std::optional<Duration> time_limit, const SlurmGpuTypes& types,
                                 std::string& why) {
  std::optional<Candidate> best;
  for (const auto& each : nodes) {
    if (each.partition != partition) continue;
    if (time_limit && each.longest && *time_limit > *each.longest) {
      why = fmt::format("requested a time limit of {}, it allows {}", format_duration(*time_limit),
                        format_duration(*each.longest));
      continue;
    }
    std::string misfit;
    auto candidate = fit(wish, each, types, misfit);
    if (!candidate)
      why = misfit;
    else if (!best || std::pair(candidate->works, candidate->ask.width) >
                          std::pair(best->works, best->ask.width))
      best = std::move(candidate);
  }
  return best;
}

}  // namespace

machine::Block block_of(const SlurmNodes& nodes, const SlurmGpus* gpus,
                        const SlurmGpuTypes& types) {
  machine::Block block;
  block.resources.set(Known::cpu, std::min<std::int64_t>(nodes.cpus, 1 << 20) * kCore);
  block.resources.set(Known::mem, nodes.mem);
  block.resources.set(Known::disk, nodes.disk);
  if (gpus == nullptr || gpus->count == 0) return block;
  const auto known = types.find(gpus->type);
  const std::int64_t memory = known == types.end() ? 0 : known->second.memory;
  const int told = known == types.end() ? 0 : known->second.slots;
  const int slots = told > 0 ? told : topology::slots_of(gpus->type);
  const int count = static_cast<int>(std::min<std::int64_t>(gpus->count, 64));
  for (int i = 0; i < count; ++i)
    block.devices.push_back({.uuid = "",
                             .index = i,
                             .node = -1,
                             .memory = memory,
                             .slots = slots,
                             .size = slots,
                             .whole = true});
  block.resources.set(Known::gpu, count);
  block.resources.set(Known::gpu_mem, std::min(memory, std::int64_t{1} << 50) * count);
  block.resources.set(Known::gpu_slots, static_cast<std::int64_t>(slots) * count);
  return block;
}

Result<SlurmAsk> match(const cluster::Wish& wish, std::span<const SlurmNodes> nodes,
                       std::span<const std::string> partitions, std::optional<Duration> time_limit,
                       const SlurmGpuTypes& types, const PausedPartitions& paused) {
  std::vector<std::string> existing;
  for (const auto& each : nodes)
    if (!among(existing, each.partition)) existing.push_back(each.partition);
  std::vector<std::string> order(partitions.begin(), partitions.end());
  if (order.empty())
    for (const auto& each : nodes)
      if (each.standard && !among(order, each.partition)) order.push_back(each.partition);
  if (order.empty()) return fail(ErrorKind::impossible, "{}", no_default_partition(existing));
  std::vector<std::string> impossible, busy, reasons;
  for (const auto& partition : order) {
    if (!among(existing, partition)) continue;  // missing_partitions() names it
    std::string why;
    const auto best = best_of(partition, wish, nodes, time_limit, types, why);
    const auto pause = paused.find(partition);
    const std::string where = "partition " + clip(partition) + ": ";
    if (!best)
      impossible.push_back(where + why);
    else if (!best->works)
      busy.push_back(where + "every node that is large enough is down or drained");
    else if (pause != paused.end())
      reasons.push_back(where + pause->second);
    else
      return best->ask;
  }
  const ErrorKind kind = !busy.empty()      ? ErrorKind::busy
                         : !reasons.empty() ? ErrorKind::io
                                            : ErrorKind::impossible;
  if (kind == ErrorKind::busy) reasons.insert(reasons.begin(), busy.begin(), busy.end());
  if (kind == ErrorKind::impossible) {
    reasons = std::move(impossible);
    if (auto missing = missing_partitions(order, existing); !missing.empty())
      reasons.push_back(std::move(missing));
  }
  return fail(kind, "{}", join(reasons, "; "));
}

}  // namespace berth::remote
