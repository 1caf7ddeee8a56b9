// The notations within topology files: links and lists of cores.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/topology/topology.h"

namespace berth::topology {

/// The level of a word such as "SYS" or "PIX"; SOC (drivers of 2017) is SYS, PSB is BOARD, "N/A"
/// and "-" are unknown. nullopt: there is no such level.
std::optional<Pcie> pcie_of(std::string_view word);
constexpr std::string_view name(Pcie level) {
  return kPcieNames.name(level);
}

/// The link of an entry: "NV4", "PIX+NV2@2", "NODE", "XGMI" (one link), "?". An entry of the fabric
/// alone has Pcie::none.
std::optional<Link> link_of(std::string_view entry);
/// The text that link_of() reads back; it has the generation only if asked to.
std::string link_text(const Link& link, bool with_generation);

/// The cores of "0-31,64-95", ascending, each once and below 65536. "N/A" and "" have none.
std::optional<std::vector<int>> cores_of(std::string_view text);

/// The index in "GPU12"; at most four digits.
std::optional<int> gpu_index(std::string_view word);

}  // namespace berth::topology
