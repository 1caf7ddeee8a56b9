#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "berth/testing/topology.h"

namespace berth::topology {
namespace {

using Places = std::vector<std::size_t>;

Topology machine(std::string_view name) {
  auto found = known_machine(name);
  EXPECT_TRUE(found) << found.error().message;
  return found ? *std::move(found) : Topology{};
}

int score_of(const Topology& topology, const Places& set) {
  int sum = 0;
  for (std::size_t a = 0; a < set.size(); ++a)
    for (std::size_t b = a + 1; b < set.size(); ++b) sum += score(topology.link(set[a], set[b]));
  return sum;
}

TEST(Catalogue, EveryMachineIsWholeAndWellFormed) {
  const std::map<std::string, std::size_t> sizes{{"4xrtx3090-nvlink-pairs", 4},
                                                 {"8xl40s", 8},
                                                 {"8xmi250x-gcds", 8},
                                                 {"8xmi300x", 8},
                                                 {"dgx-a100", 8},
                                                 {"dgx-h100", 8},
                                                 {"dgx1-p100", 8},
                                                 {"dgx1-v100", 8},
                                                 {"dgx2-v100", 16},
                                                 {"hgx-b200", 8},
                                                 {"hgx-h200", 8}};
  std::vector<std::string> names;
  for (const auto& [name, size] : sizes) {
    names.push_back(name);
    const Topology topology = machine(name);
    EXPECT_EQ(topology.name, name);
    EXPECT_EQ(topology.devices.size(), size) << name;
    EXPECT_EQ(flaw(topology), "") << name;
    EXPECT_FALSE(topology.partial) << name;
    EXPECT_GT(topology.source.size(), 100U) << name << ": says where its figures come from";
    for (const Device& device : topology.devices) {
      EXPECT_NE(slots_of(device.model), slots_of("no such card")) << device.model;
      EXPECT_GE(device.memory, 16'000'000'000) << name;
      EXPECT_GE(device.numa, 0) << name;
      EXPECT_EQ(device.uuid, "gpu-" + std::to_string(device.index));
    }
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
      const bool diagonal = i % (size + 1) == 0;
      EXPECT_EQ(topology.links[i].pcie > Pcie::none, !diagonal) << name;
    }
  }
  EXPECT_EQ(catalogue(), names);
}

TEST(Catalogue, SamplePairsAreAsPublished) {
  struct Case {
    std::string_view name;
    std::size_t a, b;
    Link link;
  };
  const Case cases[] = {
      {"dgx1-p100", 0, 2, {Pcie::pix, 1, 1}},
      {"dgx1-p100", 0, 5, {Pcie::sys}},
      {"dgx1-v100", 0, 1, {Pcie::pix, 1, 2}},
      {"dgx1-v100", 0, 3, {Pcie::phb, 2, 2}},
      {"dgx1-v100", 3, 7, {Pcie::sys, 1, 2}},
      {"dgx2-v100", 0, 1, {Pcie::pix, 6, 2}},
      {"dgx2-v100", 1, 2, {Pcie::pxb, 6, 2}},
      {"dgx2-v100", 0, 4, {Pcie::node, 6, 2}},
      {"dgx2-v100", 0, 15, {Pcie::sys, 6, 2}},
      {"dgx-a100", 4, 5, {Pcie::pxb, 12, 3}},
      {"dgx-a100", 3, 4, {Pcie::sys, 12, 3}},
      {"dgx-h100", 0, 3, {Pcie::node, 18, 4}},
      {"hgx-h200", 0, 4, {Pcie::sys, 18, 4}},
      {"hgx-b200", 2, 4, {Pcie::sys, 18, 5}},
      {"8xmi300x", 0, 1, {Pcie::node, 1, 4, FabricKind::xgmi}},
      {"8xmi250x-gcds", 0, 1, {Pcie::board, 4, 3, FabricKind::xgmi}},
      {"8xmi250x-gcds", 0, 6, {Pcie::sys, 2, 3, FabricKind::xgmi}},
      {"8xmi250x-gcds", 5, 7, {Pcie::sys, 1, 3, FabricKind::xgmi}},
      {"8xmi250x-gcds", 0, 3, {Pcie::sys}},
      {"4xrtx3090-nvlink-pairs", 1, 3, {Pcie::node, 4, 3}},
      {"8xl40s", 0, 1, {Pcie::node}},
  };
  for (const auto& [name, a, b, link] : cases)
    EXPECT_EQ(machine(name).link(a, b), link) << name << ' ' << a << ' ' << b;
}

/// A switch gives each pair as many links as a GPU has; without one these add up to what it has.
TEST(Catalogue, EveryGpuHasAsManyLinksAsItsMakerSays) {
  struct Case {
    std::string_view name;
    int links;
    bool switched;
  };
  for (const auto& [name, links, switched] :
       {Case{"dgx1-p100", 4, false}, Case{"dgx1-v100", 6, false}, Case{"dgx2-v100", 6, true},
        Case{"dgx-a100", 12, true}, Case{"dgx-h100", 18, true}, Case{"hgx-h200", 18, true},
        Case{"hgx-b200", 18, true}, Case{"8xmi300x", 7, false},
        Case{"4xrtx3090-nvlink-pairs", 4, false}, Case{"8xl40s", 0, false}}) {
    const Topology topology = machine(name);
    for (std::size_t a = 0; a < topology.devices.size(); ++a) {
      int sum = 0;
      for (std::size_t b = 0; b < topology.devices.size(); ++b) {
        if (a == b) continue;
        sum += topology.link(a, b).fabric;
        EXPECT_TRUE(!switched || topology.link(a, b).fabric == links) << name;
      }
      EXPECT_TRUE(switched || sum == links) << name << " GPU" << a << ": " << sum;
    }
  }
}

TEST(Catalogue, IslandsOfKnownMachines) {
  const Places eight{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(islands(machine("dgx1-v100")), (std::vector<Places>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(islands(machine("dgx1-p100")), (std::vector<Places>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(islands(machine("dgx-h100")), std::vector<Places>{eight});
  EXPECT_EQ(islands(machine("8xmi250x-gcds")),
            (std::vector<Places>{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_TRUE(islands(machine("8xl40s")).empty());
}

TEST(Catalogue, UnknownNamesAreNotFoundWithTheNearest) {
  EXPECT_EQ(known_machine("dgx1-v10").error(),
            (Error{ErrorKind::not_found,
                   "no machine 'dgx1-v10' in the catalogue; did you mean 'dgx1-v100'?"}));
  EXPECT_EQ(known_machine("DGX1-V100").error().kind, ErrorKind::not_found);
  EXPECT_NE(known_machine("?").error().message.find("known are: 4xrtx3090"), std::string::npos);
}

/// Best-effort by its definition and nothing else: every partition of the available devices, padded
/// with blanks to a multiple of k, into sets of k.
class Partitions {
 public:
  Partitions(const Topology& topology, Places available, Places required, std::size_t k)
      : topology_(topology), required_(std::move(required)), k_(k) {
    left_ = std::move(available);
    while (left_.size() % k != 0) left_.push_back(kBlank);
    blanks_ = static_cast<std::size_t>(std::ranges::count(left_, kBlank));
  }
  Places best() {
    fill({});
    return best_;
  }

 private:
  static constexpr std::size_t kBlank = 99;

  void fill(Places set) {
    if (set.size() == k_) return close(set);
    if (set.empty() && left_.empty()) return settle();
    for (std::size_t i = 0; i < (set.empty() ? 1 : left_.size()); ++i) {
      const std::size_t item = left_[i];
      if (!set.empty() && item < set.back()) continue;
      left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(i));
      set.push_back(item);
      fill(set);
      set.pop_back();
      left_.insert(left_.begin() + static_cast<std::ptrdiff_t>(i), item);
    }
  }
  void close(const Places& set) {
    const auto blanks = static_cast<std::size_t>(std::ranges::count(set, kBlank));
    if (blanks != 0 && blanks != blanks_) return;
    sets_.push_back(set);
    fill({});
    sets_.pop_back();
  }
  void settle() {
    int sum = 0;
    std::vector<std::pair<int, Places>> candidates;  // by score, less first
    for (const Places& set : sets_) {
      const bool blank = std::ranges::count(set, kBlank) > 0;
      Places devices = set;
      std::erase(devices, kBlank);
      sum += score_of(topology_, devices);
      if (!blank && std::ranges::includes(set, required_))
        candidates.emplace_back(-score_of(topology_, set), set);
    }
    if (candidates.empty()) return;
    const auto [negative, set] = *std::ranges::min_element(candidates);
    const auto rank = std::tuple(-sum, negative, set);
    if (!best_.empty() && rank >= rank_) return;
    rank_ = rank;
    best_ = set;
  }

  const Topology& topology_;
  Places required_;
  std::size_t k_, blanks_ = 0;
  Places left_, best_;
  std::vector<Places> sets_;
  std::tuple<int, int, Places> rank_;
};

TEST(Catalogue, ScoresOfDgx1VoltaGiveTheKnownAnswersOfBestEffort) {
  const Topology topology = machine("dgx1-v100");
  const Places all{0, 1, 2, 3, 4, 5, 6, 7};
  struct Case {
    Places available, required;
    std::size_t k;
    Places chosen;
  };
  for (const auto& [available, required, k, chosen] :
       {Case{{0, 2, 4, 5}, {}, 2, {4, 5}}, Case{{0, 4, 5, 6}, {}, 2, {5, 6}},
        Case{{0, 1, 3}, {}, 2, {0, 3}}, Case{{0, 1, 4}, {}, 2, {0, 4}}, Case{all, {4}, 1, {4}},
        Case{all, {4}, 2, {4, 7}}, Case{all, {4}, 4, {4, 5, 6, 7}},
        Case{all, {0, 2, 4, 6}, 4, {0, 2, 4, 6}}})
    EXPECT_EQ(Partitions(topology, available, required, k).best(), chosen);
}

}  // namespace
}  // namespace berth::topology
