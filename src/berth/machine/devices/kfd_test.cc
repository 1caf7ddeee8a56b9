#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "berth/base/rng.h"
#include "berth/machine/devices/devices.h"
#include "berth/machine/devices/devices_pci.h"
#include "berth/testing/devices.h"
#include "paths.h"

namespace berth::machine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using topology::Health;
using topology::Link;
using topology::Pcie;
using topology::Topology;

const DeviceOptions kNoNvidia{.root = "", .nvml_library = "/no/such/library.so", .nvml = nullptr};

Fixture load_devices(const std::string& name) {
  std::ifstream in(tests::source_path("src/berth/machine/testdata_devices/" + name + ".txt"));
  EXPECT_TRUE(in) << name;
  std::stringstream text;
  text << in.rdbuf();
  return parse_fixture(text.str());
}

Topology found(DeviceEnv& env) {
  auto topology = discover_devices(env, kNoNvidia);
  EXPECT_TRUE(topology) << topology.error().message;
  return topology ? *std::move(topology) : Topology();
}

class Kfd : public testing::TestWithParam<std::string> {};

TEST_P(Kfd, FindsWhatTheCatalogueSaysOfTheMachine) {
  const Fixture fixture = load_devices(GetParam());
  DeviceEnv env(fixture);
  const Topology topology = found(env);
  const auto like =
      topology::known_machine(std::ranges::find(fixture.lines, "like", [](const auto& line) {
                                return line.first;
                              })->second);
  ASSERT_TRUE(like);
  ASSERT_EQ(topology.devices.size(), 8U);
  ASSERT_EQ(like->devices.size(), 8U);
  for (std::size_t a = 0; a < 8; ++a) {
    const topology::Device& device = topology.devices[a];
    EXPECT_EQ(device.index, static_cast<int>(a));
    EXPECT_EQ(device.numa, like->devices[a].numa);
    EXPECT_EQ(device.memory, like->devices[a].memory);
    EXPECT_EQ(topology::slots_of(device.model), topology::slots_of(like->devices[a].model));
    EXPECT_FALSE(device.cores.empty());
    EXPECT_EQ(device.health, Health::healthy);
    for (std::size_t b = 0; b < 8; ++b) {
      if (a == b) continue;
      EXPECT_EQ(topology.link(a, b).fabric, like->link(a, b).fabric) << a << "-" << b;
      EXPECT_EQ(topology.link(a, b).kind, like->link(a, b).kind) << a << "-" << b;
      // Nothing in /sys tells that two dies are on one board: they are on one host bridge.
      const Pcie level = like->link(a, b).pcie;
      EXPECT_EQ(topology.link(a, b).pcie, level == Pcie::board ? Pcie::phb : level)
          << a << "-" << b;
    }
  }
  EXPECT_FALSE(topology.partial);
  EXPECT_THAT(topology.notes, ElementsAre());
  EXPECT_EQ(topology.source, "KFD");
  EXPECT_EQ(topology.name, "box");
}

INSTANTIATE_TEST_SUITE_P(All, Kfd, testing::Values("mi250x", "mi300x"),
                         [](const auto& machine) { return machine.param; });

TEST(KfdCards, AreNamedForTheVariableThatChoosesThem) {
  DeviceEnv env(load_devices("mi250x"));
  const Topology topology = found(env);
  ASSERT_EQ(topology.devices.size(), 8U);
  EXPECT_EQ(topology.devices[0].uuid, "GPU-1234567800000001");
  EXPECT_EQ(topology.devices[0].pci, "0000:c1:00.0");
  EXPECT_EQ(topology.devices[0].model, "AMD Instinct MI250X");
}

TEST(KfdCards, OfAMixedMachine) {
  DeviceEnv env(load_devices("mixed"));
  const Topology topology = found(env);
  ASSERT_EQ(topology.devices.size(), 3U);  // the CPUs and another container's card are none
  EXPECT_EQ(topology.devices[0].model, "AMD Radeon PRO W7900");
  EXPECT_EQ(topology.devices[0].uuid, "gpu-0");
  EXPECT_EQ(topology.devices[1].model, "gfx1100");
  EXPECT_EQ(topology.devices[1].uuid, "GPU-0000000000000033");
  EXPECT_EQ(topology.devices[1].memory, 48'000'000'000);
  EXPECT_EQ(topology.devices[2].model, "AMD Instinct MI100");
  EXPECT_EQ(topology.devices[2].health, Health::unhealthy);
  EXPECT_EQ(topology.devices[2].unhealthy_reason, "3 uncorrected ECC errors");
  EXPECT_THAT(topology.devices[2].cores,
              ElementsAre(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
  EXPECT_EQ(topology.link(0, 1), (Link{.pcie = Pcie::pix}));
  EXPECT_EQ(topology.link(0, 2), (Link{.pcie = Pcie::sys}));
  ASSERT_EQ(topology.nics.size(), 1U);
  EXPECT_EQ(topology.nics[0].name, "mlx5_0");
  EXPECT_THAT(topology.nics[0].devices, ElementsAre(Pcie::pix, Pcie::pix, Pcie::sys));
  EXPECT_TRUE(topology.partial);  // a card without a UUID
  EXPECT_THAT(topology.notes, ElementsAre("GPU0: has no UUID"));
}

TEST(KfdCards, TellWhoUsesThem) {
  DeviceEnv env(load_devices("mixed"));
  const auto watch =
      refresh_health(env, kNoNvidia, found(env), [](pid_t pid) { return pid == 4712; });
  ASSERT_TRUE(watch);
  EXPECT_THAT(watch->uses, ElementsAre(DeviceUse{1, 4711, 1 << 20}));
}

TEST(KfdCards, BehindANewPrefixAreTheSame) {
  DeviceEnv live(load_devices("mi300x"));
  DeviceEnv moved;
  for (const auto& [path, text] : live.files) moved.files["/fixture" + path] = text;
  for (const auto& [from, to] : live.links) moved.links["/fixture" + from] = "/fixture" + to;
  DeviceOptions options = kNoNvidia;
  options.root = "/fixture";
  const auto topology = discover_devices(moved, options);
  ASSERT_TRUE(topology);
  EXPECT_EQ(*topology, found(live));
}

TEST(KfdCards, ALinkToldFromOneSideAloneDoesNotCount) {
  DeviceEnv env(load_devices("mi300x"));
  env.files.erase("/sys/class/kfd/kfd/topology/nodes/2/io_links/1/properties");  // of 0 to 1
  const Topology topology = found(env);
  ASSERT_EQ(topology.devices.size(), 8U);
  EXPECT_EQ(topology.link(0, 1).fabric, 0);
  EXPECT_EQ(topology.link(1, 0).fabric, 0);
  EXPECT_EQ(topology.link(0, 2).fabric, 1);
}

TEST(KfdCards, OnlyXgmiOfOneHopIsALink) {
  DeviceEnv env(load_devices("mi300x"));
  const std::string links = "/sys/class/kfd/kfd/topology/nodes/2/io_links/";  // of card 0
  const auto change = [&](const std::string& link, const std::string& from, const std::string& to) {
    std::string& text = env.files.at(links + link + "/properties");
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
  };
  change("1", "type 11", "type 2");
  change("2", "weight 15", "weight 30");
  const Topology topology = found(env);
  EXPECT_EQ(topology.link(0, 1).fabric, 0);
  EXPECT_EQ(topology.link(0, 2).fabric, 0);
  EXPECT_EQ(topology.link(0, 3).fabric, 1);
}

TEST(KfdCards, OfOneIdAreToldApart) {
  DeviceEnv env(load_devices("mi300x"));
  env.files["/sys/class/kfd/kfd/topology/nodes/3/properties"] =
      env.files["/sys/class/kfd/kfd/topology/nodes/2/properties"];
  const Topology topology = found(env);
  EXPECT_EQ(topology.devices[1].uuid, "gpu-1");
  EXPECT_TRUE(topology.partial);
}

TEST(KfdCards, ThatLoseALinkOrVanishAreUnwell) {
  DeviceEnv env(load_devices("mi300x"));
  const Topology earlier = found(env);
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes/";
  env.files.erase(nodes + "2/io_links/3/properties");  // of 0 to 3
  env.files[nodes + "9/gpu_id"] = "0";                 // 7 is not there any more
  const auto watch = refresh_health(env, kNoNvidia, earlier, [](pid_t) { return true; });
  ASSERT_TRUE(watch);
  ASSERT_EQ(watch->health.size(), 8U);
  EXPECT_EQ(watch->health[0], (DeviceHealth{Health::unhealthy, "1 of 1 links to GPU3 are lost"}));
  EXPECT_EQ(watch->health[3], (DeviceHealth{Health::healthy, ""}));
  EXPECT_EQ(watch->health[7], (DeviceHealth{Health::lost, "its driver does not list it any more"}));
}

TEST(KfdCards, AreSoundWhateverCannotBeRead) {
  const DeviceEnv whole(load_devices("mixed"));
  for (const auto& [path, _] : whole.files) {
    DeviceEnv env = whole;
    env.broken[path] = {ErrorKind::io, "the disk is on fire"};
    const auto topology = discover_devices(env, kNoNvidia);
    ASSERT_TRUE(topology) << path;
    EXPECT_TRUE(topology::check(*topology)) << path;
    if (path.ends_with("/topology/nodes/3/properties")) {
      EXPECT_EQ(topology->devices.size(), 2U);
      EXPECT_THAT(topology->notes, testing::Contains(HasSubstr("the disk is on fire")));
    }
  }
}

TEST(KfdCards, AreSoundWithDamagedBytes) {
  Rng rng(3);
  for (const char* name : {"mi250x", "mixed"}) {
    const DeviceEnv whole(load_devices(name));
    for (int round = 0; round < 200; ++round) {
      DeviceEnv env = whole;
      for (auto& [_, text] : env.files)
        if (rng.below(8) == 0 && !text.empty())
          text[rng.below(text.size())] = "0123456789 \n-\xff"[rng.below(14)];
      const auto topology = discover_devices(env, kNoNvidia);
      if (topology)
        ASSERT_TRUE(topology::check(*topology)) << name << ", round " << round;
      else
        ASSERT_EQ(topology.error().kind, ErrorKind::invalid);
    }
  }
}

TEST(PciPlaces, AreAsFarApartAsTheBridgesBetweenThem) {
  const PciPlace card{{"pci0000:00", "0000:00:01.0", "0000:01:00.0", "0000:02:00.0", "a"}, 0, {}};
  const auto beside = [&](std::vector<std::string> path, int numa) {
    return pcie_level(card, PciPlace{std::move(path), numa, {}});
  };
  EXPECT_EQ(beside({"pci0000:00", "0000:00:01.0", "0000:01:00.0", "0000:02:01.0", "b"}, 0),
            Pcie::pix);
  EXPECT_EQ(beside({"pci0000:00", "0000:00:01.0", "0000:01:00.0", "0000:02:01.0", "0000:05:00.0",
                    "0000:06:00.0", "b"},
                   0),
            Pcie::pxb);
  EXPECT_EQ(beside({"pci0000:00", "0000:00:02.0", "b"}, 0), Pcie::phb);
  EXPECT_EQ(beside({"pci0000:40", "0000:40:01.0", "b"}, 0), Pcie::node);
  EXPECT_EQ(beside({"pci0000:80", "0000:80:01.0", "b"}, 1), Pcie::sys);
  EXPECT_EQ(beside({}, 0), Pcie::unknown);
}

TEST(PciPlaces, AddressesAreThoseOfSysfs) {
  EXPECT_EQ(pci_address("00000000:3B:00.0"), "0000:3b:00.0");
  EXPECT_EQ(pci_address("0000:3B:00.0"), "0000:3b:00.0");
  EXPECT_EQ(pci_address("00010000:3B:00.0"), "00010000:3b:00.0");  // a domain of five digits
  EXPECT_EQ(pci_address(""), "");
}

}  // namespace
}  // namespace berth::machine
