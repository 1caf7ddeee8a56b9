#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "berth/base/text.h"
#include "berth/topology/notation.h"
#include "berth/topology/nvidia_cells.h"
#include "berth/topology/reading.h"

namespace berth::topology {
namespace {

struct Row {
  const Line* line = nullptr;
  std::string_view name;
  std::vector<std::string_view> cells;  // behind the name
};

/// What stands in the text, before it is known what it means.
struct NvidiaMatrix {
  std::vector<std::string> columns;  // GPUs and NICs
  std::size_t affinities = 0;        // columns behind those
  std::vector<Row> rows;
  std::map<std::string, std::string, std::less<>> nic_names;  // "NIC0" -> "mlx5_0"
};

bool is_header(const std::vector<std::string_view>& cells) {
  return gpu_index(cells[0]) && (cells.size() == 1 || !is_link_cell(cells[1]));
}

void take_header(const std::vector<std::string_view>& cells, NvidiaMatrix& printed) {
  constexpr std::string_view kBehind[] = {"CPU", "NUMA", "GPU", "Island"};
  constexpr std::string_view kLastWords[] = {"Affinity", "ID", "Island"};
  bool behind = false;
  for (const auto cell : cells) {
    behind = behind || std::ranges::find(kBehind, cell) != std::end(kBehind);
    if (behind)
      printed.affinities += std::ranges::count(kLastWords, cell) > 0 ? 1 : 0;
    else if (!cell.empty())
      printed.columns.emplace_back(cell);
  }
}

/// The first cells of the rows.
std::vector<std::string_view> row_names(std::span<const Line> lines) {
  std::vector<std::string_view> names;
  for (const Line& line : lines) {
    const auto cells = split_links(nvidia_cells(line.text));
    if (cells.size() > 1 && is_link_cell(cells[1])) names.push_back(cells[0]);
  }
  return names;
}

/// `lines` have to outlive the matrix.
NvidiaMatrix nvidia_matrix_of(std::span<const Line> lines) {
  NvidiaMatrix printed;
  const auto names = row_names(lines);
  bool legend = false;
  for (const Line& line : lines) {
    auto cells = nvidia_cells(line.text);
    if (cells.empty()) continue;
    const auto first = cells[0];
    legend = legend || first == "Legend:";
    const bool row =
        gpu_index(first) || std::ranges::find(printed.columns, first) != printed.columns.end();
    if (cells.size() == 2 && first.ends_with(':'))
      printed.nic_names.emplace(first.substr(0, first.size() - 1), cells[1]);
    else if (!legend && printed.columns.empty() && printed.rows.empty() && is_header(cells))
      take_header(split_heads(cells, names), printed);
    else if (!legend && row)
      printed.rows.push_back({&line, first, split_links(std::span(cells).subspan(1))});
  }
  return printed;
}

/// Without a header a column is known by who has his X there, and an NVLink is never a NIC's.
void guess_columns(NvidiaMatrix& printed) {
  std::size_t gpus = 0, all = 0;
  for (const Row& row : printed.rows) {
    gpus = std::max(gpus, static_cast<std::size_t>(*gpu_index(row.name)) + 1);
    for (std::size_t i = 0; i < row.cells.size() && is_link_cell(row.cells[i]); ++i) {
      all = std::max(all, i + 1);
      const auto link = link_of(row.cells[i]);
      if (link && link->fabric > 0) gpus = std::max(gpus, i + 1);
    }
  }
  for (std::size_t i = 0; i < gpus; ++i) printed.columns.push_back(fmt::format("GPU{}", i));
  for (std::size_t i = gpus; i < all; ++i)
    printed.columns.push_back(fmt::format("NIC{}", i - gpus));
}

/// All cells of the matrix, row-major by column.
using Cells = std::vector<Link>;

Result<Cells> links_of(const NvidiaMatrix& printed, const std::string& name) {
  const std::size_t count = printed.columns.size();
  Cells links(count * count);
  std::vector<bool> seen(count);
  for (const Row& row : printed.rows) {
    const int line = row.line->number;
    const auto at = static_cast<std::size_t>(std::ranges::find(printed.columns, row.name) -
                                             printed.columns.begin());
    if (at == count) return refuse(name, line, fmt::format("{} has no column", clip(row.name)));
    if (seen[at]) return refuse(name, line, fmt::format("a second row of {}", clip(row.name)));
    seen[at] = true;
    for (std::size_t i = 0; i < std::min(count, row.cells.size()); ++i) {
      if ((row.cells[i] == "X") != (i == at))
        return refuse(
            name, line,
            fmt::format("{} at {}: expected {}, got '{}'", clip(row.name), clip(printed.columns[i]),
                        i == at ? "X" : "a link", clip(row.cells[i])));
      if (i == at) continue;
      const auto link = row.cells[i].empty() ? Link{} : link_of(row.cells[i]);
      if (!link)
        return refuse(name, line,
                      fmt::format("{} at {}: expected NV#, PIX, PXB, PHB, NODE or SYS, got '{}'",
                                  clip(row.name), clip(printed.columns[i]), clip(row.cells[i])));
      links[at * count + i] = *link;
    }
  }
  return links;
}

/// "3", "0,5-11" (a GH200: its CPU's node, then those of its own memory) -> the first; a range such
/// as "0-1" of a virtual machine names no node.
int numa_of(std::string_view cell) {
  const auto node = cores_of(cell.substr(0, cell.find(',')));
  return node && node->size() == 1 ? node->front() : -1;
}

Status take_affinity(const NvidiaMatrix& printed, const std::string& name, Topology& topology) {
  for (const Row& row : printed.rows) {
    const auto index = gpu_index(row.name);
    const auto device = std::ranges::find(topology.devices, index.value_or(-1), &Device::index);
    const std::size_t behind = printed.columns.size();
    if (device == topology.devices.end() || row.cells.size() <= behind) continue;
    auto cores = cores_of(row.cells[behind]);
    if (!cores)
      return refuse(name, row.line->number,
                    fmt::format("{}: expected near cores such as 0-31,64-95, got '{}'",
                                clip(row.name), clip(row.cells[behind])));
    device->cores = *std::move(cores);
    if (row.cells.size() > behind + 1) device->numa = numa_of(row.cells[behind + 1]);
  }
  return {};
}

/// Each link and distance to its place. A NIC stands in its column and its row: where they do not
/// tell the same, the farther.
void place(const NvidiaMatrix& printed, const Cells& links, const std::vector<std::size_t>& gpus,
           Topology& topology) {
  const std::size_t count = printed.columns.size();
  for (std::size_t a = 0; a < gpus.size(); ++a)
    for (std::size_t b = 0; b < gpus.size(); ++b)
      topology.link(a, b) = links[gpus[a] * count + gpus[b]];
  for (std::size_t i = 0; i < count; ++i) {
    if (gpu_index(printed.columns[i])) continue;
    const auto named = printed.nic_names.find(printed.columns[i]);
    Nic nic{clip(named == printed.nic_names.end() ? printed.columns[i] : named->second), {}};
    for (const std::size_t gpu : gpus) {
      const auto [low, high] =
          std::minmax(links[gpu * count + i].pcie, links[i * count + gpu].pcie);
      nic.devices.push_back(low == Pcie::unknown ? high : low);
    }
    topology.nics.push_back(std::move(nic));
  }
}

void note_missing_rows(const NvidiaMatrix& printed, Topology& topology) {
  std::vector<std::string> missing;
  for (const auto& column : printed.columns)
    if (gpu_index(column) &&
        std::ranges::find(printed.rows, column, &Row::name) == printed.rows.end())
      missing.push_back(column);
  if (missing.empty()) return;
  topology.partial = true;
  topology.notes.push_back(fmt::format("no row of {}", join(missing, ", ")));
}

}  // namespace

Result<Topology> read_nvidia_smi(std::string_view raw, const std::string& name) {
  BERTH_ASSIGN(const Text text, text_of(raw, name));
  const std::vector<Line> lines = unwrapped(text.lines);
  NvidiaMatrix printed = nvidia_matrix_of(lines);
  const bool header = !printed.columns.empty();
  if (!header) guess_columns(printed);

  std::vector<int> indices;
  std::vector<std::size_t> gpus;  // their columns
  for (std::size_t i = 0; i < printed.columns.size(); ++i)
    if (const auto index = gpu_index(printed.columns[i])) {
      indices.push_back(*index);
      gpus.push_back(i);
    }
  const std::size_t nics = printed.columns.size() - gpus.size();
  if (gpus.empty()) return refuse(name, 1, "no row or column of a GPU");
  if (gpus.size() > kMostDevices || nics > kMostNics)
    return refuse(name, 1,
                  fmt::format("{} GPUs and {} NICs, at most {} and {}", gpus.size(), nics,
                              kMostDevices, kMostNics));
  for (Row& row : printed.rows) {
    const bool short_of = row.cells.size() < printed.columns.size() + printed.affinities;
    if (row.line->cut && short_of && !row.cells.empty()) row.cells.pop_back();  // may be cut itself
  }

  Topology topology = bare(name, text.source, indices);
  if (!header) {
    topology.partial = true;
    topology.notes.push_back(
        fmt::format("no header: taken for {} GPUs and {} NICs", gpus.size(), nics));
  }
  note_missing_rows(printed, topology);
  BERTH_ASSIGN(const Cells links, links_of(printed, name));
  place(printed, links, gpus, topology);
  BERTH_TRY(take_affinity(printed, name, topology));
  return finished(std::move(topology));
}

}  // namespace berth::topology
