#include "berth/topology/topology.h"

#include <gtest/gtest.h>

#include "berth/base/ranges.h"
#include "berth/testing/topology.h"
#include "berth/topology/notation.h"

namespace berth::topology {
namespace {

using Places = std::vector<std::size_t>;

/// Devices 0, 1 …, with these links in both directions; SYS where none is given.
Topology with_links(std::size_t count,
                    const std::vector<std::tuple<std::size_t, std::size_t, Link>>& links) {
  Topology topology;
  topology.name = "made up";
  for (std::size_t i = 0; i < count; ++i) {
    Device& device = topology.devices.emplace_back();
    device.index = static_cast<int>(i);
    device.uuid = "GPU-" + std::to_string(i);
  }
  topology.links.resize(count * count, Link{.pcie = Pcie::sys});
  for (std::size_t i = 0; i < count; ++i) topology.link(i, i) = {};
  for (const auto& [a, b, link] : links) topology.link(a, b) = topology.link(b, a) = link;
  return topology;
}

Link nvlinks(int count) {
  return {.pcie = Pcie::none, .fabric = count};
}

TEST(Topology, ScoresAPairBySumOfItsLinks) {
  const std::pair<std::string_view, int> cases[] = {
      {"?", 0},       {"NONE", 0},   {"SYS", 10},        {"SOC", 10},       {"NODE", 20},
      {"PHB", 30},    {"PXB", 40},   {"PIX", 50},        {"BOARD", 60},     {"NV1", 100},
      {"NV18", 1800}, {"XGMI", 100}, {"PIX+NV2@2", 250}, {"SYS+XGMI4", 410}};
  for (const auto& [entry, wanted] : cases)
    EXPECT_EQ(score(link_of(entry).value()), wanted) << entry;
}

TEST(Notation, RefusesWhatIsNoLink) {
  for (const std::string_view entry :
       {"", "X", "NV", "NV0", "NV-1", "NV1001", "NV2@", "NV2@x", "nv2", "PIX+", "+NV2", "PIX+PHB",
        "NV2+PIX", "NV2@1@2", "SYS ", "XGMI0"})
    EXPECT_FALSE(link_of(entry)) << entry;
}

TEST(Notation, LinksReadBackFromTheirText) {
  for (int pcie = 0; pcie <= static_cast<int>(Pcie::board); ++pcie)
    for (const int fabric : {0, 1, 18, kMostFabric})
      for (const int generation : {0, 4})
        for (const auto kind : {FabricKind::nvlink, FabricKind::xgmi}) {
          Link link{.pcie = static_cast<Pcie>(pcie)};
          if (fabric > 0) link = {link.pcie, fabric, generation, kind};
          EXPECT_EQ(link_of(link_text(link, true)), link) << link_text(link, true);
          link.generation = 0;
          EXPECT_EQ(link_of(link_text(link, false)), link) << link_text(link, false);
        }
}

TEST(Notation, CoresAreRangesInAnyOrder) {
  using Cores = std::vector<int>;
  const std::pair<std::string_view, Cores> cases[] = {
      {"", {}}, {"N/A", {}}, {"7", {7}}, {"1-1", {1}}, {"4-6,0-1,5,9", {0, 1, 4, 5, 6, 9}}};
  for (const auto& [text, cores] : cases) EXPECT_EQ(cores_of(text), cores) << text;
  EXPECT_EQ(ranges_text(Cores{0, 1, 2, 4, 8, 9}), "0-2,4,8-9");
  EXPECT_EQ(ranges_text(Cores{}), "");
  for (const std::string_view text :
       {"-", "1-", "-1", "3-2", "1,,2", "a", "65536", "0-99999999999"})
    EXPECT_FALSE(cores_of(text)) << text;
}

TEST(Topology, CheckNamesThePairThatIsAsymmetric) {
  Topology topology = with_links(4, {{0, 3, nvlinks(2)}});
  EXPECT_TRUE(check(topology));
  topology.link(3, 0) = Link{.pcie = Pcie::sys};
  EXPECT_EQ(check(topology).error(),
            (Error{ErrorKind::invalid, "GPU0-GPU3: NV2 from one side, SYS from the other"}));
}

TEST(Topology, CheckRefusesWhatCannotBe) {
  struct Case {
    std::string_view about;
    void (*spoil)(Topology&);
  };
  const Case cases[] = {
      {"8 links of 3 devices, expected 9", [](Topology& t) { t.links.pop_back(); }},
      {"GPU1 is given twice", [](Topology& t) { t.devices[2].index = 1; }},
      {"GPU2: its UUID GPU-0 is another's too", [](Topology& t) { t.devices[2].uuid = "GPU-0"; }},
      {"GPU-5: no index is below 0", [](Topology& t) { t.devices[2].index = -5; }},
      {"NIC a: distances to 1 of 3 devices", [](Topology& t) { t.nics = {{"a", {Pcie::pix}}}; }},
      {"257 NICs, at most 256", [](Topology& t) { t.nics.resize(257); }},
      {"GPU0-GPU1: -1 links of generation 0, expected 0 to 1000",
       [](Topology& t) { t.link(0, 1).fabric = t.link(1, 0).fabric = -1; }},
      {"GPU0-GPU1: 1001 links of generation 0, expected 0 to 1000",
       [](Topology& t) { t.link(0, 1).fabric = t.link(1, 0).fabric = 1001; }}};
  for (const auto& [about, spoil] : cases) {
    Topology topology = with_links(3, {});
    spoil(topology);
    const auto checked = check(topology);
    ASSERT_FALSE(checked) << about;
    EXPECT_EQ(checked.error(), (Error{ErrorKind::invalid, std::string(about)}));
  }
  EXPECT_TRUE(check(with_links(kMostDevices, {})));
  EXPECT_EQ(check(with_links(kMostDevices + 1, {})).error().message, "65 devices, at most 64");
}

TEST(Topology, IslandsAreJoinedThroughoutAndDisjoint) {
  EXPECT_TRUE(islands(with_links(4, {})).empty());
  EXPECT_EQ(islands(with_links(4, {{0, 2, nvlinks(4)}, {1, 3, nvlinks(4)}})),
            (std::vector<Places>{{0, 2}, {1, 3}}));
  // 0 has two links to 3 and one to 1: it goes with 3, and 1 with 2.
  EXPECT_EQ(islands(with_links(4, {{0, 1, nvlinks(1)}, {0, 3, nvlinks(2)}, {1, 2, nvlinks(1)}})),
            (std::vector<Places>{{0, 3}, {1, 2}}));
  // A chain is no island of three.
  EXPECT_EQ(islands(with_links(3, {{0, 1, nvlinks(1)}, {1, 2, nvlinks(1)}})),
            (std::vector<Places>{{0, 1}}));
}

TEST(MatrixText, IsReadable) {
  Topology topology = with_links(3, {{0, 2, {Pcie::phb, 4, 3}}});
  topology.devices[0].cores = {0, 1, 2, 3, 8};
  topology.devices[0].numa = 1;
  topology.nics = {{"mlx5_0", {Pcie::pix, Pcie::unknown, Pcie::node}}};
  EXPECT_EQ(matrix_text(topology),
            "      GPU0     GPU1  GPU2     NIC0  CPU Affinity  NUMA Affinity  Island\n"
            "GPU0  X        SYS   PHB+NV4  PIX   0-3,8         1              1\n"
            "GPU1  SYS      X     SYS      ?     N/A           N/A            -\n"
            "GPU2  PHB+NV4  SYS   X        NODE  N/A           N/A            1\n"
            "\n"
            "Legend:\n"
            "  X     = itself\n"
            "  ?     = not reported: treated as the worst\n"
            "  SYS   = across NUMA nodes\n"
            "  NODE  = across PCIe host bridges of one NUMA node\n"
            "  PHB   = one PCIe host bridge\n"
            "  PIX   = one PCIe switch\n"
            "  NV#   = # NVLinks of generation 3\n"
            "\n"
            "NIC Legend:\n"
            "  NIC0: mlx5_0\n");
  EXPECT_EQ(flaw(topology), "");
  const auto again = read_nvidia_smi(matrix_text(topology), "again").value();
  EXPECT_EQ(again.devices[0].cores, topology.devices[0].cores);
  EXPECT_EQ(again.devices[0].numa, 1);
  EXPECT_EQ(again.nics, topology.nics);
}

TEST(Slots, RateACardByTheLongestNameInItsModel) {
  const std::pair<std::string_view, int> cases[] = {{"NVIDIA A100-SXM4-80GB", 31},
                                                    {"NVIDIA H100 80GB HBM3", 99},
                                                    {"NVIDIA H100 PCIe", 76},
                                                    {"Tesla V100-SXM2-32GB", 13},
                                                    {"Tesla V100-PCIE-16GB", 11},
                                                    {"NVIDIA A10", 13},
                                                    {"NVIDIA A10G", 7},
                                                    {"Tesla T4", 7},
                                                    {"NVIDIA L40S", 36},
                                                    {"NVIDIA L4", 12},
                                                    {"NVIDIA RTX A4000", 8},
                                                    {"NVIDIA RTX 6000 Ada Generation", 36},
                                                    {"NVIDIA GeForce RTX 3090", 7},
                                                    {"NVIDIA GeForce RTX 3090 Ti", 8},
                                                    {"AMD Instinct MI300X", 131},
                                                    {"amd instinct mi250x", 19},
                                                    {"Tesla K80", 1},
                                                    {"NVIDIA B200", 225},
                                                    {"", 10},
                                                    {"Some Card 9000", 10},
                                                    {"XA100", 10},
                                                    {"A1000", 10},
                                                    {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4},
                                                    {"NVIDIA H100 80GB HBM3 MIG 3g.40gb", 42},
                                                    {"NVIDIA A30 MIG 2g.12gb", 8},
                                                    {"NVIDIA Z1 MIG 1g.5gb", 1}};
  for (const auto& [model, slots] : cases) EXPECT_EQ(slots_of(model), slots) << model;
}

TEST(Slots, OverridesComeFirstAndAreNeverNone) {
  const std::vector<std::pair<std::string, int>> overrides{
      {"h100 pcie", 5}, {"H100", 7}, {"t4", 0}};
  EXPECT_EQ(slots_of("NVIDIA H100 PCIe", overrides), 5);
  EXPECT_EQ(slots_of("NVIDIA H100 NVL", overrides), 7);
  EXPECT_EQ(slots_of("Tesla T4", overrides), 1);
  EXPECT_EQ(slots_of("NVIDIA A100", overrides), 31);
}

}  // namespace
}  // namespace berth::topology
