#include "berth/topology/nvidia_cells.h"

#include <algorithm>
#include <array>
#include <string>

#include "berth/base/text.h"
#include "berth/topology/notation.h"

namespace berth::topology {
namespace {

constexpr std::string_view kDecimalDigits = "0123456789";
constexpr std::array<std::string_view, 6> kTailWords{"CPU",      "NUMA", "GPU",
                                                     "Affinity", "ID",   "Island"};
constexpr std::array<std::string_view, 10> kLinkWords{"SYS", "NODE", "PHB",   "PXB", "PIX",
                                                      "SOC", "PSB",  "BOARD", "N/A", "X"};

/// The length of "GPU12", "NIC3" or "NV18" at the front of a text: the word and one digit or more.
std::size_t numbered(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) return 0;
  const auto end = std::min(text.find_first_not_of(kDecimalDigits, word.size()), text.size());
  return end > word.size() ? end : 0;
}

std::size_t longest_prefix(std::string_view text, std::span<const std::string_view> words) {
  std::size_t longest = 0;
  for (const auto word : words)
    if (text.starts_with(word)) longest = std::max(longest, word.size());
  return longest;
}

/// The parts of a cell, each of the length that `length_of` finds at its front; the whole cell if
/// they do not make it up.
template <class Length>
std::vector<std::string_view> parts_of(std::string_view cell, const Length& length_of) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = cell; !rest.empty();) {
    const std::size_t length = length_of(rest, parts.size());
    if (length == 0) return {cell};
    parts.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return parts;
}

/// `heads`: those of the matrix, as far as they are known.
bool begins_row(std::span<const std::string_view> cells, std::span<const std::string> heads) {
  const bool named = gpu_index(cells[0]) || std::ranges::find(heads, cells[0]) != heads.end();
  if (!named || cells.size() < 2) return false;
  const auto second = split_links(cells)[1];
  return second == "X" || link_of(second).has_value();
}

/// The number of cells in a whole row, its name included; 0: the header is not whole itself.
std::size_t row_cells(std::string_view header) {
  const auto cells = split_heads(nvidia_cells(header), {});
  const auto affinities = std::ranges::count(cells, "Affinity") + std::ranges::count(cells, "ID");
  const auto behind = std::ranges::find_first_of(cells, std::array<std::string_view, 1>{"CPU"});
  const auto empty = std::count(cells.begin(), behind, std::string_view());
  if (affinities == 0) return 0;
  return 1 + static_cast<std::size_t>(behind - cells.begin() - empty + affinities);
}

}  // namespace

std::vector<std::string_view> nvidia_cells(std::string_view line) {
  if (!line.contains('\t')) return words(line);
  std::vector<std::string_view> cells;
  for (const auto cell : split(line, '\t')) {
    const auto found = words(cell);
    if (!found.empty())
      cells.insert(cells.end(), found.begin(), found.end());
    else if (!cells.empty())
      cells.emplace_back();
  }
  return cells;
}

bool is_link_cell(std::string_view cell) {
  const auto link = link_of(cell);
  return cell == "X" || (link && *link != Link{});
}

std::vector<std::string_view> split_heads(std::span<const std::string_view> cells,
                                          std::span<const std::string_view> names) {
  std::vector<std::string_view> heads;
  for (const auto cell : cells) {
    const auto parts = parts_of(cell, [&](std::string_view rest, std::size_t) {
      return std::max({longest_prefix(rest, names), longest_prefix(rest, kTailWords),
                       numbered(rest, "GPU"), numbered(rest, "NIC")});
    });
    heads.insert(heads.end(), parts.begin(), parts.end());
    if (cell.empty()) heads.emplace_back();
  }
  return heads;
}

std::vector<std::string_view> split_links(std::span<const std::string_view> cells) {
  std::vector<std::string_view> links;
  for (const auto cell : cells) {
    if (cell.empty() || link_of(cell)) {
      links.push_back(cell);
      continue;
    }
    const auto parts = parts_of(cell, [&](std::string_view rest, std::size_t before) {
      const std::size_t link = std::max(longest_prefix(rest, kLinkWords), numbered(rest, "NV"));
      return link == 0 && before > 0 && cores_of(rest) ? rest.size() : link;
    });
    links.insert(links.end(), parts.begin(), parts.end());
  }
  return links;
}

std::vector<Line> unwrapped(std::span<const Line> lines) {
  constexpr std::size_t kMostParts = 64, kMostLine = 8192;  // bytes; they bound the work
  std::size_t parts = 0;
  std::vector<Line> joined;
  bool in_header = false, legend = false;
  std::size_t whole = 0;  // cells of a row, as the header has them
  std::vector<std::string> heads;
  bool open = false;  // the last line may go on in the next one
  for (const Line& line : lines) {
    const auto cells = nvidia_cells(line.text);
    if (cells.empty() || legend) {
      open = false;
      joined.push_back(line);
      continue;
    }
    legend = cells[0] == "Legend:";
    const bool row = begins_row(cells, heads);
    const bool header = !row && whole == 0 && !in_header && gpu_index(cells[0]);
    open = open && ++parts < kMostParts && joined.back().text.size() < kMostLine;
    if (open && !row && !legend) {
      joined.back().text += line.text;
      joined.back().cut = line.cut;
    } else {
      in_header = header;
      parts = 0;
      joined.push_back(line);
    }
    const std::string& text = joined.back().text;
    if (in_header) {
      whole = row_cells(text);
      heads.clear();
      for (const auto head : split_heads(nvidia_cells(text), {})) heads.emplace_back(head);
    }
    // A header is whole with its affinities, a row with as many cells as these need.
    const bool of_row = !in_header && whole > 0 && gpu_index(nvidia_cells(text)[0]);
    const auto count = split_links(nvidia_cells(text)).size();
    open = in_header ? !text.contains("NUMA") && !row : of_row && count < whole;
    if (row) in_header = false;
  }
  return joined;
}

}  // namespace berth::topology
