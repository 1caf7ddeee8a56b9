#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "berth/base/ranges.h"
#include "berth/topology/notation.h"
#include "berth/topology/topology.h"

namespace berth::topology {
namespace {

using Rows = std::vector<std::vector<std::string>>;

struct Meaning {
  std::string_view code, meaning;
};
/// Of what stands in the matrix, nearest last.
constexpr Meaning kLegend[] = {
    {"X", "itself"},
    {"?", "not reported: treated as the worst"},
    {"SYS", "across NUMA nodes"},
    {"NODE", "across PCIe host bridges of one NUMA node"},
    {"PHB", "one PCIe host bridge"},
    {"PXB", "several PCIe switches"},
    {"PIX", "one PCIe switch"},
    {"BOARD", "the same board"},
    {"NV", "# NVLinks"},
    {"XGMI", "# XGMI links"},
};

Rows cells_of(const Topology& topology) {
  const std::size_t count = topology.devices.size();
  const auto groups = islands(topology);
  Rows rows(count + 1);
  rows[0].emplace_back();
  for (const Device& device : topology.devices)
    rows[0].push_back(fmt::format("GPU{}", device.index));
  for (std::size_t i = 0; i < topology.nics.size(); ++i) rows[0].push_back(fmt::format("NIC{}", i));
  rows[0].insert(rows[0].end(), {"CPU Affinity", "NUMA Affinity", "Island"});

  for (std::size_t a = 0; a < count; ++a) {
    const Device& device = topology.devices[a];
    auto& row = rows[a + 1];
    row.push_back(rows[0][a + 1]);
    for (std::size_t b = 0; b < count; ++b)
      row.push_back(a == b ? "X" : link_text(topology.link(a, b), false));
    for (const Nic& nic : topology.nics) row.emplace_back(name(nic.devices[a]));
    row.push_back(device.cores.empty() ? "N/A" : ranges_text(device.cores));
    row.push_back(device.numa < 0 ? "N/A" : fmt::format("{}", device.numa));
    const auto island = std::ranges::find_if(
        groups, [&](const auto& group) { return std::ranges::count(group, a) > 0; });
    row.push_back(island == groups.end() ? "-" : fmt::format("{}", island - groups.begin() + 1));
  }
  return rows;
}

std::string aligned(const Rows& rows) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      text += fmt::format("{:<{}}", row[i], widths[i] + 2);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

/// The codes that stand in the matrix, with the generation of their fabric where there is one.
std::map<std::string, int, std::less<>> codes_of(const Topology& topology) {
  std::map<std::string, int, std::less<>> codes{{"X", 0}};
  for (std::size_t a = 0; a < topology.devices.size(); ++a) {
    for (std::size_t b = 0; b < topology.devices.size(); ++b) {
      const Link& link = topology.link(a, b);
      if (a == b) continue;
      if (link.fabric == 0 || link.pcie != Pcie::none) codes[std::string(name(link.pcie))] = 0;
      if (link.fabric > 0) codes[link.kind == FabricKind::xgmi ? "XGMI" : "NV"] = link.generation;
    }
    for (const Nic& nic : topology.nics) codes[std::string(name(nic.devices[a]))] = 0;
  }
  return codes;
}

}  // namespace

std::string matrix_text(const Topology& topology) {
  std::string text = aligned(cells_of(topology)) + "\nLegend:\n";
  const auto codes = codes_of(topology);
  for (const auto& [code, meaning] : kLegend) {
    const auto found = codes.find(code);
    if (found == codes.end()) continue;
    const std::string sign = fmt::format("{}{}", code, meaning.starts_with('#') ? "#" : "");
    text += fmt::format("  {:<5} = {}", sign, meaning);
    if (found->second > 0) text += fmt::format(" of generation {}", found->second);
    text += '\n';
  }
  std::string nics;
  for (std::size_t i = 0; i < topology.nics.size(); ++i)
    if (const auto code = fmt::format("NIC{}", i); code != topology.nics[i].name)
      nics += fmt::format("  {}: {}\n", code, topology.nics[i].name);
  if (!nics.empty()) text += "\nNIC Legend:\n" + nics;
  return text;
}

}  // namespace berth::topology
