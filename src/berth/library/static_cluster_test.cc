// What a StaticCluster leases of machines with devices, and how an OwnWorker shares that out.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "berth/library/own_cluster.h"
#include "berth/testing/posix.h"

namespace berth {
namespace {

Resources amounts(std::initializer_list<std::pair<Known, std::int64_t>> of) {
  Resources resources;
  for (const auto& [known, amount] : of) resources.set(known, amount);
  return resources;
}

std::shared_ptr<const topology::Topology> topology_of(const char* name) {
  return std::make_shared<const topology::Topology>(*topology::known_machine(name));
}

std::set<std::string> uuids(const std::vector<DevicePart>& parts) {
  std::set<std::string> uuids;
  for (const DevicePart& part : parts) uuids.insert(part.uuid);
  return uuids;
}

/// Keeps what it starts; a test ends it.
struct Keeping : StaticCluster {
  using StaticCluster::StaticCluster;
  Status start(const Alloc&, const Attempt& attempt, Reporter reporter) override {
    attempts.push_back(attempt);
    reporters.push_back(std::move(reporter));
    if (attempts.size() % together == 0)
      for (const Reporter& each : reporters) each.ended({});
    return {};
  }
  void stop(const Alloc&, const Attempt& attempt, bool) override {
    for (std::size_t i = 0; i < attempts.size(); ++i)
      if (attempts[i].id == attempt.id) reporters[i].ended({.signal = SIGKILL});
  }
  std::vector<Attempt> attempts;
  std::vector<Reporter> reporters;
  std::size_t together = 1;
};

TEST(StaticClusterDevices, AreTheBestJoinedOfTheMachineThatFitsClosest) {
  const auto dgx1 = topology_of("dgx1-v100");
  Keeping lab(
      {{"plain", amounts({{Known::cpu, 64000}})}, {"dgx1", amounts({{Known::cpu, 40000}}), dgx1}});
  const auto pair = lab.allocate(
      {.requirements = {amounts({{Known::cpu, 1000}, {Known::gpu, 2}}), 1}, .labels = {}});
  ASSERT_TRUE(pair) << pair.error().message;
  EXPECT_EQ(pair->machine, "dgx1");
  EXPECT_EQ(pair->topology, dgx1);
  ASSERT_EQ(pair->devices.size(), 2U);
  const auto place = [&](std::size_t i) {
    const auto at =
        std::ranges::find(dgx1->devices, pair->devices[i].uuid, &topology::Device::uuid);
    return static_cast<std::size_t>(at - dgx1->devices.begin());
  };
  EXPECT_EQ(dgx1->link(place(0), place(1)).fabric, 2) << "no pair has more links";

  const auto six = lab.allocate({.requirements = {amounts({{Known::gpu, 3}}), 4}});
  ASSERT_TRUE(six) << six.error().message;
  EXPECT_EQ(six->devices.size(), 6U) << "twice three, of a width of four";
  EXPECT_EQ(lab.allocate({.requirements = {amounts({{Known::gpu, 1}}), 1}}).error().kind,
            ErrorKind::busy);
  EXPECT_EQ(lab.allocate({.requirements = {amounts({{Known::gpu, 9}}), 1}}).error().kind,
            ErrorKind::impossible);
  lab.free(*pair);
  lab.free(*six);
  const auto named = lab.allocate(
      {.requirements = {amounts({{Known::gpu, 1}}), 1}, .selection = {.required = {"5"}}});
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->devices.at(0).index, 5);
}

TEST(StaticClusterDevices, AreSharedByPartsAndCountedWithoutATopology) {
  Keeping lab({{"box", amounts({{Known::cpu, 8000}, {Known::gpu, 2}, {Known::gpu_mem, 80}})}});
  const auto part =
      lab.allocate({.requirements = {amounts({{Known::cpu, 1000}, {Known::gpu_mem, 30}}), 1}});
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(uuids(part->devices), std::set<std::string>{"0"});
  EXPECT_FALSE(part->devices[0].whole);
  const auto whole = lab.allocate({.requirements = {amounts({{Known::gpu, 1}}), 1}});
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(uuids(whole->devices), std::set<std::string>{"1"});
  EXPECT_TRUE(whole->devices[0].whole);

  auto bent = *topology_of("dgx1-v100");
  bent.links.pop_back();
  Keeping broken({{"b", {}, std::make_shared<const topology::Topology>(bent)}});
  EXPECT_EQ(broken.allocate({}).error().kind, ErrorKind::invalid);
  Keeping many({{"m", amounts({{Known::gpu, 65}})}});
  EXPECT_EQ(many.allocate({}).error().message, "m: expected at most 64 gpu, got 65");
}

class DevicesOfOwnClusterTest : public os::PosixTest {};

TEST_F(DevicesOfOwnClusterTest, EachTaskHasDevicesToItself) {
  auto runs = Runs::open({.state_directory = path("state"), .program = {}});
  ASSERT_TRUE(runs) << runs.error().message;
  const auto file = put("s.yaml",
                        "name: s\nrun: ./x {i}\nresources: {cpu: 1, gpu: 2}\n"
                        "params: {i: [1, 2, 3, 4, 5, 6, 7, 8]}\n");
  const auto name = runs->record_file(file, {.elsewhere = true});
  ASSERT_TRUE(name) << name.error().message;
  Keeping lab({{"dgx1", amounts({{Known::cpu, 8000}}), topology_of("dgx1-v100")}});
  lab.together = 4;
  const auto done = runs->drive(*name, {.cluster = &lab});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->state, "done");
  ASSERT_EQ(lab.attempts.size(), 8U);
  for (std::size_t lot = 0; lot < 8; lot += 4) {
    std::set<std::string> seen;
    for (std::size_t i = lot; i < lot + 4; ++i) {
      const auto own = uuids(lab.attempts[i].devices);
      EXPECT_EQ(own.size(), 2U);
      seen.insert(own.begin(), own.end());
      const std::map<std::string, std::string> environment(lab.attempts[i].environment.begin(),
                                                           lab.attempts[i].environment.end());
      EXPECT_EQ(environment.at("CUDA_VISIBLE_DEVICES"),
                lab.attempts[i].devices[0].uuid + "," + lab.attempts[i].devices[1].uuid);
    }
    EXPECT_EQ(seen.size(), 8U) << "no device is two tasks'";
  }
}

TEST_F(DevicesOfOwnClusterTest, DevicesThatTheTopologyLacksAreRefused) {
  struct Wrong : Keeping {
    using Keeping::Keeping;
    Result<Alloc> allocate(const Wish&) override {
      return Alloc{.id = "1",
                   .machine = "dgx1",
                   .resources = amounts({{Known::gpu, 1}}),
                   .devices = {{.uuid = "GPU-none"}},
                   .topology = topology_of("dgx1-v100")};
    }
  };
  Wrong lab(std::vector<ClusterMachine>{});
  const auto sources = library::own_sources(*env_, lab);
  const auto alloc = sources.main->cluster->allocate({});
  ASSERT_FALSE(alloc);
  EXPECT_EQ(alloc.error().message, "device GPU-none: its topology dgx1-v100 lacks it");
}

}  // namespace
}  // namespace berth
