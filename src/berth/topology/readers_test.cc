// The readers on the printouts of twenty real machines (tests/data/topologies), on small texts, and
// on damaged ones.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "berth/base/rng.h"
#include "berth/testing/topology.h"
#include "paths.h"

namespace berth::topology {
namespace {

namespace fs = std::filesystem;

/// The texts by the names of their files.
std::map<std::string, std::string> real_files() {
  const fs::path folder = tests::source_path("tests/data/topologies");
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    files[entry.path().filename().string()] = text.str();
  }
  return files;
}

struct PairScore {
  std::size_t a, b;
  int score;
};
struct Golden {
  std::string name;
  std::size_t devices, nics;
  bool partial;
  std::vector<PairScore> scores;
  std::vector<std::size_t> first_island;
  int numa;                // of the last device
  std::size_t core_count;  // near the first device
};

const std::vector<Golden>& golden_facts() {
  static const std::vector<Golden> facts{
      {"1xgpu.txt", 1, 0, false, {}, {}, 0, 32},
      {"2xrtx6000ada-puget.txt", 2, 2, false, {{0, 1, 30}}, {}, 0, 24},
      {"3xa6000-ansi-header.txt", 3, 0, false, {{0, 1, 400}, {0, 2, 20}}, {0, 1}, 0, 64},
      {"4xrtx3090-nvlink-pairs.txt",
       4,
       0,
       false,
       {{0, 1, 30}, {0, 2, 400}, {0, 3, 20}},
       {0, 2},
       0,
       24},
      {"8xl40s.txt", 8, 1, false, {{0, 1, 20}, {3, 4, 10}}, {}, 1, 90},
      {"8xpcie-6plus2.txt",
       8,
       0,
       false,
       {{1, 2, 30}, {0, 5, 20}, {5, 6, 10}, {6, 7, 30}},
       {},
       1,
       32},
      {"8xpcie-nv12-pairs.txt",
       8,
       0,
       false,
       {{0, 1, 10}, {0, 2, 1200}, {6, 7, 1200}},
       {0, 2},
       1,
       32},
      {"amd-2hives-4x.txt", 8, 0, false, {{0, 3, 100}, {0, 4, 10}}, {0, 1, 2, 3}, 1, 0},
      {"amd-mi300x-class-8xgmi.txt",
       8,
       0,
       false,
       {{0, 1, 100}, {0, 7, 100}},
       {0, 1, 2, 3, 4, 5, 6, 7},
       1,
       0},
      {"archer2-4xmi210.txt", 4, 0, false, {{0, 3, 100}}, {0, 1, 2, 3}, 3, 0},
      {"dgx-a100.txt", 8, 12, false, {{0, 7, 1200}}, {0, 1, 2, 3, 4, 5, 6, 7}, 5, 32},
      {"dgx-h100.txt", 8, 12, false, {{0, 7, 1800}}, {0, 1, 2, 3, 4, 5, 6, 7}, 1, 112},
      {"dgx1-p100.txt", 8, 4, false, {{0, 1, 100}, {0, 5, 10}}, {0, 1, 2, 3}, -1, 1},
      {"dgx1-v100.txt", 8, 4, false, {{0, 3, 200}, {0, 1, 100}, {0, 5, 10}}, {0, 1, 2, 3}, -1, 40},
      {"dgx2-v100.partial.txt",
       16,
       10,
       true,
       {{0, 15, 600}, {15, 3, 600}, {4, 5, 0}},
       {0, 1, 2, 3, 4},
       -1,
       48},
      {"gh200-quad.txt", 4, 0, false, {{0, 3, 600}}, {0, 1, 2, 3}, 3, 72},
      {"hgx-b200-degraded.partial.txt",
       8,
       12,
       true,
       {{0, 1, 1800}, {0, 2, 20}, {2, 4, 10}, {0, 7, 1800}, {6, 7, 0}},
       {0, 1, 3, 4, 5, 6},
       -1,
       112},
      {"hgx-h200.txt", 8, 8, false, {{0, 7, 1800}}, {0, 1, 2, 3, 4, 5, 6, 7}, 1, 128},
      {"power9-4xv100.txt", 4, 4, false, {{0, 1, 300}, {1, 2, 10}}, {0, 1}, -1, 64},
      {"vm-8xv100-phb.txt", 8, 0, false, {{0, 3, 200}, {0, 5, 30}}, {0, 1, 2, 3}, -1, 64},
  };
  return facts;
}

TEST(Readers, ReadTheTwentyRealMachines) {
  const auto files = real_files();
  EXPECT_EQ(files.size(), golden_facts().size());
  for (const Golden& fact : golden_facts()) {
    SCOPED_TRACE(fact.name);
    const auto read_one = read(files.at(fact.name), fact.name);
    ASSERT_TRUE(read_one) << read_one.error().message;
    EXPECT_EQ(flaw(*read_one), "");
    EXPECT_EQ(read_one->name, fact.name);
    EXPECT_FALSE(read_one->source.empty());
    EXPECT_EQ(read_one->devices.size(), fact.devices);
    EXPECT_EQ(read_one->nics.size(), fact.nics);
    EXPECT_EQ(read_one->partial, fact.partial);
    EXPECT_EQ(read_one->partial, !read_one->notes.empty());
    for (const auto& [a, b, wanted] : fact.scores)
      EXPECT_EQ(score(read_one->link(a, b)), wanted) << a << ' ' << b;
    const auto groups = islands(*read_one);
    EXPECT_EQ(groups.empty() ? std::vector<std::size_t>{} : groups[0], fact.first_island);
    EXPECT_EQ(read_one->devices.back().numa, fact.numa);
    EXPECT_EQ(read_one->devices.front().cores.size(), fact.core_count);
  }
}

TEST(Readers, NicsGetTheirNamesAndDistances) {
  const auto files = real_files();
  const auto nics = [&](const std::string& name) {
    return read(files.at(name), name).value().nics;
  };
  EXPECT_EQ(nics("2xrtx6000ada-puget.txt")[1], (Nic{"mlx5_1", {Pcie::node, Pcie::node}}));
  const auto dgx1 = nics("dgx1-p100.txt");
  EXPECT_EQ(dgx1[1].name, "mlx5_2");
  EXPECT_EQ(dgx1[1].devices[3], Pcie::sys);
  EXPECT_EQ(dgx1[1].devices[4], Pcie::pix);
  EXPECT_EQ(nics("hgx-h200.txt")[4].devices[0], Pcie::pix);
  EXPECT_EQ(nics("dgx2-v100.partial.txt")[0].devices[4], Pcie::unknown);
  EXPECT_EQ(nics("hgx-b200-degraded.partial.txt")[4].devices[4], Pcie::pxb);
}

TEST(Readers, LineEndsAndCodesOfTerminalsChangeNothing) {
  const auto files = real_files();
  for (const auto& [name, text] : files) {
    std::string windows, colored;
    for (const char c : text) {
      windows += c == '\n' ? "\r\n" : std::string(1, c);
      colored += c == '\n' ? "\x1b[0m\n\x1b[4;1m" : std::string(1, c);
    }
    const auto plain = read(text, name).value();
    EXPECT_EQ(read(windows, name).value(), plain) << name;
    EXPECT_EQ(read(colored, name).value().links, plain.links) << name;
  }
}

Topology smi(std::string_view text) {
  const auto topology = read_nvidia_smi(text, "t");
  EXPECT_TRUE(topology) << topology.error().message;
  return topology.value_or(Topology{});
}

TEST(NvidiaSmi, AcceptsWhatPublicationsDoToIt) {
  // Terminal codes that lost their ESC, a prompt, indices past nine with a gap, a wrapped legend.
  const auto topology =
      smi("$ nvidia-smi topo -m\n"
          "\t[4mGPU2\tGPU11\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID[0m\n"
          "GPU2\t X \tNV144\tPIX\t\t1\t\tN/A\n"
          "GPU11\tNV144\t X \tSYS\tN/A\tN/A\t\tN/A\n"
          "NIC0\tPIX\tSYS\t X \t\t\n"
          "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the\n"
          "GPU0 in a wrapped line\n"
          "\nNIC Legend:\n\n  NIC0: mlx5_bond_0\n");
  ASSERT_EQ(topology.devices.size(), 2U);
  EXPECT_EQ(topology.devices[1].index, 11);
  EXPECT_EQ(topology.devices[1].uuid, "gpu-11");
  EXPECT_EQ(topology.link(0, 1), (Link{Pcie::none, 144}));
  EXPECT_TRUE(topology.devices[0].cores.empty()) << "an empty cell, not node 1's";
  EXPECT_EQ(topology.devices[0].numa, 1);
  EXPECT_EQ(topology.nics[0], (Nic{"mlx5_bond_0", {Pcie::pix, Pcie::sys}}));
  EXPECT_FALSE(topology.partial);
}

TEST(NvidiaSmi, WhatIsNotToldIsNotedAndTheWorst) {
  const auto topology = smi(" GPU0 GPU1 GPU2 GPU3 NIC0\nGPU0 X NV2 N/A\nGPU1 NV2 X PIX SYS PXB\n");
  EXPECT_TRUE(topology.partial);
  EXPECT_EQ(topology.notes, (std::vector<std::string>{"no row of GPU2, GPU3",
                                                      "3 pairs: their links are not reported",
                                                      "3 distances to NICs are not reported"}));
  EXPECT_EQ(score(topology.link(2, 1)), 50) << "told from the other side";
  EXPECT_EQ(score(topology.link(0, 2)), 0);
  EXPECT_EQ(score(smi(" GPU0 GPU1\nGPU1 PIX X\n").link(0, 1)), 50);
  EXPECT_TRUE(smi(" GPU0 NIC0\nGPU0 X\n").partial) << "the distance to a NIC";
}

TEST(NvidiaSmi, ANicIsAsFarAsEitherOfItsPlacesSays) {
  const auto topology =
      smi(" GPU0 GPU1 GPU2 NIC0\nGPU0 X SYS SYS PIX\nGPU1 SYS X SYS SYS\nGPU2 SYS SYS X\n"
          "NIC0 PXB PIX NODE X\n");
  EXPECT_EQ(topology.nics[0].devices, (std::vector{Pcie::pxb, Pcie::sys, Pcie::node}));
  EXPECT_FALSE(topology.partial);
}

TEST(NvidiaSmi, ACutLastCellIsNotTaken) {
  const std::string whole = "GPU0 GPU1 CPU Affinity\nGPU0 X NV18 0-31\nGPU1 NV18 X 32-63";
  EXPECT_EQ(smi(whole).devices[1].cores.size(), 32U);
  // Up to where GPU1's row would end in "NV1": told from GPU0's row.
  const auto cut = smi(whole.substr(0, whole.size() - 9));
  EXPECT_EQ(score(cut.link(1, 0)), 1800);
}

TEST(NvidiaSmi, ErrorsNameLineAndPlace) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "t:1: no row or column of a GPU"},
      {"Legend:\nGPU0 X\n", "t:1: no row or column of a GPU"},
      {" GPU0 GPU1\nGPU0 X NVX\n",
       "t:2: GPU0 at GPU1: expected NV#, PIX, PXB, PHB, NODE or SYS, got 'NVX'"},
      {" GPU0 GPU1\nGPU0 X SYS\nGPU1 X SYS\n", "t:3: GPU1 at GPU0: expected a link, got 'X'"},
      {" GPU0 GPU1\nGPU0 SYS X\n", "t:2: GPU0 at GPU0: expected X, got 'SYS'"},
      {" GPU0 GPU1\nGPU2 X SYS\n", "t:2: GPU2 has no column"},
      {" GPU0 GPU1\nGPU0 X SYS\nGPU0 X SYS\n", "t:3: a second row of GPU0"},
      {" GPU0 CPU Affinity\nGPU0 X 0-x\n",
       "t:2: GPU0: expected near cores such as 0-31,64-95, got '0-x'"},
      {" GPU0 GPU1\nGPU0 X NV2\nGPU1 SYS X\n",
       "t: GPU0-GPU1: NV2 from one side, SYS from the other"},
      {" GPU0 GPU0\n", "t: GPU0 is given twice"},
      {"GPU64 X\n", "t:1: 65 GPUs and 0 NICs, at most 64 and 256"}};
  for (const auto& [text, message] : cases) {
    const auto topology = read_nvidia_smi(text, "t");
    ASSERT_FALSE(topology) << text;
    EXPECT_EQ(topology.error(), (Error{ErrorKind::invalid, std::string(message)}));
  }
}

constexpr std::string_view kRocm =
    "=== Weight between two GPUs ===\n"
    "       GPU0  GPU1  GPU2\n"
    "GPU0   0     15    30\nGPU1   15    0     40\nGPU2   30    40    0\n"
    "=== Hops between two GPUs ===\n"
    "       GPU0  GPU1  GPU2\n"
    "GPU0   0     1     1\nGPU1   1     0     2\nGPU2   1     2     0\n"
    "=== Link Type between two GPUs ===\n"
    "       GPU0  GPU1  GPU2\n"
    "GPU0   0     XGMI  XGMI\nGPU1   XGMI  0     PCIE\nGPU2   XGMI  PCIE  0\n"
    "=== Numa Nodes ===\n"
    "GPU[0]\t\t: (Topology) Numa Node: 0\nGPU[0]\t\t: (Topology) Numa Affinity: 0\n"
    "GPU[1]\t\t: (Topology) Numa Node: 3\nGPU[1]\t\t: (Topology) Numa Affinity: 1\n"
    "GPU 2          : (Topology) Numa Node: 1\n";

TEST(RocmSmi, TellsLinksFromPathsThroughOtherGpus) {
  const auto topology = read(kRocm, "t").value();
  EXPECT_EQ(topology.link(0, 1), (Link{Pcie::none, 1, 0, FabricKind::xgmi}));
  EXPECT_EQ(topology.link(0, 2), (Link{Pcie::sys})) << "two hops";
  EXPECT_EQ(topology.link(1, 2), (Link{Pcie::node})) << "both at node 1";
  EXPECT_FALSE(topology.partial);
  EXPECT_NE(matrix_text(topology).find("GPU0  X      XGMI1  SYS"), std::string::npos);
}

TEST(RocmSmi, WhatIsNotToldIsNoted) {
  const std::string text(kRocm.substr(0, kRocm.find("GPU2   XGMI")));
  const auto topology = read(text, "t").value();
  EXPECT_TRUE(topology.partial);
  EXPECT_EQ(topology.link(2, 1), (Link{Pcie::sys})) << "told from the other side";
  EXPECT_EQ(topology.notes.front(),
            "3 GPUs: their NUMA nodes are not reported, so PCIe is treated as SYS");
  const std::string cut(kRocm.substr(0, kRocm.find("GPU1   XGMI") + 10));  // "GPU1   XGM"
  EXPECT_EQ(read(cut, "t").value().link(1, 0).fabric, 1) << "from GPU0's row";
  EXPECT_EQ(read_rocm_smi("GPU0 GPU1\n", "t").value().notes.back(),
            "1 pairs: their links are not reported");
}

TEST(RocmSmi, ErrorsNameLineAndPlace) {
  const auto wrong = read_rocm_smi("== Link Type ==\nGPU0 GPU1\nGPU0 0 IPC\n", "t");
  EXPECT_EQ(wrong.error().message, "t:3: GPU0 at GPU1: expected XGMI or PCIE, got 'IPC'");
  EXPECT_EQ(read_rocm_smi("", "t").error().message, "t:1: no row or column of a GPU");
}

TEST(Json, TakesAllFieldsAndTheLeast) {
  const auto full = read(
      R"({"name": "mine", "source": "me",
          "devices": [{"index": 3, "uuid": "GPU-a", "pci": "0000:3b:00.0", "model": "M",
                       "memory": "80GB", "numa": 1, "cores": "4-5", "mig_parent": "GPU-p",
                       "health": "unwell", "unwell_because": "ECC"},
                      {"index": 1}],
          "links": [["X", "PIX+NV2@2"], ["PIX+NV2@2", "X"]],
          "nics": [{"name": "n", "devices": ["PIX", "?"]}], "partial": true, "notes": ["a"]})",
      "t");
  ASSERT_TRUE(full) << full.error().message;
  const Device& device = full->devices[1];  // in the order of their indices
  EXPECT_EQ(std::tuple(device.index, device.uuid, device.pci, device.model, device.memory),
            std::tuple(3, "GPU-a", "0000:3b:00.0", "M", 80'000'000'000));
  EXPECT_EQ(std::tuple(device.numa, device.cores, device.mig_parent, device.health),
            std::tuple(1, std::vector<int>{4, 5}, "GPU-p", Health::unhealthy));
  EXPECT_EQ(device.unhealthy_reason, "ECC");
  EXPECT_EQ(full->link(0, 1), (Link{Pcie::pix, 2, 2}));
  EXPECT_EQ(full->notes, std::vector<std::string>{"a"});
  EXPECT_EQ(flaw(*full), "");

  const auto least = read_json(R"({"devices": [{"index": 0}, {"index": 1}]})", "t").value();
  EXPECT_EQ(least.name, "t");
  EXPECT_TRUE(least.partial) << "no links told";
  EXPECT_TRUE(read(R"({"devices": [], "notes": ["between two GPUs"]})", "t"));
  EXPECT_TRUE(read_json(R"({"devices": []})", "t")) << "a machine without GPUs";
  const auto printed =
      fmt::format(R"({{"version": 1, "topology": {}, "islands": []}})", write_json(least));
  EXPECT_EQ(read(printed, "t").value(), least) << "as berth topo --json prints it";
}

TEST(Json, ErrorsNameThePath) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"{}", "'devices' is missing"},
      {R"({"devices": [{}]})", "devices[0]: 'index' is missing"},
      {R"({"devices": [{"index": 0, "numa": -2}]})", "numa: expected -1 to 65535, got -2"},
      {R"({"devices": [{"index": 0, "cores": "x"}]})", "cores: expected cores such as"},
      {R"({"devices": [{"index": 0, "memory": "many"}]})", "memory: expected bytes, such as 80GB"},
      {R"({"devices": [{"index": 0, "health": "ill"}]})", "expected one of well, unwell, gone"},
      {R"({"devices": [{"index": 0, "modl": "M"}]})", "did you mean 'model'?"},
      {R"({"devices": [{"index": 0}], "links": []})", "links: expected 1, one a device, got 0"},
      {R"({"devices": [{"index": 0}], "links": [["SYS"]]})", "links[0][0]: expected X, got 'SYS'"},
      {R"({"devices": [{"index": 0}], "nics": [{"devices": ["NV2"]}]})", "expected SYS, NODE"},
      {R"({"devices": [{"index": 0}, {"index": 1}], "links": [["X", "SYS"], ["PIX", "X"]]})",
       "GPU0-GPU1: SYS from one side, PIX from the other"},
      {R"({"devices": [], "linx": []})", "did you mean 'links'?"},
      {R"({"topology": {"devices": []}, "islnds": []})", "did you mean 'islands'?"},
      {R"({"topology": {}})", "topology: 'devices' is missing"}};
  for (const auto& [text, message] : cases) {
    const auto topology = read_json(text, "t");
    ASSERT_FALSE(topology) << text;
    EXPECT_EQ(topology.error().kind, ErrorKind::invalid);
    EXPECT_NE(topology.error().message.find(message), std::string::npos)
        << topology.error().message;
    EXPECT_TRUE(topology.error().message.starts_with("t:1: ")) << topology.error().message;
  }
}

TEST(Json, IsJsonAndNoYaml) {
  for (const std::string_view text : {"{},", "[],", ",", "{devices: []}", R"({"devices": [],})",
                                      R"({"devices": []} # so)", R"({"devices": []} {})"}) {
    const auto topology = read_json(text, "t");
    ASSERT_FALSE(topology) << text;
    EXPECT_TRUE(topology.error().message.starts_with("t: not JSON: ")) << topology.error().message;
  }
}

/// The columns, the rows or the list turned about: ties in placement go by the order of devices.
TEST(Readers, DevicesStandInTheOrderOfTheirIndices) {
  const auto in_order = read(
      "\tGPU0 GPU1 GPU2 NIC0\nGPU0 X PIX SYS PHB\nGPU1 PIX X NV4 SYS\n"
      "GPU2 SYS NV4 X NODE\n",
      "t");
  const auto columns = read(
      "\tGPU2 GPU0 GPU1 NIC0\nGPU2 X SYS NV4 NODE\nGPU0 SYS X PIX PHB\n"
      "GPU1 NV4 PIX X SYS\n",
      "t");
  const auto rows = read(
      "\tGPU0 GPU1 GPU2 NIC0\nGPU2 SYS NV4 X NODE\nGPU0 X PIX SYS PHB\n"
      "GPU1 PIX X NV4 SYS\n",
      "t");
  const auto list = read(R"({"devices": [{"index": 2}, {"index": 0}, {"index": 1}],
      "links": [["X", "SYS", "NV4"], ["SYS", "X", "PIX"], ["NV4", "PIX", "X"]],
      "nics": [{"name": "NIC0", "devices": ["NODE", "PHB", "SYS"]}]})",
                         "t");
  ASSERT_TRUE(in_order && columns && rows && list);
  EXPECT_EQ(*in_order, *columns);
  EXPECT_EQ(*in_order, *rows);
  EXPECT_EQ(in_order->devices, list->devices);
  EXPECT_EQ(in_order->links, list->links);
  EXPECT_EQ(in_order->nics, list->nics);
  EXPECT_EQ(list->devices[2].index, 2);
}

TEST(Readers, RefuseWhatIsNoTopologyAndTooMuchOfIt) {
  EXPECT_NE(read("hello\n", "t").error().message.find("no topology"), std::string::npos);
  const std::string much(kMostText + 1, ' ');
  for (const auto reader : {read, read_nvidia_smi, read_rocm_smi, read_json})
    EXPECT_EQ(reader(much, "t").error().kind, ErrorKind::invalid);
}

/// A few bytes put in, taken out, replaced, or a piece moved: mostly what stands in the text
/// itself.
std::string damaged(std::string text, Rng& rng) {
  for (std::uint64_t left = 1 + rng.below(4); left > 0 && !text.empty(); --left) {
    const std::size_t at = rng.below(text.size());
    const std::size_t from = rng.below(text.size());
    const std::size_t length = rng.below(20);
    switch (rng.below(5)) {
      case 0: text[at] = static_cast<char>(rng.below(256)); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(from, length)); break;
      case 3: text[at] = text[from]; break;
      default: text.resize(at);
    }
  }
  return text;
}

TEST(Readers, DamagedFilesAreReadOrRefusedButNeverMalformed) {
  constexpr int kRounds = 200;
  auto files = real_files();
  for (const auto& name : catalogue()) files[name] = write_json(known_machine(name).value());
  Rng rng(20);
  int given = 0, refused = 0;
  for (const auto& [name, text] : files) {
    for (int round = 0; round < kRounds; ++round) {
      const std::string broken =
          round < kRounds / 4 ? text.substr(0, rng.below(text.size())) : damaged(text, rng);
      const auto topology = read(broken, name);
      ++(topology ? given : refused);
      if (!topology) {
        EXPECT_EQ(topology.error().kind, ErrorKind::invalid);
      } else if (const auto found = flaw(*topology); !found.empty()) {
        FAIL() << name << ", round " << round << ": " << found << '\n' << broken;
      }
    }
  }
  EXPECT_GT(given, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace berth::topology
