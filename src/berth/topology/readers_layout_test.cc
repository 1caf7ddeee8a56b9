// Printouts whose blanks were changed on their way from the terminal, and those of amd-smi.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "berth/base/text.h"
#include "berth/testing/topology.h"
#include "paths.h"

namespace berth::topology {
namespace {

std::string file(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(tests::source_path("tests/data/topologies/" + name)).rdbuf();
  return text.str();
}

Topology read_good(const std::string& text) {
  auto topology = read(text, "t");
  EXPECT_TRUE(topology) << topology.error().message << "\n" << text;
  return topology ? *std::move(topology) : Topology{};
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// Tabs as a terminal shows them.
std::string expanded(const std::string& text) {
  std::string shown;
  std::size_t column = 0;
  for (const char byte : text) {
    if (byte == '\t') {
      do shown += ' ';
      while (++column % 8 != 0);
      continue;
    }
    shown += byte;
    column = byte == '\n' ? 0 : column + 1;
  }
  return shown;
}

/// Breaks lines after so many bytes, as `fold` does.
std::string folded(const std::string& text, std::size_t width) {
  std::string parts;
  for (const auto line : split(text, '\n'))
    for (std::size_t at = 0; at == 0 || at < line.size(); at += width)
      parts += std::string(line.substr(at, width)) + "\n";
  return parts;
}

/// A machine with four GPUs and thirteen NICs, whose lines are 152 columns wide.
std::string many_nics() {
  std::string text = "\t";
  std::vector<std::string> names;
  for (int i = 0; i < 17; ++i)
    names.push_back(fmt::format("{}{}", i < 4 ? "GPU" : "NIC", i < 4 ? i : i - 4));
  for (const auto& name : names) text += name + "\t";
  text += "CPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
  constexpr std::string_view kLinks[]{"PIX", "NODE", "SYS"};
  for (std::size_t a = 0; a < names.size(); ++a) {
    text += names[a];
    for (std::size_t b = 0; b < names.size(); ++b)
      text += fmt::format("\t{}", a == b                ? " X "
                                  : std::max(a, b) < 4U ? "NV18"
                                                        : kLinks[(a + b) % 3]);
    text += a < 4 ? "\t0-15\t0\t\tN/A\n" : "\n";
  }
  return text + "\nLegend:\n\n  X    = Self\n";
}

void expect_same(const std::string& changed, const Topology& whole) {
  const Topology topology = read_good(changed);
  EXPECT_EQ(topology.devices, whole.devices) << changed;
  EXPECT_EQ(topology.links, whole.links) << changed;
  EXPECT_EQ(topology.nics, whole.nics) << changed;
  EXPECT_FALSE(topology.partial);
}

TEST(ReadersLayout, HeadsWithoutABlankBetweenThemAreSplit) {
  const Topology whole = read_good(many_nics());
  ASSERT_EQ(whole.nics.size(), 13U);
  const std::string shown = expanded(many_nics());
  expect_same(replaced(shown, "NIC11   NIC12", "NIC11NIC12"), whole);
  expect_same(replaced(shown, "NIC12   CPU Affinity", "NIC12CPU Affinity"), whole);
  expect_same(replaced(shown, "GPU2    GPU3    NIC0 ", "GPU2GPU3NIC0 "), whole);
  expect_same(
      replaced(shown, "CPU Affinity    NUMA Affinity   GPU", "CPU AffinityNUMA AffinityGPU"),
      whole);
  expect_same(
      replaced(replaced(shown, "NIC1 ", "mlx5_1"), "NIC2 ", "mlx5_2"),
      read_good(replaced(replaced(many_nics(), "NIC1\t", "mlx5_1\t"), "NIC2\t", "mlx5_2\t")));
}

TEST(ReadersLayout, LinksWithoutABlankBetweenThemAreSplit) {
  const Topology whole = read_good(many_nics());
  expect_same(replaced(expanded(many_nics()), "NV18    NV18", "NV18NV18"), whole);
  expect_same(replaced(expanded(many_nics()), "SYS     PIX", "SYSPIX"), whole);
  expect_same(replaced(expanded(many_nics()), "SYS     0-15", "SYS0-15"), whole);
}

TEST(ReadersLayout, BlanksOfUnicodeAndCarriageReturnsAreBlanks) {
  const Topology whole = read_good(many_nics());
  const std::string shown = expanded(many_nics());
  for (const std::string_view blank : {"\xc2\xa0", "\xe2\x80\xaf", "\xe3\x80\x80"})
    expect_same(replaced(shown, " ", blank), whole);
  expect_same("\xef\xbb\xbf" + many_nics(), whole);
  expect_same(replaced(many_nics(), "\n", "\r\n"), whole);
  expect_same(replaced(replaced(many_nics(), "\n", "\r\n"), "\t", "\xc2\xa0\t"), whole);
}

TEST(ReadersLayout, EscapeSequencesAreRemoved) {
  const Topology whole = read_good(many_nics());
  expect_same("\x1b[?25l" + replaced(many_nics(), "GPU0", "\x1b[4mGPU0\x1b(B\x1b[m"), whole);
}

TEST(ReadersLayout, WrappedLinesAreJoined) {
  const Topology whole = read_good(many_nics());
  for (const std::size_t width : {80U, 100U, 120U, 132U, 150U})
    expect_same(folded(expanded(many_nics()), width), whole);
  for (const auto* const name : {"dgx-h100.txt", "dgx-a100.txt", "hgx-h200.txt", "8xl40s.txt"})
    expect_same(folded(expanded(file(name)), 80), read_good(file(name)));
}

const std::string kAmdText =
    "ACCESS TABLE:\n"
    "             0000:0c:00.0 0000:22:00.0 0001:38:00.0\n"
    "0000:0c:00.0 ENABLED      ENABLED      ENABLED\n"
    "0000:22:00.0 ENABLED      ENABLED      ENABLED\n"
    "0001:38:00.0 ENABLED      ENABLED      ENABLED\n\n"
    "WEIGHT TABLE:\n"
    "             0000:0c:00.0 0000:22:00.0 0001:38:00.0\n"
    "0000:0c:00.0 0            15           72\n"
    "0000:22:00.0 15           0            40\n"
    "0001:38:00.0 72           40           0\n\n"
    "HOPS TABLE:\n"
    "             0000:0c:00.0 0000:22:00.0 0001:38:00.0\n"
    "0000:0c:00.0 0            1            3\n"
    "0000:22:00.0 1            0            2\n"
    "0001:38:00.0 3            2            0\n\n"
    "LINK TYPE TABLE:\n"
    "             0000:0c:00.0 0000:22:00.0 0001:38:00.0\n"
    "0000:0c:00.0 SELF         XGMI         PCIE\n"
    "0000:22:00.0 XGMI         SELF         PCIE\n"
    "0001:38:00.0 PCIE         PCIE         SELF\n\n"
    "NUMA BW TABLE:\n"
    "             0000:0c:00.0 0000:22:00.0 0001:38:00.0\n"
    "0000:0c:00.0 N/A          50000-100000 N/A\n"
    "0000:22:00.0 50000-100000 N/A          N/A\n"
    "0001:38:00.0 N/A          N/A          N/A\n\n"
    "Legend:\n  SELF = Current GPU\n";
const std::string kAmdJson =
    R"([{"gpu":0,"bdf":"0000:0c:00.0","links":[)"
    R"({"gpu":0,"bdf":"0000:0c:00.0","weight":0,"link_status":"ENABLED","link_type":"SELF","num_hops":0,"bandwidth":"N/A"},)"
    R"({"gpu":1,"bdf":"0000:22:00.0","weight":15,"link_status":"ENABLED","link_type":"XGMI","num_hops":1,"bandwidth":"50000-100000"},)"
    R"({"gpu":2,"bdf":"0001:38:00.0","weight":72,"link_status":"ENABLED","link_type":"PCIE","num_hops":3,"bandwidth":"N/A"}]},)"
    R"({"gpu":1,"bdf":"0000:22:00.0","links":[)"
    R"({"gpu":2,"bdf":"0001:38:00.0","weight":40,"link_status":"ENABLED","link_type":"PCIE","num_hops":2,"bandwidth":"N/A"}]},)"
    R"({"gpu":2,"bdf":"0001:38:00.0","links":[]}])";
const std::string kOldAmdJson =
    R"([{"gpu":0,"bdf":"0000:0c:00.0","access":{"gpu_0":"ENABLED"},"weight":{"gpu_0":0,"gpu_1":15,"gpu_2":72},)"
    R"("hops":{"gpu_0":0,"gpu_1":1,"gpu_2":3},"link_type":{"gpu_0":"SELF","gpu_1":"XGMI","gpu_2":"PCIE"},)"
    R"("numa_bandwidth":{"gpu_0":"N/A"}},)"
    R"({"gpu":1,"bdf":"0000:22:00.0","weight":{"gpu_2":40},"hops":{"gpu_2":2},"link_type":{"gpu_2":"PCIE"}},)"
    R"({"gpu":2,"bdf":"0001:38:00.0"}])";

TEST(ReadersLayout, AmdSmiTablesAndBothLayoutsOfItsJsonTellTheSame) {
  const Topology tables = read_good(kAmdText);
  ASSERT_EQ(tables.devices.size(), 3U);
  EXPECT_EQ(tables.devices[2].pci, "0001:38:00.0");
  EXPECT_EQ(tables.devices[0].vendor, Vendor::amd);
  EXPECT_EQ(tables.link(0, 1), (Link{Pcie::none, 1, 0, FabricKind::xgmi}));
  EXPECT_EQ(tables.link(0, 2), Link{Pcie::sys});
  EXPECT_EQ(tables.link(1, 2), Link{Pcie::node});
  EXPECT_FALSE(tables.partial);
  for (const auto& json : {kAmdJson, kOldAmdJson}) expect_same(json, tables);
  expect_same(replaced(kAmdText, "\n", "\r\n"), tables);
}

TEST(ReadersLayout, AmdSmiWithoutHopsOrWithOddLinksSaysSo) {
  const std::string no_hops = replaced(kAmdText, "HOPS TABLE:", "OTHER TABLE:");
  const Topology topology = read_good(no_hops);
  EXPECT_TRUE(topology.partial);
  EXPECT_EQ(topology.link(1, 2), Link{Pcie::sys});
  const auto odd = read(replaced(kAmdText, "XGMI         PCIE", "FAST         PCIE"), "t");
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().message, "t:21: GPU0 at GPU1: expected XGMI or PCIE, got 'FAST'");
  EXPECT_FALSE(read(replaced(kAmdJson, "0000:22", "0000:0c"), "t"));
  EXPECT_FALSE(read("[{\"a\":1}]", "t"));
  // XGMI through another GPU is not a separate link.
  EXPECT_EQ(read_good(replaced(kAmdText, "15  ", "30  ")).link(0, 1), Link{Pcie::sys});
}

}  // namespace
}  // namespace berth::topology
