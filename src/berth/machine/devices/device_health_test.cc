#include "berth/machine/devices/device_health.h"

#include <gtest/gtest.h>

#include "berth/machine/devices/health_watch.h"
#include "berth/os/loop.h"
#include "berth/testing/fake_env.h"

namespace berth::machine {
namespace {

constexpr auto kTwo =
    R"({"name": "two", "devices": [
         {"index": 0, "uuid": "GPU-a", "model": "Tesla V100-SXM2-32GB", "memory": "32GB", "numa": 1},
         {"index": 1, "uuid": "GPU-b", "model": "my card", "memory": "16GB"HEALTH}],
        "links": [["X", "NV2"], ["NV2", "X"]]})";

std::string two(const std::string& health = "") {
  std::string text = kTwo;
  return text.replace(text.find("HEALTH"), 6, health);
}

class DeviceHealthTest : public ::testing::Test {
 protected:
  DeviceHealthTest() {
    env.variables["BERTH_TOPOLOGY"] = "/topo.json";
    env.put("/topo.json", two());
    capacity.total.set(Known::cpu, 2000);
    capacity.cores = {0, 1};
    capacity.nodes = {{0, {0}}, {1, {1}}};
  }
  Devices read() {
    auto devices = read_devices(env, {}, "/ledger");
    EXPECT_TRUE(devices) << devices.error().message;
    return devices ? *std::move(devices) : Devices{};
  }
  os::FakeEnv env;
  Capacity capacity;
};

TEST_F(DeviceHealthTest, AHostHasTheDevicesAndTheirAmounts) {
  capacity.gpu_slots = {{"my card", 7}};
  const Devices devices = read();
  const Host host = host_of(capacity, &devices);
  ASSERT_EQ(host.total.devices.size(), 2U);
  EXPECT_EQ(host.total.devices[0].slots, 13);
  EXPECT_EQ(host.total.devices[1].slots, 7) << "the machine file knows better";
  EXPECT_EQ(host.total.resources.get(Known::gpu), 2);
  EXPECT_EQ(host.total.resources.get(Known::gpu_mem), 48'000'000'000);
  EXPECT_EQ(host.total.resources.get(Known::gpu_slots), 20);
  EXPECT_EQ(host.total.cores, (std::vector<CoreShare>{{0, 0, 1000}, {1, 1, 1000}}));
  EXPECT_NE(host.links, nullptr);
  EXPECT_EQ(host_of(capacity, nullptr).total.resources.get(Known::gpu), 0);
}

TEST_F(DeviceHealthTest, WhatIsOutOfServiceIsNotInTheHostUntilItIsWell) {
  Devices devices = read();
  env.put("/topo.json",
          two(R"(, "health": "unwell", "unwell_because": "3 uncorrected ECC errors")"));
  devices.health = *read_health_update(env, {}, devices.topology, "/ledger");
  EXPECT_EQ(
      devices.health.out_of_service,
      (std::vector<std::pair<std::string, std::string>>{{"GPU-b", "3 uncorrected ECC errors"}}));
  EXPECT_EQ(unusable_text(devices), "; out of service: GPU1 (3 uncorrected ECC errors)");
  EXPECT_EQ(host_of(capacity, &devices).total.resources.get(Known::gpu), 1);
  env.put("/topo.json", two());
  devices.health = *read_health_update(env, {}, devices.topology, "/ledger");
  EXPECT_EQ(host_of(capacity, &devices).total.resources.get(Known::gpu), 2);
  EXPECT_EQ(unusable_text(devices), "");
}

TEST_F(DeviceHealthTest, ForeignProcessesAreNamed) {
  Devices devices = read();
  devices.health.foreign = {{"GPU-a", 77, "python3", 5'000'000'000}, {"GPU-b", 78, "", 0}};
  const Host host = host_of(capacity, &devices);
  ASSERT_EQ(host.foreign.size(), 2U);
  EXPECT_EQ(host.foreign[0].first, "process 77 (python3)");
  EXPECT_EQ(host.foreign[1].first, "process 78");
  Machine machine(host.total);
  std::vector<Reservation> held;
  for (const auto& [who, block] : host.foreign) held.push_back(*machine.occupy(block, who));
  EXPECT_EQ(machine.free().get(Known::gpu), 0) << "also where no memory is told";
  EXPECT_EQ(machine.free().get(Known::gpu_mem), 43'000'000'000);
}

TEST_F(DeviceHealthTest, NewsAreReadBackAsTheyWereWritten) {
  DeviceHealthUpdate update;
  update.out_of_service = {{"GPU-a", "off the \"bus\""}};
  update.foreign = {{"GPU-b", 77, "python3", 1 << 30}};
  EXPECT_EQ(*health_update_of_json(to_json(update)), update);
  EXPECT_EQ(*health_update_of_json(to_json(DeviceHealthUpdate{})), DeviceHealthUpdate{});
  DeviceHealthUpdate odd;
  odd.out_of_service = {{"GPU-a", "what a driver says need not be UTF-8: \xff"}};
  EXPECT_TRUE(health_update_of_json(to_json(odd)));
  for (const auto* wrong : {"", "{}", "[]", "3", R"({"out_of_service":[{}],"foreign":[]})",
                            R"({"out_of_service":[],"foreign":[{"uuid":1}]})"})
    EXPECT_FALSE(health_update_of_json(wrong)) << wrong;
}

/// A machine file on which nothing more is read: what the hardware has is not asked.
TEST_F(DeviceHealthTest, AWrongStandInIsAnErrorThatNamesIt) {
  env.variables["BERTH_TOPOLOGY"] = "dgx1-v10";
  const auto devices = read_devices(env, {}, "/ledger");
  ASSERT_FALSE(devices);
  EXPECT_NE(devices.error().message.find("dgx1-v100"), std::string::npos);
}

TEST_F(DeviceHealthTest, TheEnvironmentHidesDescribedDevicesToo) {
  const auto seen = [&](const char* variable, const char* value) {
    env.variables.erase("CUDA_VISIBLE_DEVICES");
    env.variables.erase("NVIDIA_VISIBLE_DEVICES");
    env.variables[variable] = value;
    std::vector<std::string> uuids;
    for (const auto& share : read().shares) uuids.push_back(share.uuid);
    return uuids;
  };
  using Uuids = std::vector<std::string>;
  for (const auto* variable : {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}) {
    EXPECT_EQ(seen(variable, "1"), Uuids{"GPU-b"}) << variable;
    EXPECT_EQ(seen(variable, "GPU-a"), Uuids{"GPU-a"}) << variable;
    EXPECT_EQ(seen(variable, ""), Uuids{}) << variable;
  }
  EXPECT_EQ(seen("NVIDIA_VISIBLE_DEVICES", "all"), (Uuids{"GPU-a", "GPU-b"}));
  EXPECT_EQ(seen("NVIDIA_VISIBLE_DEVICES", "void"), Uuids{});
  EXPECT_EQ(unusable_text(read()), "; hidden by CUDA_VISIBLE_DEVICES or its like: GPU0, GPU1");
  env.put("/.dockerenv", "");
  EXPECT_EQ(seen("NVIDIA_VISIBLE_DEVICES", "1"), Uuids{"GPU-b"}) << "described, not brought in";
}

class HealthWatchTest : public DeviceHealthTest {
 protected:
  /// Turns the world until an update comes or an hour has passed on its clock.
  std::optional<DeviceHealthUpdate> wait_for_update() {
    update.reset();
    const Mono until = env.now() + std::chrono::hours(1);
    while (!update && env.now() < until) EXPECT_TRUE(env.loop().turn(until));
    return update;
  }
  std::optional<DeviceHealthUpdate> update;
  std::function<void(DeviceHealthUpdate)> take_update = [this](DeviceHealthUpdate one) {
    update = std::move(one);
  };
  os::SpawnSpec program{.argv = {"berth", "watch-devices"},
                        .environment = {},
                        .directory = "/",
                        .cores = {},
                        .join_files = {}};
};

TEST_F(HealthWatchTest, TellsTheLatestNewsAndStartsAgainWhatDied) {
  DeviceHealthUpdate first, second;
  first.out_of_service = {{"GPU-a", "one"}};
  second.out_of_service = {{"GPU-a", "two"}};
  int started = 0;
  env.program = [&](const os::SpawnSpec&) {
    ++started;
    return os::FakeProgram{.duration = std::chrono::seconds(1),
                           .out = to_json(first) + "\n" + to_json(second) + "\nhalf a li",
                           .exit_code = 139};
  };
  {
    HealthWatch watch(env, program, take_update);
    EXPECT_EQ(wait_for_update(), second);
    EXPECT_EQ(wait_for_update(), second);
    EXPECT_EQ(started, 2);
  }
  EXPECT_EQ(env.processes_alive(), 0U);
  EXPECT_EQ(env.descriptors(), 0U);
}

TEST_F(HealthWatchTest, WhatCannotBeStartedIsTriedAgain) {
  int tries = 0;
  env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call != "spawn" || ++tries > 2) return std::nullopt;
    return Error{ErrorKind::full, "no process left"};
  };
  env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.out = to_json(DeviceHealthUpdate{}) + "\n"};
  };
  HealthWatch watch(env, program, take_update);
  EXPECT_EQ(wait_for_update(), DeviceHealthUpdate{});
  EXPECT_EQ(tries, 3);
}

TEST_F(HealthWatchTest, TheOtherEndWritesALineAtAJitteredPaceUntilNobodyReads) {
  const Devices devices = read();
  const auto out = env.open_append("/out", 0600);
  ASSERT_TRUE(out);
  std::vector<Mono> moments;
  env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call != "write_all") return std::nullopt;
    moments.push_back(env.now());
    if (moments.size() > 20) return Error{ErrorKind::io, "broken pipe"};
    return std::nullopt;
  };
  EXPECT_FALSE(watch_health(env, {}, devices.topology, "/ledger", std::chrono::seconds(10), *out));
  ASSERT_EQ(moments.size(), 21U);
  std::set<Duration> pauses;
  for (std::size_t i = 1; i < moments.size(); ++i) pauses.insert(moments[i] - moments[i - 1]);
  EXPECT_GE(*pauses.begin(), std::chrono::milliseconds(7500));
  EXPECT_LE(*pauses.rbegin(), std::chrono::milliseconds(12500));
  EXPECT_GT(pauses.size(), 10U);
}

}  // namespace
}  // namespace berth::machine
