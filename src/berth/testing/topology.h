// For tests and fuzzing: what must hold of whatever a reader gives.
#pragma once

#include <algorithm>
#include <set>
#include <string>

#include "berth/topology/topology.h"

namespace berth::topology {

inline bool joined(const Topology& topology, std::size_t a, std::size_t b) {
  return topology.link(a, b).fabric > 0;
}

/// What is wrong with the islands; empty: nothing.
inline std::string flaw_of_islands(const Topology& topology) {
  std::set<std::size_t> seen;
  for (const auto& island : islands(topology)) {
    if (island.size() < 2 || !std::ranges::is_sorted(island)) return "a malformed island";
    for (const std::size_t a : island) {
      if (!seen.insert(a).second) return "a device in two islands";
      for (const std::size_t b : island)
        if (a != b && !joined(topology, a, b)) return "an island that is not joined";
    }
  }
  for (std::size_t a = 0; a < topology.devices.size(); ++a)
    for (std::size_t b = 0; b < topology.devices.size(); ++b)
      if (a != b && !seen.contains(a) && !seen.contains(b) && joined(topology, a, b))
        return "a joined pair in no island";
  return {};
}

/// The links as a printed matrix can show them.
inline std::vector<Link> printable_links(const Topology& topology) {
  std::vector<Link> links = topology.links;
  for (Link& link : links) {
    link.generation = 0;
    if (link.fabric == 0) link.kind = FabricKind::nvlink;
  }
  for (std::size_t i = 0; i < topology.devices.size(); ++i)
    links[i * topology.devices.size() + i] = {};
  return links;
}

/// What is wrong with a topology that a reader gave; empty: nothing.
inline std::string flaw(const Topology& topology) {
  if (const auto checked = check(topology); !checked) return checked.error().message;
  if (const auto found = flaw_of_islands(topology); !found.empty()) return found;

  const auto again = read_json(write_json(topology), topology.name);
  if (!again) return "its JSON: " + again.error().message;
  if (*again != topology) return "its JSON is another topology: " + write_json(*again);
  if (topology.devices.empty()) return {};

  const auto matrix = read_nvidia_smi(matrix_text(topology), topology.name);
  if (!matrix) return "its matrix: " + matrix.error().message;
  if (matrix->links != printable_links(topology)) return "its matrix has other links";
  for (std::size_t i = 0; i < topology.nics.size(); ++i)
    if (matrix->nics.at(i).devices != topology.nics[i].devices) return "its matrix has other NICs";
  return {};
}

}  // namespace berth::topology
