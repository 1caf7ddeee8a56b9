#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/topology/notation.h"
#include "berth/topology/reading.h"

namespace berth::topology {
namespace {

using Pair = std::pair<int, int>;  // by index, row first

struct Cell {
  std::string_view text;
  int line = 0;
};

/// What stands in the text.
struct RocmTables {
  std::set<int> indices;
  std::map<Pair, Cell> types, weights;
  std::map<int, int> numa;
};

bool is_gpu(std::string_view word) {
  return gpu_index(word).has_value();
}

/// A title within its signs of equality: "==== Link Type between two GPUs ====".
std::string_view title_of(std::string_view line) {
  const auto first = line.find_first_not_of('=');
  if (!line.starts_with("==") || first == std::string_view::npos) return {};
  return trim(line.substr(first, line.find_last_not_of('=') - first + 1));
}

/// "GPU[0]  : (Topology) Numa Node: 0", "GPU 0  : …". The affinity counts, the node where that is
/// not told.
void take_numa(std::string_view line, RocmTables& printed) {
  constexpr std::string_view kDigits = "0123456789";
  const auto first = line.find_first_of(kDigits);
  const auto colon = line.rfind(':');
  if (!line.starts_with("GPU") || first == std::string_view::npos || colon < first) return;
  const auto end = line.find_first_not_of(kDigits, first);
  const auto index = gpu_index("GPU" + std::string(line.substr(first, end - first)));
  const auto node =
      colon == std::string_view::npos ? std::nullopt : cores_of(trim(line.substr(colon + 1)));
  if (!index) return;
  printed.indices.insert(*index);
  if (!node || node->size() != 1) return;
  if (line.find("Numa Affinity") != std::string_view::npos)
    printed.numa.insert_or_assign(*index, node->front());
  else
    printed.numa.emplace(*index, node->front());
}

RocmTables rocm_tables_of(const Text& text) {
  RocmTables printed;
  std::string_view title;
  std::vector<int> columns;  // of the matrix under the title
  for (const Line& line : text.lines) {
    const auto content = trim(line.text);
    if (const auto found = title_of(content); !found.empty()) {
      title = found;
      columns.clear();
      continue;
    }
    if (content.find("(Topology)") != std::string_view::npos) take_numa(content, printed);
    const auto cells = words(content);
    const auto row = cells.empty() ? std::nullopt : gpu_index(cells[0]);
    if (!row) continue;
    if (columns.empty() && std::ranges::all_of(cells, is_gpu)) {
      for (const auto cell : cells) columns.push_back(*gpu_index(cell));
      printed.indices.insert(columns.begin(), columns.end());
      continue;
    }
    printed.indices.insert(*row);
    const bool types = title.starts_with("Link Type");
    if (!types && !title.starts_with("Weight")) continue;
    const std::size_t whole = cells.size() - (line.cut && cells.size() <= columns.size() ? 1 : 0);
    for (std::size_t i = 1; i < whole && i <= columns.size(); ++i)
      (types ? printed.types : printed.weights)
          .emplace(Pair{*row, columns[i - 1]}, Cell{cells[i], line.number});
  }
  return printed;
}

/// Through other GPUs, so not by a link of its own.
bool routed(const RocmTables& printed, const Pair& pair) {
  constexpr std::int64_t kOneHop = 15;
  const auto weight = printed.weights.find(pair);
  if (weight == printed.weights.end()) return false;
  const auto value = parse_integer(weight->second.text);
  return value && *value > kOneHop;
}

Pcie level_of(const RocmTables& printed, const Pair& pair) {
  const auto one = printed.numa.find(pair.first), other = printed.numa.find(pair.second);
  const bool known = one != printed.numa.end() && other != printed.numa.end();
  return known && one->second == other->second ? Pcie::node : Pcie::sys;
}

Result<Link> link_between(const RocmTables& printed, const Pair& pair, const std::string& name) {
  const auto found = printed.types.find(pair);
  if (found == printed.types.end()) return Link{};
  const Cell& cell = found->second;
  if (cell.text == "XGMI" && !routed(printed, pair))
    return Link{.pcie = Pcie::none, .fabric = 1, .kind = FabricKind::xgmi};
  if (cell.text == "XGMI" || cell.text == "PCIE") return Link{.pcie = level_of(printed, pair)};
  if (cell.text == "N/A" || cell.text == "XXXX") return Link{};
  return refuse(name, cell.line,
                fmt::format("GPU{} at GPU{}: expected XGMI or PCIE, got '{}'", pair.first,
                            pair.second, clip(cell.text)));
}

}  // namespace

Result<Topology> read_rocm_smi(std::string_view raw, const std::string& name) {
  BERTH_ASSIGN(const Text text, text_of(raw, name));
  const RocmTables printed = rocm_tables_of(text);
  const std::vector<int> indices(printed.indices.begin(), printed.indices.end());
  if (indices.empty()) return refuse(name, 1, "no row or column of a GPU");
  if (indices.size() > kMostDevices)
    return refuse(name, 1, fmt::format("{} GPUs, at most {}", indices.size(), kMostDevices));

  Topology topology = bare(name, text.source, indices);
  for (Device& device : topology.devices) device.vendor = Vendor::amd;
  for (std::size_t a = 0; a < indices.size(); ++a) {
    const auto numa = printed.numa.find(indices[a]);
    if (numa != printed.numa.end()) topology.devices[a].numa = numa->second;
    for (std::size_t b = 0; b < indices.size(); ++b) {
      if (a == b) continue;
      BERTH_ASSIGN(topology.link(a, b), link_between(printed, {indices[a], indices[b]}, name));
    }
  }
  if (printed.numa.size() < indices.size()) {
    topology.partial = true;
    topology.notes.push_back(
        fmt::format("{} GPUs: their NUMA nodes are not reported, so PCIe is treated as SYS",
                    indices.size() - printed.numa.size()));
  }
  return finished(std::move(topology));
}

}  // namespace berth::topology
