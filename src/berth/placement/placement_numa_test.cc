// Ties of the policy packed go to devices on one NUMA node.
#include <gtest/gtest.h>

#include <map>

#include "berth/placement/subsets.h"
#include "berth/testing/placement.h"

namespace berth::placement {
namespace {

using testing::list_of;
using testing::Machine;
using testing::set_of;
using Nodes = std::vector<int>;

Machine uniform(int devices) {
  return testing::machine("uniform", devices, [](int, int) { return 70; });
}

/// Node i / devices_of_one of device i.
Nodes nodes_of(int devices, int devices_of_one) {
  Nodes nodes;
  for (int device = 0; device < devices; ++device) nodes.push_back(device / devices_of_one);
  return nodes;
}

Chooser chooser_of(const Machine& machine, const Nodes& nodes) {
  return *Chooser::make(machine.scores, machine.devices, kIterations, nodes);
}

int local_pairs(DeviceSet set, const Nodes& nodes) {
  int pairs = 0;
  const auto devices = list_of(set);
  for (std::size_t a = 0; a < devices.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const int node = nodes[static_cast<std::size_t>(devices[a])];
      if (node >= 0 && node == nodes[static_cast<std::size_t>(devices[b])]) ++pairs;
    }
  return pairs;
}

TEST(PlacementNuma, EqualSetsGoToOneNode) {
  Chooser chooser = chooser_of(uniform(8), nodes_of(8, 4));
  for (const Objective objective : {Objective::sum, Objective::min, Objective::ring}) {
    const auto chosen = [&](const std::vector<int>& available, int count, DeviceSet required = 0) {
      const auto answer =
          chooser.choose(PolicyKind::packed, {set_of(available), required, count, objective});
      return answer ? list_of(answer->devices) : std::vector<int>{};
    };
    EXPECT_EQ(chosen({3, 4, 5}, 2), (std::vector{4, 5}));
    EXPECT_EQ(chosen({1, 4, 6, 7}, 2), (std::vector{4, 6}));
    EXPECT_EQ(chosen({1, 2, 4, 5, 6, 7}, 4), (std::vector{4, 5, 6, 7}));
    EXPECT_EQ(chosen({0, 1, 2, 3, 5, 6}, 5), (std::vector{0, 1, 2, 3, 5}));
    EXPECT_EQ(chosen({0, 1, 5, 6}, 2, one(5)), (std::vector{5, 6}));
  }
}

TEST(PlacementNuma, ABetterSetAcrossNodesStillWins) {
  Machine machine = uniform(8);
  machine.join(3, 4, 80);
  const auto answer =
      chooser_of(machine, nodes_of(8, 4)).choose(PolicyKind::packed, {first(8), 0, 2});
  EXPECT_EQ(list_of(answer->devices), (std::vector{3, 4}));
}

TEST(PlacementNuma, OtherPoliciesAndUnknownNodesAnswerAsWithoutNodes) {
  Rng rng(3);
  const std::vector<Nodes> none{Nodes(8, -1), Nodes(8, 0), Nodes{0, 1, 2, 3, 4, 5, 6, 7}};
  for (int i = 0; i < 60; ++i) {
    const Machine machine = i % 3 == 0 ? uniform(8) : testing::random_machine(rng, 8);
    Chooser plain = machine.chooser(), with = chooser_of(machine, nodes_of(8, 4));
    Chooser without = chooser_of(machine, none[static_cast<std::size_t>(i) % none.size()]);
    const Question question = testing::random_question(rng, 8);
    for (const PolicyKind policy : {PolicyKind::best_effort, PolicyKind::simple})
      EXPECT_EQ(with.choose(policy, question)->devices, plain.choose(policy, question)->devices);
    for (const PolicyKind policy :
         {PolicyKind::static_dgx1_volta, PolicyKind::static_dgx1_pascal}) {
      const auto one = with.choose(policy, question), other = plain.choose(policy, question);
      ASSERT_EQ(one.has_value(), other.has_value());
      if (one) {
        EXPECT_EQ(one->devices, other->devices);
      }
    }
    EXPECT_EQ(without.choose(PolicyKind::packed, question)->devices,
              plain.choose(PolicyKind::packed, question)->devices);
  }
}

TEST(PlacementNuma, EverySubsetHasTheBestValueThenTheMostPairsOnOneNode) {
  Rng rng(8);
  for (int round = 0; round < 30; ++round) {
    const int devices = 2 + static_cast<int>(rng.below(6));
    const Machine machine =
        round % 2 == 0 ? uniform(devices) : testing::random_machine(rng, devices);
    Nodes nodes;
    for (int i = 0; i < devices; ++i) nodes.push_back(static_cast<int>(rng.below(4)) - 1);
    Chooser chooser = chooser_of(machine, nodes);
    const auto objective = static_cast<Objective>(round % kObjectives);
    for (DeviceSet available = 1; available <= first(devices); ++available)
      for (int count = 1; count <= size(available); ++count) {
        std::pair<Value, int> best{{-1, -1}, 0};
        each_subset(available, size(available), count, 0, [&](DeviceSet set) {
          best = std::max(best, {chooser.value(set, objective), local_pairs(set, nodes)});
          return true;
        });
        const auto answer = chooser.choose(PolicyKind::packed, {available, 0, count, objective});
        ASSERT_EQ(answer->value, best.first);
        ASSERT_EQ(local_pairs(answer->devices, nodes), best.second);
      }
  }
}

TEST(PlacementNuma, RenumberedDevicesGiveSetsThatAreAsClose) {
  Rng rng(12);
  for (int turn = 1; turn < 8; ++turn) {
    const Machine machine = uniform(8);
    const Nodes nodes{0, 0, 0, 1, 1, 1, 1, -1};
    Nodes turned_nodes(8);
    for (std::size_t i = 0; i < 8; ++i)
      turned_nodes[(i + static_cast<std::size_t>(turn)) % 8] = nodes[i];
    Chooser one = chooser_of(machine, nodes);
    Chooser other = chooser_of(testing::turned(machine, turn), turned_nodes);
    for (int i = 0; i < 40; ++i) {
      Question question = testing::random_question(rng, 8);
      const DeviceSet set = one.choose(PolicyKind::packed, question)->devices;
      question.available = testing::turned(question.available, turn, 8);
      question.required = testing::turned(question.required, turn, 8);
      const DeviceSet turned = other.choose(PolicyKind::packed, question)->devices;
      EXPECT_EQ(local_pairs(set, nodes), local_pairs(turned, turned_nodes));
    }
  }
}

TEST(PlacementNuma, MoreThanSixteenDevicesGoToOneNodeToo) {
  const Nodes nodes = nodes_of(32, 8);
  Chooser chooser = chooser_of(uniform(32), nodes);
  Rng rng(4);
  for (int i = 0; i < 20; ++i) {
    const DeviceSet available = testing::random_subset(rng, first(32), 20);
    std::map<int, int> free;
    for (const int device : list_of(available)) ++free[device / 8];
    int most = 0;
    for (const auto& [node, count] : free) most = std::max(most, count);
    const auto answer = chooser.choose(PolicyKind::packed, {available, 0, most});
    EXPECT_EQ(local_pairs(answer->devices, nodes), most * (most - 1) / 2) << text(available);
  }
}

TEST(PlacementNuma, NodesOfATopologyCount) {
  std::string printed = "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n";
  for (int a = 0; a < 4; ++a) {
    printed += fmt::format("GPU{}", a);
    for (int b = 0; b < 4; ++b) printed += a == b ? "\tX" : "\tNV4";
    printed += fmt::format("\t0-7\t{}\n", a % 2);
  }
  auto chooser = Chooser::make(topology::read(printed, "printed").value());
  const auto answer = chooser->choose(PolicyKind::packed, {first(4), 0, 2});
  EXPECT_EQ(list_of(answer->devices), (std::vector{0, 2}));
  EXPECT_FALSE(Chooser::make(uniform(4).scores, 4, kIterations, Nodes{0, 0}));
}

}  // namespace
}  // namespace berth::placement
