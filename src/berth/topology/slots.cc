// How fast cards are, as their makers' data sheets say: TFLOP/s of dense (not sparse) FP16 or BF16
// matrix arithmetic that accumulates in FP32, of the fastest form factor under the name. NVIDIA's
// sheets give the sparse figure since Ampere; here it is halved. A card without matrix units counts
// its FP16 rate, or FP32 where that is greater. MI250 and MI250X are
// two devices (GCDs): half.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "berth/base/text.h"
#include "berth/topology/topology.h"

namespace berth::topology {
namespace {

struct Rating {
  std::string_view name;  // lower case, whole words of the model; the longest that is found counts
  double tflops;
};
constexpr Rating kRatings[] = {
    // NVIDIA data centre
    {"b300", 2250},
    {"gb300", 2500},
    {"b200", 2250},
    {"gb200", 2500},
    {"b100", 1750},
    {"h200", 989},
    {"h200 nvl", 835},
    {"gh200", 989},
    {"h100", 989},
    {"h100 pcie", 756},
    {"h100 nvl", 835},
    {"h800", 989},
    {"h800 pcie", 756},
    {"a100", 312},
    {"a800", 312},
    {"a30", 165},
    {"a40", 150},
    {"a10", 125},
    {"a10g", 70},
    {"a16", 18},
    {"a2", 18},
    {"l40s", 362},
    {"l40", 181},
    {"l4", 121},
    {"v100", 125},
    {"v100-pcie", 112},
    {"v100s", 130},
    {"t4", 65},
    {"t4g", 65},
    {"p100", 21},
    {"p100-pcie", 19},
    {"p40", 12},
    {"p4", 5.5},
    {"m60", 4.8},
    {"m40", 7},
    {"k80", 4.4},
    // NVIDIA workstation
    {"rtx pro 6000", 500},
    {"rtx 6000 ada", 364},
    {"rtx 5880 ada", 277},
    {"rtx 5000 ada", 261},
    {"rtx 4500 ada", 158},
    {"rtx 4000 ada", 82},
    {"rtx 2000 ada", 48},
    {"rtx a6000", 155},
    {"rtx a5500", 136},
    {"rtx a5000", 111},
    {"rtx a4500", 95},
    {"rtx a4000", 77},
    {"rtx a2000", 32},
    {"quadro rtx 8000", 130},
    {"quadro rtx 6000", 130},
    {"quadro rtx 5000", 89},
    {"quadro rtx 4000", 57},
    {"quadro gv100", 118},
    {"titan rtx", 130},
    {"titan v", 110},
    // NVIDIA GeForce: half rate with FP32 accumulation
    {"rtx 5090", 210},
    {"rtx 5080", 113},
    {"rtx 5070 ti", 88},
    {"rtx 5070", 62},
    {"rtx 4090", 165},
    {"rtx 4080", 97},
    {"rtx 4070 ti", 80},
    {"rtx 4070", 58},
    {"rtx 4060 ti", 44},
    {"rtx 4060", 30},
    {"rtx 3090 ti", 80},
    {"rtx 3090", 71},
    {"rtx 3080 ti", 68},
    {"rtx 3080", 60},
    {"rtx 3070 ti", 43},
    {"rtx 3070", 41},
    {"rtx 3060 ti", 32},
    {"rtx 3060", 26},
    {"rtx 2080 ti", 54},
    {"rtx 2080", 42},
    {"rtx 2070", 30},
    {"rtx 2060", 26},
    {"gtx 1080 ti", 11},
    {"gtx 1080", 9},
    // AMD
    {"mi355x", 2500},
    {"mi350x", 2300},
    {"mi325x", 1307},
    {"mi300x", 1307},
    {"mi300a", 981},
    {"mi250x", 191.5},
    {"mi250", 181},
    {"mi210", 181},
    {"mi100", 185},
    {"mi60", 29},
    {"mi50", 27},
    {"w7900", 123},
    {"w7800", 90},
    {"rx 7900 xtx", 123},
    {"rx 7900 xt", 103},
};
constexpr double kTflopsASlot = 10;
constexpr int kUnknownCard = 10;
constexpr int kMigSlices = 7;  // of a whole card; 4 of an A30

bool within_word(std::string_view text, std::size_t at) {
  return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
}

bool has_words(std::string_view model, std::string_view name) {
  for (auto at = model.find(name); at != std::string_view::npos; at = model.find(name, at + 1))
    if ((at == 0 || !within_word(model, at - 1)) && !within_word(model, at + name.size()))
      return true;
  return false;
}

/// "… MIG 3g.20gb" -> 3; 0: a whole card.
int mig_slices(std::string_view model) {
  constexpr std::string_view kMig = "mig ";
  const auto at = model.find(kMig);
  if (at == std::string_view::npos || at + kMig.size() + 1 >= model.size()) return 0;
  const char digit = model[at + kMig.size()];
  return digit >= '1' && digit <= '7' && model[at + kMig.size() + 1] == 'g' ? digit - '0' : 0;
}

}  // namespace

int slots_of(std::string_view model, const std::vector<std::pair<std::string, int>>& overrides) {
  const std::string name = lower(model);
  for (const auto& [pattern, slots] : overrides)
    if (name.find(lower(pattern)) != std::string::npos) return std::max(slots, 1);

  const Rating* best = nullptr;
  for (const Rating& rating : kRatings)
    if ((best == nullptr || rating.name.size() > best->name.size()) && has_words(name, rating.name))
      best = &rating;
  double slots = best == nullptr ? kUnknownCard : best->tflops / kTflopsASlot;
  if (const int slices = mig_slices(name); slices > 0)
    slots *= static_cast<double>(slices) / (has_words(name, "a30") ? 4 : kMigSlices);
  return std::max(static_cast<int>(std::lround(slots)), 1);
}

}  // namespace berth::topology
