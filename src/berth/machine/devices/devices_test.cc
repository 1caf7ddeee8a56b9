#include "berth/machine/devices/devices.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "berth/testing/devices.h"
#include "paths.h"

namespace berth::machine {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::Health;
using topology::Pcie;
using topology::Topology;

const auto kNobody = [](pid_t) { return false; };

DeviceOptions with(FakeNvml& nvml) {
  return {.root = "", .nvml_library = "", .nvml = &nvml};
}

DeviceOptions with_library(const std::string& library) {
  return {.root = "", .nvml_library = library, .nvml = nullptr};
}

/// The fake library that the build makes: "whole", "old" or "broken".
DeviceOptions with_fake(const std::string& kind) {
  return with_library(tests::fake_nvml_path(kind));
}

Topology known(const std::string& name) {
  auto machine = topology::known_machine(name);
  EXPECT_TRUE(machine) << name;
  return machine ? *std::move(machine) : Topology();
}

Topology found(os::Env& env, const DeviceOptions& options) {
  auto topology = discover_devices(env, options);
  EXPECT_TRUE(topology) << topology.error().message;
  return topology ? *std::move(topology) : Topology();
}

DeviceWatch watched(os::Env& env, const DeviceOptions& options, const Topology& earlier) {
  auto watch = refresh_health(env, options, earlier, kNobody);
  EXPECT_TRUE(watch) << watch.error().message;
  return watch ? *std::move(watch) : DeviceWatch();
}

struct CatalogueMachine {
  const char* name;
  bool switched;
};

class NvidiaMachines : public testing::TestWithParam<CatalogueMachine> {};

TEST_P(NvidiaMachines, AreFoundAsTheCatalogueHasThem) {
  const Topology machine = known(GetParam().name);
  FakeNvml nvml = nvml_of(machine, GetParam().switched);
  DeviceEnv env;
  const Topology topology = found(env, with(nvml));
  ASSERT_EQ(topology.devices.size(), machine.devices.size());
  for (std::size_t a = 0; a < machine.devices.size(); ++a) {
    EXPECT_EQ(topology.devices[a].index, static_cast<int>(a));
    EXPECT_EQ(topology.devices[a].model, machine.devices[a].model);
    EXPECT_EQ(topology.devices[a].memory, machine.devices[a].memory);
    EXPECT_EQ(topology.devices[a].numa, machine.devices[a].numa);
    EXPECT_EQ(topology.devices[a].cores, machine.devices[a].cores);
    for (std::size_t b = 0; b < machine.devices.size(); ++b)
      EXPECT_TRUE(a == b || topology.link(a, b) == machine.link(a, b)) << a << "-" << b;
  }
  EXPECT_FALSE(topology.partial);
  EXPECT_THAT(topology.notes, IsEmpty());
  EXPECT_EQ(topology.source, "NVML");
}

INSTANTIATE_TEST_SUITE_P(
    All, NvidiaMachines,
    testing::Values(CatalogueMachine{"dgx1-p100", false}, CatalogueMachine{"dgx1-v100", false},
                    CatalogueMachine{"4xrtx3090-nvlink-pairs", false},
                    CatalogueMachine{"8xl40s", false}, CatalogueMachine{"dgx2-v100", true},
                    CatalogueMachine{"dgx-a100", true}, CatalogueMachine{"dgx-h100", true},
                    CatalogueMachine{"hgx-h200", true}, CatalogueMachine{"hgx-b200", true}),
    [](const auto& machine) {
      std::string name = machine.param.name;
      std::ranges::replace(name, '-', '_');
      return name;
    });

TEST(Nvidia, APairHasAsManySwitchedLinksAsTheLesserOfItsTwo) {
  FakeNvml nvml = nvml_of(known("dgx-h100"), true);
  nvml.cards[3].links[0] = nvml.cards[3].links[7] = std::nullopt;
  DeviceEnv env;
  const Topology topology = found(env, with(nvml));
  EXPECT_EQ(topology.link(0, 1).fabric, 18);
  EXPECT_EQ(topology.link(0, 3).fabric, 16);
  EXPECT_EQ(topology.link(3, 0).fabric, 16);
}

TEST(Nvidia, LinksToCpusDoNotCountAndUnknownOnesAreTold) {
  FakeNvml nvml = nvml_of(known("8xl40s"), false);
  for (FakeCard& card : nvml.cards) card.links = {NvmlLink{NvmlLink::End::npu, "0004:04:01.0", 2}};
  nvml.cards[2].links.push_back(NvmlLink{});
  DeviceEnv env;
  const Topology topology = found(env, with(nvml));
  EXPECT_EQ(topology.link(1, 2).fabric, 0);
  EXPECT_TRUE(topology.partial);
  EXPECT_THAT(topology.notes,
              ElementsAre("GPU2: 1 NVLinks end on no known device and do not count"));
}

TEST(Nvidia, WhatNvmlDoesNotTellComesFromSysfs) {
  FakeNvml nvml = nvml_of(known("8xl40s"), false);
  nvml.levels.clear();
  nvml.cards.resize(2);
  for (FakeCard& card : nvml.cards) card.cores = card.nodes = {};
  DeviceEnv env;
  for (const FakeCard& card : nvml.cards) {
    const std::string folder = "/sys/devices/pci0000:10/" + card.pci;
    env.links["/sys/bus/pci/devices/" + card.pci] = folder;
    env.files[folder + "/numa_node"] = "1\n";
    env.files[folder + "/local_cpulist"] = "4-5,8\n";
  }
  const Topology topology = found(env, with(nvml));
  EXPECT_EQ(topology.link(0, 1).pcie, Pcie::phb);
  EXPECT_EQ(topology.devices[1].numa, 1);
  EXPECT_THAT(topology.devices[1].cores, ElementsAre(4, 5, 8));
}

FakeNvml mig_machine() {
  FakeNvml nvml = nvml_of(known("dgx-a100"), true);
  nvml.cards.resize(3);
  nvml.cards[0].mig = nvml.cards[2].mig = true;
  nvml.cards[0].instances = {
      {"MIG-a", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 20LL << 30, {{71, 1 << 20}}},
      {"MIG-b", "NVIDIA A100-SXM4-40GB MIG 4g.20gb", 20LL << 30}};
  return nvml;
}

TEST(Nvidia, MigInstancesStandInPlaceOfTheirCard) {
  FakeNvml nvml = mig_machine();
  DeviceEnv env;
  const Topology topology = found(env, with(nvml));
  ASSERT_EQ(topology.devices.size(), 3U);
  EXPECT_EQ(topology.devices[0].uuid, "MIG-a");
  EXPECT_EQ(topology.devices[0].mig_parent, "GPU-0");
  EXPECT_EQ(topology.devices[1].mig_parent, "GPU-0");
  EXPECT_EQ(topology.devices[1].memory, 20LL << 30);
  EXPECT_EQ(topology.devices[1].pci, nvml.cards[0].pci);
  EXPECT_EQ(topology.devices[2].uuid, "GPU-1");
  EXPECT_EQ(topology.devices[2].index, 2);  // behind the instances
  EXPECT_EQ(topology.link(0, 1), (topology::Link{.pcie = Pcie::board}));
  EXPECT_EQ(topology.link(0, 2).fabric, 0);  // an instance has no NVLink
  EXPECT_THAT(topology.notes, ElementsAre("card 2 is in MIG mode and has no instances"));
  EXPECT_THAT(watched(env, with(nvml), topology).uses, ElementsAre(DeviceUse{0, 71, 1 << 20}));
}

TEST(Nvidia, AtMostSixtyFourDevicesAreTaken) {
  FakeNvml nvml = nvml_of(known("8xl40s"), false);
  for (int i = 0; i < 8; ++i) {
    FakeCard& card = nvml.cards[static_cast<std::size_t>(i)];
    card.mig = true;
    for (int j = 0; j < 7; ++j) card.instances.push_back({fmt::format("MIG-{}-{}", i, j), "", 0});
  }
  DeviceEnv env;
  EXPECT_EQ(found(env, with(nvml)).devices.size(), 56U);
  const auto eight = nvml.cards;
  for (FakeCard card : eight) {
    card.uuid += "-again";
    for (FakeInstance& instance : card.instances) instance.uuid += "-again";
    nvml.cards.push_back(card);
  }
  const Topology topology = found(env, with(nvml));
  EXPECT_EQ(topology.devices.size(), topology::kMostDevices);
  EXPECT_TRUE(topology.partial);
  EXPECT_THAT(topology.notes, Contains(HasSubstr("the first 64 are taken")));
  EXPECT_TRUE(topology::check(topology));

  nvml.cards.assign(100, nvml.cards[0]);  // and all of one UUID
  EXPECT_EQ(found(env, with(nvml)).devices.size(), topology::kMostDevices);
}

TEST(Nvidia, ErrorsOfMemoryMakeACardUnwell) {
  FakeNvml nvml = nvml_of(known("dgx1-v100"), false);
  nvml.cards[1].errors = 3;
  nvml.cards[2].fault = "a memory row could not be remapped";
  DeviceEnv env;
  const Topology topology = found(env, with(nvml));
  EXPECT_EQ(topology.devices[0].health, Health::healthy);
  EXPECT_EQ(topology.devices[1].health, Health::unhealthy);
  EXPECT_EQ(topology.devices[1].unhealthy_reason, "3 uncorrected ECC errors");
  EXPECT_EQ(topology.devices[2].unhealthy_reason, "a memory row could not be remapped");

  nvml.cards[2].errors = 1;
  EXPECT_EQ(found(env, with(nvml)).devices[2].unhealthy_reason, "1 uncorrected ECC errors");

  nvml.cards[1].errors = nvml.cards[2].errors = 0;
  const DeviceWatch watch = watched(env, with(nvml), topology);
  EXPECT_EQ(watch.health[1], DeviceHealth());  // well again
  EXPECT_EQ(watch.health[2].health, Health::unhealthy);
}

TEST(Nvidia, OfASwitchedMachineOnlyTheCardThatLostLinksIsUnwell) {
  FakeNvml nvml = nvml_of(known("dgx-h100"), true);
  DeviceEnv env;
  const Topology earlier = found(env, with(nvml));
  EXPECT_THAT(watched(env, with(nvml), earlier).health, Each(DeviceHealth()));
  nvml.cards[5].links[17] = std::nullopt;
  const DeviceWatch watch = watched(env, with(nvml), earlier);
  std::vector<DeviceHealth> wanted(8);
  wanted[5] = {Health::unhealthy, "1 of 18 links to GPU0 are lost"};
  EXPECT_EQ(watch.health, wanted);
}

TEST(Nvidia, LinksThatCannotBeReadAreNotLost) {
  FakeNvml nvml = nvml_of(known("dgx-h100"), true);
  DeviceEnv env;
  const Topology earlier = found(env, with(nvml));
  nvml.trouble = [](std::string_view call, std::size_t card) {
    return call == "link" && card == 2 ? std::optional(Error{ErrorKind::io, "Unknown Error"})
                                       : std::nullopt;
  };
  const DeviceWatch watch = watched(env, with(nvml), earlier);
  EXPECT_THAT(watch.health, Each(DeviceHealth()));
  EXPECT_THAT(watch.notes, ElementsAre("GPU2: Unknown Error"));
}

TEST(Nvidia, ACardOffTheBusIsGoneAndTakesNoNeighbourWithIt) {
  FakeNvml nvml = nvml_of(known("dgx1-v100"), false);
  DeviceEnv env;
  const Topology earlier = found(env, with(nvml));
  for (std::size_t i = 0; i < 8; ++i)
    for (auto& link : nvml.cards[i].links)
      if (i == 3 || (link && link->pci == nvml.cards[3].pci)) link = std::nullopt;
  nvml.trouble = [](std::string_view call, std::size_t card) -> std::optional<Error> {
    if (card != 3 || call == "count" || call == "card" || call == "uuid") return std::nullopt;
    return Error{ErrorKind::not_found, "GPU is lost"};
  };
  DeviceWatch watch = watched(env, with(nvml), earlier);
  std::vector<DeviceHealth> wanted(8);
  wanted[3] = {Health::lost, "GPU is lost"};
  EXPECT_EQ(watch.health, wanted);

  nvml.trouble = [](std::string_view call, std::size_t card) -> std::optional<Error> {
    if (card != 3 || call != "card") return std::nullopt;
    return Error{ErrorKind::not_found, "GPU is lost"};
  };
  watch = watched(env, with(nvml), earlier);
  EXPECT_EQ(watch.health[3].health, Health::lost);
  EXPECT_EQ(watch.health[4], DeviceHealth());  // the others are told apart by UUID, not by place
}

TEST(Nvidia, AVanishedDriverTakesAllItsCards) {
  FakeNvml nvml = nvml_of(known("8xl40s"), false);
  DeviceEnv env;
  const Topology earlier = found(env, with(nvml));
  nvml.trouble = [](std::string_view, std::size_t) {
    return Error{ErrorKind::io, "Driver Not Loaded"};
  };
  const DeviceWatch watch = watched(env, with(nvml), earlier);
  EXPECT_THAT(watch.health, Each(DeviceHealth{Health::lost,
                                              "its driver does not list it any more: NVML: Driver "
                                              "Not Loaded"}));
}

TEST(Nvidia, ProcessesThatAreNotOursAreTold) {
  FakeNvml nvml = nvml_of(known("dgx1-v100"), false);
  nvml.cards[2].processes = {{100, 5 << 20}, {200, 0}};
  nvml.cards[6].processes = {{100, 1 << 20}};
  DeviceEnv env;
  const Topology topology = found(env, with(nvml));
  EXPECT_THAT(
      watched(env, with(nvml), topology).uses,
      ElementsAre(DeviceUse{2, 100, 5 << 20}, DeviceUse{2, 200, 0}, DeviceUse{6, 100, 1 << 20}));
  const auto watch =
      refresh_health(env, with(nvml), topology, [](pid_t pid) { return pid == 100; });
  ASSERT_TRUE(watch);
  EXPECT_THAT(watch->uses, ElementsAre(DeviceUse{2, 200, 0}));
}

TEST(Nvidia, AnyCallMayFailForACardWithoutHarmToTheRest) {
  constexpr std::string_view kCalls[] = {"uuid",
                                         "model",
                                         "pci",
                                         "memory",
                                         "cores",
                                         "nodes",
                                         "level",
                                         "link",
                                         "card",
                                         "uncorrected_errors",
                                         "memory_fault",
                                         "mig_enabled",
                                         "most_instances",
                                         "instance",
                                         "processes"};
  for (const auto kind : {ErrorKind::io, ErrorKind::not_found, ErrorKind::denied})
    for (const auto broken : kCalls)
      for (std::size_t which = 0; which < 2; ++which) {
        FakeNvml nvml = mig_machine();
        DeviceEnv env;
        const Topology whole = found(env, with(nvml));
        nvml.trouble = [&](std::string_view call, std::size_t card) {
          return call == broken && card == which ? std::optional(Error{kind, "broken"})
                                                 : std::nullopt;
        };
        const Topology topology = found(env, with(nvml));
        EXPECT_TRUE(topology::check(topology)) << broken;
        EXPECT_LE(topology.devices.size(), whole.devices.size()) << broken;
        if (topology == whole) continue;  // not asked for of this card
        bool told = topology.partial;
        for (const auto& device : topology.devices) told |= device.health == Health::lost;
        EXPECT_TRUE(told) << broken;
        EXPECT_TRUE(refresh_health(env, with(nvml), whole, kNobody)) << broken;
      }
}

TEST(NvmlLibrary, IsReadThroughDlopen) {
  DeviceEnv env;
  const DeviceOptions options = with_fake("whole");
  const Topology topology = found(env, options);
  ASSERT_EQ(topology.devices.size(), 3U);
  const topology::Device& card = topology.devices[1];
  EXPECT_EQ(card.uuid, "GPU-00000001");
  EXPECT_EQ(card.pci, "0000:1b:00.0");
  EXPECT_EQ(card.model, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(card.memory, 40LL << 30);
  EXPECT_THAT(card.cores, ElementsAre(0, 1, 2, 3, 64));
  EXPECT_EQ(card.numa, 1);
  EXPECT_EQ(card.health, Health::healthy);
  EXPECT_EQ(topology.devices[0].unhealthy_reason, "7 uncorrected ECC errors");
  EXPECT_EQ(topology.devices[2].uuid, "MIG-00000003");
  EXPECT_EQ(topology.devices[2].mig_parent, "GPU-00000002");
  EXPECT_EQ(topology.devices[2].memory, 20LL << 30);
  EXPECT_EQ(topology.devices[2].unhealthy_reason, "a memory row could not be remapped");
  EXPECT_EQ(topology.link(0, 1), (topology::Link{Pcie::pix, 2, 3, topology::FabricKind::nvlink}));
  EXPECT_EQ(topology.link(0, 2), (topology::Link{.pcie = Pcie::sys}));
  EXPECT_THAT(topology.notes, IsEmpty());
  const DeviceWatch watch = watched(env, options, topology);
  ASSERT_EQ(watch.uses.size(), 300U);  // more than one call has room for
  EXPECT_EQ(watch.uses[0], (DeviceUse{0, 1000, 0}));
  EXPECT_EQ(watch.uses[101], (DeviceUse{1, 1001, 1 << 20}));
}

TEST(NvmlLibrary, ThatLacksFunctionsOfLaterDriversTellsLess) {
  DeviceEnv env;
  const Topology topology = found(env, with_fake("old"));
  ASSERT_EQ(topology.devices.size(), 3U);
  EXPECT_EQ(topology.link(0, 1).fabric, 2);  // the other end is a card, whatever its kind
  EXPECT_EQ(topology.devices[2].health, Health::healthy);
  EXPECT_THAT(watched(env, with_fake("old"), topology).uses, IsEmpty());
}

TEST(NvmlLibrary, ThatLacksWhatNothingWorksWithoutIsANote) {
  DeviceEnv env;
  const Topology topology = found(env, with_fake("broken"));
  EXPECT_THAT(topology.devices, IsEmpty());
  EXPECT_TRUE(topology.partial);
  EXPECT_THAT(topology.notes, ElementsAre(HasSubstr("it has no nvmlInit_v2")));
}

struct Trouble {
  explicit Trouble(const char* what) { setenv("BERTH_FAKE_NVML", what, 1); }
  Trouble(const Trouble&) = delete;
  ~Trouble() { unsetenv("BERTH_FAKE_NVML"); }
};

TEST(NvmlLibrary, WithoutADriverIsANote) {
  const Trouble trouble("driver");
  DeviceEnv env;
  const Topology topology = found(env, with_fake("whole"));
  EXPECT_THAT(topology.devices, IsEmpty());
  EXPECT_THAT(topology.notes, ElementsAre(HasSubstr("Driver Not Loaded")));
}

TEST(NvmlLibrary, WhoseCallsFailIsNotesAndBadHealth) {
  DeviceEnv env;
  const Topology earlier = found(env, with_fake("whole"));
  {
    const Trouble trouble("lost");
    const DeviceWatch watch = watched(env, with_fake("whole"), earlier);
    EXPECT_EQ(watch.health[1].health, Health::lost);
    EXPECT_THAT(watch.health[1].because, HasSubstr("GPU is lost"));
    EXPECT_EQ(watch.health[0].because, "7 uncorrected ECC errors");
  }
  const Trouble trouble("errors");
  const Topology topology = found(env, with_fake("whole"));
  EXPECT_TRUE(topology.partial);
  for (const auto& device : topology.devices) EXPECT_EQ(device.health, Health::lost);
}

TEST(NvmlLibrary, IsMissedOnlyWhereThereIsADriver) {
  DeviceEnv env;
  const DeviceOptions options = with_library("/no/such/library.so");
  Topology topology = found(env, options);
  EXPECT_EQ(topology, Topology());
  env.files["/proc/driver/nvidia/version"] = "NVRM version: NVIDIA UNIX x86_64 Kernel Module";
  topology = found(env, options);
  EXPECT_TRUE(topology.partial);
  EXPECT_THAT(topology.notes, ElementsAre(HasSubstr("/no/such/library.so")));
}

TEST(NvmlLibrary, OfThisMachineIsReadWhereThereIsOne) {
  void* real = dlopen(DeviceOptions().nvml_library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  const bool here = real != nullptr;
  if (here) dlclose(real);
  std::cout << (here ? "the real libnvidia-ml.so.1 is read\n"
                     : "no libnvidia-ml.so.1 here: the fake library was used\n");
  const auto env = os::posix_env();
  const Topology topology = found(*env, here ? DeviceOptions() : with_fake("whole"));
  EXPECT_TRUE(topology::check(topology));
  std::cout << topology::write_json(topology) << "\n";
  EXPECT_EQ(watched(*env, here ? DeviceOptions() : with_fake("whole"), topology).health.size(),
            topology.devices.size());
}

TEST(Devices, OfAMachineWithoutAnyVendorCostLessThanAMillisecond) {
  const auto env = os::posix_env();
  DeviceOptions options = with_library("libberth-has-no-such-library.so.1");
  options.root = "/no/such/root";
  auto least = Duration::max();
  for (int round = 0; round < 20; ++round) {
    const Mono before = env->now();
    EXPECT_EQ(found(*env, options), Topology());
    least = std::min(least, env->now() - before);
  }
  EXPECT_LT(least, std::chrono::milliseconds(1));
}

TEST(BerthTopology, StandsInByNameOrFileWhateverTheHardware) {
  FakeNvml nvml = nvml_of(known("8xl40s"), false);
  DeviceEnv env;
  env.variables["BERTH_TOPOLOGY"] = "dgx1-v100";
  EXPECT_EQ(found(env, with(nvml)), known("dgx1-v100"));
  env.variables["BERTH_TOPOLOGY"] = "./two.json";
  env.files["./two.json"] = R"({"devices": [{"index": 0}, {"index": 1}]})";
  EXPECT_EQ(found(env, with(nvml)).devices.size(), 2U);
  env.variables["BERTH_TOPOLOGY"] = "";
  EXPECT_EQ(found(env, with(nvml)).devices.size(), 8U);
}

TEST(BerthTopology, ThatIsWrongIsAnError) {
  DeviceEnv env;
  const auto error = [&](const std::string& value) {
    env.variables["BERTH_TOPOLOGY"] = value;
    const auto topology = discover_devices(env, with_library("/no/such/library.so"));
    EXPECT_FALSE(topology) << value;
    return topology ? Error() : topology.error();
  };
  EXPECT_EQ(error("dgx1-v1000").kind, ErrorKind::not_found);
  EXPECT_THAT(error("dgx1-v1000").message, HasSubstr("BERTH_TOPOLOGY: no machine 'dgx1-v1000'"));
  EXPECT_THAT(error("dgx1-v1000").message, HasSubstr("did you mean 'dgx1-v100'"));
  EXPECT_THAT(error("/no/file.json").message, HasSubstr("/no/file.json: no such file"));
  env.files["broken.json"] = "{";
  EXPECT_EQ(error("broken.json").kind, ErrorKind::invalid);
}

TEST(BerthTopology, TellsHealthAnewOnEachReading) {
  DeviceEnv env;
  const DeviceOptions options = with_library("/no/such/library.so");
  env.variables["BERTH_TOPOLOGY"] = "/m.json";
  env.files["/m.json"] = R"({"devices": [{"index": 0}, {"index": 1}, {"index": 2}]})";
  const Topology earlier = found(env, options);
  env.files["/m.json"] =
      R"({"devices": [{"index": 0}, {"index": 1, "health": "unwell", "unwell_because": "heat"}]})";
  const DeviceWatch watch = watched(env, options, earlier);
  ASSERT_EQ(watch.health.size(), 3U);
  EXPECT_EQ(watch.health[0], DeviceHealth());
  EXPECT_EQ(watch.health[1], (DeviceHealth{Health::unhealthy, "heat"}));
  EXPECT_EQ(watch.health[2].health, Health::lost);
  EXPECT_THAT(watch.uses, IsEmpty());
}

}  // namespace
}  // namespace berth::machine
