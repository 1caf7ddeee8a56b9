// From what the vendors' tools print, or from the catalogue, to the devices that are chosen.
#include <gtest/gtest.h>

#include "berth/placement/subsets.h"
#include "berth/testing/placement.h"

namespace berth::placement {
namespace {

using testing::list_of;
using testing::Machine;
using testing::set_of;

/// A matrix whose pairs are `other`, but for some of them.
struct Pair {
  int a, b;
  std::string cell;
};
std::string printed(int devices, const std::string& other, const std::vector<Pair>& pairs) {
  std::string text;
  for (int a = 0; a < devices; ++a) text += fmt::format(" GPU{}", a);
  for (int a = 0; a < devices; ++a) {
    text += fmt::format("\nGPU{}", a);
    for (int b = 0; b < devices; ++b) {
      const auto told =
          std::ranges::find_if(pairs, [&](const Pair& pair) { return pair.a == a && pair.b == b; });
      text += ' ' + (a == b ? "X" : told == pairs.end() ? other : told->cell);
    }
  }
  return text + '\n';
}

Machine read(const std::string& text) {
  return testing::machine_of(topology::read(text, "printed").value());
}

TEST(PlacementKnown, FourteenUniformDevicesGiveTheTwoRequired) {
  Chooser chooser = read(printed(14, "NV6", {})).chooser();
  const DeviceSet last = set_of({12, 13});
  for (int objective = 0; objective < kObjectives; ++objective)
    for (const PolicyKind policy :
         {PolicyKind::packed, PolicyKind::best_effort, PolicyKind::simple}) {
      const auto answer =
          chooser.choose(policy, {first(14), last, 2, static_cast<Objective>(objective)});
      ASSERT_TRUE(answer) << answer.error().message;
      EXPECT_EQ(answer->devices, last) << name(policy);
      EXPECT_EQ(answer->value.second, 600);
    }
}

TEST(PlacementKnown, ThreeByPixAndTwoByNvlinkGiveThreeDevices) {
  std::vector<Pair> pairs;
  for (const auto& [a, b, cell] : {Pair{0, 1, "PIX"}, {0, 2, "PIX"}, {1, 2, "PIX"}, {3, 4, "NV2"}})
    pairs.insert(pairs.end(), {{a, b, cell}, {b, a, cell}});
  for (const std::string other : {"SYS", "N/A"}) {
    Chooser chooser = read(printed(5, other, pairs)).chooser();
    const auto answer = chooser.choose(PolicyKind::best_effort, {first(5), 0, 3, Objective::sum});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(list_of(answer->devices), (std::vector{0, 1, 2}));
    EXPECT_EQ(answer->partition_score, 3 * 50 + 200);
  }
}

TEST(PlacementKnown, AsymmetricLinksAreAnErrorThatNamesThePair) {
  const auto topology = topology::read(printed(8, "SYS", {{6, 3, "NV2"}}), "printed");
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error(), (Error{ErrorKind::invalid,
                                     "printed: GPU3-GPU6: SYS from one side, NV2 from the other"}));
}

/// The rows, columns and devices of a file in another order.
TEST(PlacementKnown, PermutedInputGivesTheSameAnswer) {
  const topology::Topology known = topology::known_machine("dgx1-v100").value();
  const Machine machine = testing::machine_of(known);
  Chooser chooser = machine.chooser();
  Rng rng(71);
  std::vector<std::size_t> order{0, 1, 2, 3, 4, 5, 6, 7};
  for (int i = 0; i < 50; ++i) {
    for (std::size_t j = order.size() - 1; j > 0; --j) std::swap(order[j], order[rng.below(j + 1)]);
    topology::Topology permuted = known;
    for (std::size_t a = 0; a < order.size(); ++a) {
      permuted.devices[a] = known.devices[order[a]];
      for (std::size_t b = 0; b < order.size(); ++b)
        permuted.link(a, b) = known.link(order[a], order[b]);
    }
    for (const std::string& text : {write_json(permuted), matrix_text(permuted)}) {
      const Machine other = read(text);
      ASSERT_EQ(other.scores, machine.scores);
      Chooser other_chooser = other.chooser();
      const Question question = testing::random_question(rng, 8);
      for (int policy = 0; policy < kPolicies; ++policy) {
        const auto one = chooser.choose(static_cast<PolicyKind>(policy), question);
        const auto two = other_chooser.choose(static_cast<PolicyKind>(policy), question);
        ASSERT_EQ(one ? one->devices : 0, two ? two->devices : 0);
      }
    }
  }
}

/// Through a switch each pair has all the links of a GPU; a printed matrix shows these alone.
TEST(PlacementKnown, BehindAnNvswitchEveryPairScoresItsNvlinks) {
  struct Case {
    std::string name;
    int links;
  };
  for (const auto& [name, links] : {Case{"dgx2-v100", 6},
                                    {"dgx-a100", 12},
                                    {"dgx-h100", 18},
                                    {"hgx-h200", 18},
                                    {"hgx-b200", 18}}) {
    const Machine machine = testing::known(name);
    for (int a = 0; a < machine.devices; ++a)
      for (int b = 0; b < a; ++b) EXPECT_GT(machine.at(a, b), 100 * links) << name;
    Chooser printed_chooser = read(printed(8, fmt::format("NV{}", links), {})).chooser();
    EXPECT_EQ(printed_chooser.value(first(8), Objective::sum).first, 28 * 100 * links);
    Chooser chooser = machine.chooser();
    for (const PolicyKind policy : {PolicyKind::packed, PolicyKind::best_effort})
      for (int count = 2; count <= machine.devices; ++count) {
        const auto answer =
            chooser.choose(policy, {first(machine.devices), 0, count, Objective::min});
        EXPECT_GT(answer->value.first, 100 * links) << name;
      }
  }
}

/// NVLinks and PCIe level both counted; of the catalogue and of a matrix written for these tests.
TEST(PlacementKnown, AnswersOfBestEffortOnDgx1Volta) {
  struct Case {
    std::vector<int> available, required;
    int count;
    std::vector<int> chosen;
  };
  const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<Case> cases{{{0, 2, 4, 5}, {}, 2, {4, 5}},
                                {{0, 4, 5, 6}, {}, 2, {5, 6}},
                                {{0, 1, 3}, {}, 2, {0, 3}},
                                {{0, 1, 4}, {}, 2, {0, 4}},
                                {all, {4}, 1, {4}},
                                {all, {4}, 2, {4, 7}},
                                {all, {4}, 4, {4, 5, 6, 7}},
                                {all, {0, 2, 4, 6}, 4, {0, 2, 4, 6}}};
  const Machine known = testing::known("dgx1-v100");
  EXPECT_EQ(known.scores, testing::dgx1_volta().scores);
  Chooser chooser = known.chooser();
  for (const auto& [available, required, count, chosen] : cases) {
    const auto answer = chooser.choose(
        PolicyKind::best_effort, {set_of(available), set_of(required), count, Objective::sum});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(list_of(answer->devices), chosen);
  }
}

/// No card alone where a pair can stay whole.
TEST(PlacementKnown, PackedLeavesPairsOfBridgedCardsWhole) {
  Chooser chooser = testing::known("4xrtx3090-nvlink-pairs").chooser();
  const auto packed = [&](DeviceSet available, int count) {
    return list_of(
        chooser.choose(PolicyKind::packed, {available, 0, count, Objective::sum})->devices);
  };
  EXPECT_EQ(packed(first(4), 2), (std::vector{0, 2}));
  EXPECT_EQ(packed(set_of({0, 1, 2}), 1), std::vector{1});
  EXPECT_EQ(packed(set_of({0, 1, 3}), 1), std::vector{0});
  EXPECT_EQ(packed(set_of({0, 1, 3}), 2), (std::vector{1, 3}));
}

}  // namespace
}  // namespace berth::placement
