#include "berth/topology/notation.h"

#include <fmt/core.h>

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::topology {
namespace {

struct Synonym {
  std::string_view word;
  Pcie level;
};
constexpr Synonym kSynonyms[] = {
    {"SOC", Pcie::sys}, {"PSB", Pcie::board}, {"N/A", Pcie::unknown}, {"-", Pcie::unknown}};

constexpr std::int64_t kMostCore = 65535;

/// A natural number of plain digits, at most `most`.
std::optional<int> natural(std::string_view text, std::int64_t most) {
  constexpr std::size_t kMostDigits = 9;
  const bool digits = text.find_first_not_of("0123456789") == std::string_view::npos;
  if (text.empty() || text.size() > kMostDigits || !digits) return std::nullopt;
  const auto value = parse_integer(text);
  return value && *value <= most ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

/// "NV4", "XGMI2@4", "XGMI"; a bare "NV" is no count.
std::optional<Link> fabric_of(std::string_view part) {
  Link link{.pcie = Pcie::none};
  const bool xgmi = part.starts_with(kFabricNames.name(FabricKind::xgmi));
  link.kind = xgmi ? FabricKind::xgmi : FabricKind::nvlink;
  const std::string_view prefix = kFabricNames.name(link.kind);
  if (!part.starts_with(prefix)) return std::nullopt;
  const auto numbers = split(part.substr(prefix.size()), '@');
  if (numbers.size() > 2) return std::nullopt;
  const auto count = xgmi && numbers[0].empty() ? 1 : natural(numbers[0], kMostFabric);
  const auto generation = numbers.size() == 2 ? natural(numbers[1], kMostFabric) : 0;
  if (!count || *count == 0 || !generation) return std::nullopt;
  link.fabric = *count;
  link.generation = *generation;
  return link;
}

}  // namespace

std::optional<Pcie> pcie_of(std::string_view word) {
  if (const auto level = kPcieNames.value(word)) return level;
  const auto synonym = std::ranges::find(kSynonyms, word, &Synonym::word);
  return synonym == std::end(kSynonyms) ? std::nullopt : std::optional(synonym->level);
}

std::optional<Link> link_of(std::string_view entry) {
  const auto plus = entry.find('+');
  const auto level = pcie_of(entry.substr(0, plus));
  if (plus == std::string_view::npos) return level ? Link{.pcie = *level} : fabric_of(entry);
  auto link = fabric_of(entry.substr(plus + 1));
  if (!level || !link) return std::nullopt;
  link->pcie = *level;
  return link;
}

std::string link_text(const Link& link, bool with_generation) {
  if (link.fabric == 0) return std::string(name(link.pcie));
  std::string text = link.pcie == Pcie::none ? "" : fmt::format("{}+", name(link.pcie));
  text += fmt::format("{}{}", kFabricNames.name(link.kind), link.fabric);
  if (with_generation && link.generation > 0) text += fmt::format("@{}", link.generation);
  return text;
}

std::optional<std::vector<int>> cores_of(std::string_view text) {
  std::vector<int> cores;
  if (text.empty() || text == "N/A") return cores;
  for (const auto range : split(text, ',')) {
    const auto dash = range.find('-');
    const auto first = natural(range.substr(0, dash), kMostCore);
    const auto last =
        dash == std::string_view::npos ? first : natural(range.substr(dash + 1), kMostCore);
    if (!first || !last || *last < *first || cores.size() > kMostCore) return std::nullopt;
    for (int core = *first; core <= *last; ++core) cores.push_back(core);
  }
  std::ranges::sort(cores);
  cores.erase(std::ranges::unique(cores).begin(), cores.end());
  return cores;
}

std::optional<int> gpu_index(std::string_view word) {
  constexpr int kMostIndex = 9999;
  return word.starts_with("GPU") ? natural(word.substr(3), kMostIndex) : std::nullopt;
}

}  // namespace berth::topology
