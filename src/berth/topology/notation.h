// The small notations within topology files: links, lists of cores.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/topology/topology.h"

namespace berth::topology {

/// "SYS", "PIX" …; SOC (drivers of 2017) is SYS, PSB is BOARD, "N/A" and "-" are unknown. nullopt:
/// no such word.
std::optional<Pcie> pcie_of(std::string_view word);
constexpr std::string_view name(Pcie level) {
  return kPcieNames.name(level);
}

/// "NV4", "PIX+NV2@2", "NODE", "XGMI" (one link), "?"; an entry of the fabric alone has Pcie::none.
std::optional<Link> link_of(std::string_view entry);
/// What link_of() reads back, but for the generation unless it is asked for.
std::string link_text(const Link& link, bool with_generation);

/// "0-31,64-95" in any order -> ascending, each once; below 65536. "N/A" and "" are none of them.
std::optional<std::vector<int>> cores_of(std::string_view text);
std::string cores_text(std::span<const int> cores);

/// "GPU12" -> 12; at most four digits.
std::optional<int> gpu_index(std::string_view word);

}  // namespace berth::topology
