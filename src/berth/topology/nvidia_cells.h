// The cells of what `nvidia-smi topo -m` prints, put together again where a terminal or an editor
// changed the blanks between them. Pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "berth/topology/reading.h"

namespace berth::topology {

/// The cells of a line. Between tabs a cell may be empty; between blanks it cannot.
std::vector<std::string_view> nvidia_cells(std::string_view line);

/// Whether a cell is a link, or the X of the device itself.
bool is_link_cell(std::string_view cell);

/// Splits heads that have no blank between them ("NIC11NIC12", "NIC12CPU"). `names` are the first
/// cells of the rows.
std::vector<std::string_view> split_heads(std::span<const std::string_view> cells,
                                          std::span<const std::string_view> names);

/// Splits links that have no blank between them ("SYSSYS", "NV18X", "SYS0-27").
std::vector<std::string_view> split_links(std::span<const std::string_view> cells);

/// Joins the parts of lines that a terminal or `fold` has wrapped.
std::vector<Line> unwrapped(std::span<const Line> lines);

}  // namespace berth::topology
