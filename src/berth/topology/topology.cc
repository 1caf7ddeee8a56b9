#include "berth/topology/topology.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "berth/base/text.h"
#include "berth/topology/notation.h"
#include "berth/topology/reading.h"

namespace berth::topology {
namespace {

constexpr std::array kPcieScores{0, 0, 10, 20, 30, 40, 50, 60};  // in the order of Pcie
constexpr int kFabricScore = 100;

Status check_sizes(const Topology& topology) {
  const std::size_t count = topology.devices.size();
  if (count > kMostDevices)
    return fail(ErrorKind::invalid, "{} devices, at most {}", count, kMostDevices);
  if (topology.nics.size() > kMostNics)
    return fail(ErrorKind::invalid, "{} NICs, at most {}", topology.nics.size(), kMostNics);
  if (topology.links.size() != count * count)
    return fail(ErrorKind::invalid, "{} links of {} devices, expected {}", topology.links.size(),
                count, count * count);
  for (const Nic& nic : topology.nics)
    if (nic.devices.size() != count)
      return fail(ErrorKind::invalid, "NIC {}: distances to {} of {} devices", clip(nic.name),
                  nic.devices.size(), count);
  return {};
}

Status check_devices(const Topology& topology) {
  std::unordered_set<int> indices;
  std::unordered_set<std::string_view> uuids;
  for (const Device& device : topology.devices) {
    if (device.index < 0)
      return fail(ErrorKind::invalid, "GPU{}: no index is below 0", device.index);
    if (!indices.insert(device.index).second)
      return fail(ErrorKind::invalid, "GPU{} is given twice", device.index);
    if (!uuids.insert(device.uuid).second)
      return fail(ErrorKind::invalid, "GPU{}: its UUID {} is another's too", device.index,
                  clip(device.uuid));
  }
  return {};
}

Status check_pair(const Topology& topology, std::size_t a, std::size_t b) {
  const Link& one = topology.link(a, b);
  const Link& other = topology.link(b, a);
  const std::string pair =
      fmt::format("GPU{}-GPU{}", topology.devices[a].index, topology.devices[b].index);
  if (one.fabric < 0 || one.fabric > kMostFabric || one.generation < 0)
    return fail(ErrorKind::invalid, "{}: {} links of generation {}, expected 0 to {}", pair,
                one.fabric, one.generation, kMostFabric);
  if (one != other)
    return fail(ErrorKind::invalid, "{}: {} from one side, {} from the other", pair,
                link_text(one, true), link_text(other, true));
  return {};
}

/// Free devices that the fabric joins to all of `group`; of these the one with the most links into
/// it, then the first. devices.size() where there is none.
std::size_t nearest_to(const Topology& topology, const std::vector<std::size_t>& group,
                       const std::vector<bool>& taken) {
  std::size_t best = topology.devices.size();
  int most = 0;
  for (std::size_t device = 0; device < topology.devices.size(); ++device) {
    const auto links_to = [&](std::size_t member) { return topology.link(member, device).fabric; };
    if (taken[device] || std::ranges::any_of(group, [&](auto m) { return links_to(m) == 0; }))
      continue;
    int links = 0;
    for (const std::size_t member : group) links += links_to(member);
    if (links > most) {
      most = links;
      best = device;
    }
  }
  return best;
}

}  // namespace

int score(const Link& link) {
  return kPcieScores[static_cast<std::size_t>(link.pcie)] + kFabricScore * link.fabric;
}

Status check(const Topology& topology) {
  BERTH_TRY(check_sizes(topology));
  BERTH_TRY(check_devices(topology));
  for (std::size_t a = 0; a < topology.devices.size(); ++a)
    for (std::size_t b = a + 1; b < topology.devices.size(); ++b)
      BERTH_TRY(check_pair(topology, a, b));
  return {};
}

Result<Topology> read(std::string_view text, const std::string& name) {
  const bool rocm = text.find("between two GPUs") != std::string_view::npos ||
                    text.find("(Topology)") != std::string_view::npos;
  const bool amd = text.find("LINK TYPE TABLE:") != std::string_view::npos;
  BERTH_ASSIGN(const Text plain, text_of(text, name));
  for (const Line& line : plain.lines) {
    const auto first = words(line.text);
    if (first.empty()) continue;
    if (first[0].starts_with('{')) return read_json(text, name);
    if (first[0].starts_with('[') || amd) return read_amd_smi(text, name);
    if (rocm) return read_rocm_smi(text, name);
    if (gpu_index(first[0])) return read_nvidia_smi(text, name);
  }
  return refuse(
      name, 1,
      "no topology: expected what `nvidia-smi topo -m`, `rocm-smi --showtopo` or `amd-smi "
      "topology` prints, or Berth's JSON");
}

std::vector<std::vector<std::size_t>> islands(const Topology& topology) {
  const std::size_t count = topology.devices.size();
  std::vector<std::vector<std::size_t>> result;
  std::vector<bool> taken(count);
  for (std::size_t first = 0; first < count; ++first) {
    if (taken[first]) continue;
    std::vector<std::size_t> group;
    for (std::size_t next = first; next < count; next = nearest_to(topology, group, taken)) {
      group.push_back(next);
      taken[next] = true;
    }
    std::ranges::sort(group);
    if (group.size() > 1) result.push_back(std::move(group));
  }
  return result;
}

}  // namespace berth::topology
