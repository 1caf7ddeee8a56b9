// `amd-smi topology`, as text and with --json. The text has a table for each fact, whose rows and
// columns are PCI addresses; JSON has a list of GPUs with a list of links each, before ROCm 6.2
// with a map for each fact. Facts: ROCm's changelog of amd-smi.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "berth/base/json_place.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/topology/reading.h"

namespace berth::topology {
namespace {

constexpr std::string_view kLinkType = "LINK TYPE TABLE", kWeight = "WEIGHT TABLE",
                           kHops = "HOPS TABLE";

struct AmdPair {
  std::string type;
  std::optional<std::int64_t> weight, hops;
  int line = 1;
};

/// GPUs in the order of their indices, and what is printed of each pair, row first.
struct AmdPrintout {
  std::vector<std::string> addresses;
  std::map<std::pair<std::size_t, std::size_t>, AmdPair> pairs;

  /// The index of an address, which is added if it is new.
  std::size_t index_of(std::string_view address) {
    const auto found = std::ranges::find(addresses, address);
    if (found == addresses.end()) addresses.emplace_back(address);
    return static_cast<std::size_t>(std::ranges::find(addresses, address) - addresses.begin());
  }
};

/// "0000:0d:00.0"
bool is_address(std::string_view word) {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF:.";
  return word.size() >= 12 && word.contains(':') && word.contains('.') &&
         word.find_first_not_of(kDigits) == std::string_view::npos;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  const auto value = parse_integer(text);
  return value && *value >= 0 ? std::optional(*value) : std::nullopt;
}

AmdPrintout tables_of(const Text& text) {
  AmdPrintout printed;
  std::string title;
  std::vector<std::size_t> columns;
  for (const Line& line : text.lines) {
    const auto content = trim(line.text);
    if (content.ends_with("TABLE:")) {
      title = content.substr(0, content.size() - 1);
      columns.clear();
      continue;
    }
    const auto cells = words(content);
    if (cells.empty() || !is_address(cells[0])) continue;
    if (columns.empty() && std::ranges::all_of(cells, is_address)) {
      for (const auto cell : cells) columns.push_back(printed.index_of(cell));
      continue;
    }
    const std::size_t row = printed.index_of(cells[0]);
    const std::size_t whole = cells.size() - (line.cut && cells.size() <= columns.size() ? 1 : 0);
    for (std::size_t i = 1; i < whole && i <= columns.size(); ++i) {
      AmdPair& pair = printed.pairs[{row, columns[i - 1]}];
      if (title == kLinkType) pair.type = cells[i], pair.line = line.number;
      if (title == kWeight) pair.weight = whole_number(cells[i]);
      if (title == kHops) pair.hops = whole_number(cells[i]);
    }
  }
  return printed;
}

std::optional<std::int64_t> number_at(const JsonPlace& at, std::string_view path) {
  const auto value = at.find(path);
  if (!value || !value->is_number()) return std::nullopt;
  const auto number = value->number();
  return number ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
}

std::string text_at(const JsonPlace& at, std::string_view path) {
  const auto value = at.find(path);
  if (!value || !value->is_text()) return {};
  auto text = value->text();
  return text ? *std::move(text) : std::string();
}

/// The pairs of a GPU, from a list of links or from a map for each fact.
Status take_links(const JsonPlace& gpu, std::size_t row, std::size_t count, AmdPrintout& printed) {
  if (const auto links = gpu.find("links")) {
    BERTH_ASSIGN(const auto items, links->items(kMostDevices));
    for (const auto& link : items) {
      const std::size_t other = printed.index_of(text_at(link, "bdf"));
      if (other >= count) return link.error("there is no GPU with this 'bdf'");
      printed.pairs[{row, other}] = {text_at(link, "link_type"), number_at(link, "weight"),
                                     number_at(link, "num_hops")};
    }
    return {};
  }
  for (std::size_t other = 0; other < count; ++other) {
    const auto path = [&](std::string_view fact) { return fmt::format("{}.gpu_{}", fact, other); };
    printed.pairs[{row, other}] = {text_at(gpu, path("link_type")), number_at(gpu, path("weight")),
                                   number_at(gpu, path("hops"))};
  }
  return {};
}

Result<AmdPrintout> json_of(std::string_view raw) {
  BERTH_ASSIGN(const JsonPlace document, JsonPlace::parse(raw));
  BERTH_ASSIGN(const auto gpus, document.items(kMostDevices));
  AmdPrintout printed;
  for (const auto& gpu : gpus) {
    BERTH_ASSIGN(const JsonPlace at, gpu.get("bdf"));
    BERTH_ASSIGN(const std::string address, at.text());
    if (std::ranges::find(printed.addresses, address) != printed.addresses.end())
      return at.error(fmt::format("a second GPU at {}", clip(address)));
    printed.addresses.push_back(address);
  }
  const std::size_t count = printed.addresses.size();
  for (std::size_t row = 0; row < count; ++row)
    BERTH_TRY(take_links(gpus[row], row, count, printed));
  return printed;
}

/// XGMI of a weight above one hop's passes through other GPUs. PCIE joins two GPUs of one NUMA node
/// by two hops (to the CPU and back), and those of two nodes by more.
Result<Link> link_of_pair(const AmdPair& pair, const std::string& name, std::string_view words) {
  constexpr std::int64_t kOneHop = 15, kThroughOneCpu = 2;
  const bool near = pair.hops && *pair.hops <= kThroughOneCpu;
  if (pair.type == "XGMI" && pair.weight.value_or(0) <= kOneHop)
    return Link{.pcie = Pcie::none, .fabric = 1, .kind = FabricKind::xgmi};
  if (pair.type == "XGMI") return Link{.pcie = Pcie::sys};
  if (pair.type == "PCIE") return Link{.pcie = near ? Pcie::node : Pcie::sys};
  if (pair.type.empty() || pair.type == "N/A" || pair.type == "UNKNOWN") return Link{};
  return refuse(name, pair.line,
                fmt::format("{}: expected XGMI or PCIE, got '{}'", words, clip(pair.type)));
}

}  // namespace

Result<Topology> read_amd_smi(std::string_view raw, const std::string& name) {
  BERTH_ASSIGN(const Text text, text_of(raw, name));
  const bool json = trim(raw).starts_with('[');
  auto made = json ? json_of(raw) : Result<AmdPrintout>(tables_of(text));
  if (!made) return std::unexpected(within(clip(name), std::move(made).error()));
  const std::size_t count = made->addresses.size();
  if (count == 0) return refuse(name, 1, "no row or column of a GPU");
  if (count > kMostDevices)
    return refuse(name, 1, fmt::format("{} GPUs, at most {}", count, kMostDevices));

  std::vector<int> indices;
  for (std::size_t i = 0; i < count; ++i) indices.push_back(static_cast<int>(i));
  Topology topology = bare(name, text.source, indices);
  bool guessed = false;  // a PCIe level without its hops
  for (std::size_t a = 0; a < count; ++a) {
    topology.devices[a].vendor = Vendor::amd;
    topology.devices[a].pci = made->addresses[a];
    for (std::size_t b = 0; b < count; ++b) {
      if (a == b) continue;
      const AmdPair& pair = made->pairs[{a, b}];
      BERTH_ASSIGN(topology.link(a, b),
                   link_of_pair(pair, name, fmt::format("GPU{} at GPU{}", a, b)));
      guessed |= pair.type == "PCIE" && !pair.hops;
    }
  }
  if (guessed) {
    topology.partial = true;
    topology.notes.emplace_back("hops are not reported, so PCIe is treated as SYS");
  }
  return finished(std::move(topology));
}

}  // namespace berth::topology
