#include "berth/placement/placement.h"

#include <gtest/gtest.h>

#include "berth/placement/subsets.h"
#include "berth/testing/placement.h"

namespace berth::placement {
namespace {

using testing::Machine;
using testing::set_of;

constexpr std::array kEveryPolicy{PolicyKind::packed,
                                  PolicyKind::best_effort,
                                  PolicyKind::simple,
                                  PolicyKind::static_dgx1_pascal,
                                  PolicyKind::static_dgx1_volta,
                                  PolicyKind::static_dgx2};

Question ask(DeviceSet available, int count, DeviceSet required = 0) {
  return {available, required, count, Objective::sum};
}

ErrorKind kind_of(const Result<Answer>& answer) {
  return answer ? ErrorKind::interrupted : answer.error().kind;
}

TEST(Placement, FourteenUniformDevicesGiveTheTwoRequired) {
  const Machine machine = testing::machine("uniform", 14, [](int, int) { return 600; });
  Chooser chooser = machine.chooser();
  const DeviceSet last = set_of({12, 13});
  for (const PolicyKind policy :
       {PolicyKind::packed, PolicyKind::best_effort, PolicyKind::simple, PolicyKind::static_dgx2}) {
    const auto answer = chooser.choose(policy, ask(first(14), 2, last));
    ASSERT_TRUE(answer) << name(policy) << ": " << answer.error().message;
    EXPECT_EQ(answer->devices, last) << name(policy);
  }
}

// Three devices on one PCIe switch and two joined by NVLinks: no set of three is alike, and the
// best partition's best set could be the pair with a blank.
TEST(Placement, ThreeOnASwitchAndTwoByNvlinkGiveThreeDevices) {
  Machine machine("pix and nvlink", 5);
  for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {1, 2}}) machine.join(a, b, 50);
  machine.join(3, 4, 200);
  Chooser chooser = machine.chooser();
  const auto answer = chooser.choose(PolicyKind::best_effort, ask(first(5), 3));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->devices, set_of({0, 1, 2}));
  EXPECT_EQ(answer->partition_score, 350);
  for (int objective = 0; objective < kObjectives; ++objective) {
    Question question = ask(first(5), 3);
    question.objective = static_cast<Objective>(objective);
    for (const PolicyKind policy : {PolicyKind::packed, PolicyKind::best_effort})
      EXPECT_EQ(size(chooser.choose(policy, question)->devices), 3);
  }
}

TEST(Placement, AsymmetricLinksAreAnErrorThatNamesThePair) {
  Machine machine = testing::islands(8, 4);
  machine.at(6, 3) = 200;
  const auto chooser = Chooser::make(machine.scores, machine.devices);
  ASSERT_FALSE(chooser);
  EXPECT_EQ(chooser.error().kind, ErrorKind::invalid);
  EXPECT_EQ(chooser.error().message, "GPU3-GPU6: 10 from one side, 200 from the other");
}

// The same links in any order make the same matrix; required devices in any order, twice over too,
// make the same set.
TEST(Placement, PermutedInputGivesTheSameAnswer) {
  const Machine machine = testing::dgx1_volta();
  Chooser chooser = machine.chooser();
  Rng rng(7);
  std::vector<std::pair<int, int>> pairs;
  for (int a = 0; a < 8; ++a)
    for (int b = a + 1; b < 8; ++b) pairs.push_back({a, b});
  for (int i = 0; i < 300; ++i) {
    for (std::size_t j = pairs.size() - 1; j > 0; --j) std::swap(pairs[j], pairs[rng.below(j + 1)]);
    Machine shuffled("shuffled", 8);
    for (const auto& [a, b] : pairs)
      rng.below(2) == 0 ? shuffled.join(a, b, machine.at(a, b))
                        : shuffled.join(b, a, machine.at(a, b));
    Chooser other = shuffled.chooser();
    const Question question = testing::random_question(rng, 8);
    std::vector<int> available = testing::list_of(question.available);
    std::ranges::reverse(available);
    available.push_back(available.front());
    Question permuted = question;
    permuted.available = set_of(available);
    for (const PolicyKind policy : kEveryPolicy) {
      const auto one = chooser.choose(policy, question), two = other.choose(policy, permuted);
      ASSERT_EQ(one.has_value(), two.has_value());
      if (one) {
        ASSERT_EQ(one->devices, two->devices) << name(policy);
      }
    }
  }
}

TEST(Placement, BestEffortOfOneIsTheFirstOrTheRequired) {
  Chooser chooser = testing::dgx1_volta().chooser();
  EXPECT_EQ(chooser.choose(PolicyKind::best_effort, ask(set_of({3, 5, 7}), 1))->devices,
            set_of({3}));
  EXPECT_EQ(
      chooser.choose(PolicyKind::best_effort, ask(set_of({3, 5, 7}), 1, set_of({7})))->devices,
      set_of({7}));
}

TEST(Placement, PackedKeepsIslandsWhole) {
  Chooser chooser = testing::islands(8, 4).chooser();
  // Three of the first island are taken already: a single job goes to its fourth device.
  EXPECT_EQ(chooser.choose(PolicyKind::packed, ask(set_of({3, 4, 5, 6, 7}), 1))->devices,
            set_of({3}));
  EXPECT_EQ(chooser.choose(PolicyKind::packed, ask(set_of({0, 1, 2, 3, 6}), 1))->devices,
            set_of({6}));
  EXPECT_EQ(chooser.choose(PolicyKind::packed, ask(set_of({0, 1, 2, 3, 6, 7}), 2))->devices,
            set_of({6, 7}));
  EXPECT_EQ(chooser.choose(PolicyKind::packed, ask(set_of({1, 2, 3, 4, 5, 6, 7}), 4))->devices,
            set_of({4, 5, 6, 7}));
}

TEST(Placement, SimpleTakesTheLowestIndices) {
  Chooser chooser = testing::dgx1_volta().chooser();
  EXPECT_EQ(chooser.choose(PolicyKind::simple, ask(set_of({1, 3, 4, 7}), 3))->devices,
            set_of({1, 3, 4}));
  EXPECT_EQ(chooser.choose(PolicyKind::simple, ask(set_of({1, 3, 4, 7}), 3, set_of({7})))->devices,
            set_of({1, 3, 7}));
}

TEST(Placement, StaticPoliciesTakeTheFirstWholeGroup) {
  struct Case {
    PolicyKind policy;
    DeviceSet available;
    int count;
    DeviceSet required, chosen;
  };
  const DeviceSet all = first(16);
  const std::vector<Case> cases{
      {PolicyKind::static_dgx1_pascal, all, 1, 0, set_of({0})},
      {PolicyKind::static_dgx1_pascal, all, 2, 0, set_of({0, 2})},
      {PolicyKind::static_dgx1_pascal, set_of({0, 1, 3, 4}), 2, 0, set_of({1, 3})},
      {PolicyKind::static_dgx1_pascal, all, 2, set_of({6}), set_of({4, 6})},
      {PolicyKind::static_dgx1_pascal, all, 2, set_of({5, 7}), set_of({5, 7})},
      {PolicyKind::static_dgx1_volta, all, 2, 0, set_of({0, 3})},
      {PolicyKind::static_dgx1_volta, set_of({0, 1, 2}), 2, 0, set_of({1, 2})},
      {PolicyKind::static_dgx1_volta, all, 2, set_of({7}), set_of({4, 7})},
      {PolicyKind::static_dgx1_volta, all, 2, set_of({5}), set_of({5, 6})},
      {PolicyKind::static_dgx1_volta, set_of({1, 4, 5, 6, 7}), 4, 0, set_of({4, 5, 6, 7})},
      {PolicyKind::static_dgx1_volta, all, 8, 0, first(8)},
      {PolicyKind::static_dgx2, set_of({1, 2, 3, 4}), 2, 0, set_of({2, 3})},
      {PolicyKind::static_dgx2, all, 4, set_of({9}), set_of({8, 9, 10, 11})},
      {PolicyKind::static_dgx2, all ^ 1, 8, 0, all ^ first(8)},
      {PolicyKind::static_dgx2, all, 16, 0, all}};
  Chooser chooser = testing::islands(16, 8).chooser();
  for (const auto& [policy, available, count, required, chosen] : cases) {
    const auto answer = chooser.choose(policy, ask(available, count, required));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->devices, chosen) << name(policy) << " " << text(answer->devices);
  }
}

TEST(Placement, ErrorsSayWhatIsWrong) {
  struct Case {
    PolicyKind policy;
    Question question;
    ErrorKind kind;
    std::string message;
  };
  const DeviceSet all = first(8);
  const std::vector<Case> cases{
      {PolicyKind::packed, ask(all, 0), ErrorKind::invalid, "expected at least 1 device, got 0"},
      {PolicyKind::packed, ask(all, 9), ErrorKind::impossible,
       "9 devices requested, the machine has 8"},
      {PolicyKind::packed, ask(set_of({1, 5}), 3), ErrorKind::busy,
       "3 devices requested, 2 available: {1,5}"},
      {PolicyKind::packed, ask(set_of({1, 9}), 1), ErrorKind::invalid,
       "available {9}: the machine has 8 devices, from 0"},
      {PolicyKind::packed, ask(all, 1, set_of({63})), ErrorKind::invalid,
       "required {63}: the machine has 8 devices, from 0"},
      {PolicyKind::packed, ask(set_of({1, 2}), 1, set_of({3})), ErrorKind::invalid,
       "required {3} not among the available {1,2}"},
      {PolicyKind::packed, ask(all, 1, set_of({3, 4})), ErrorKind::invalid,
       "1 devices requested, {3,4} required"},
      {PolicyKind::static_dgx1_volta, ask(all, 3), ErrorKind::invalid,
       "static-dgx1-volta gives 1, 2, 4, 8 devices, not 3"},
      {PolicyKind::static_dgx1_volta, ask(set_of({0, 1, 4}), 2), ErrorKind::busy,
       "static-dgx1-volta has no group of 2 that is wholly available in {0,1,4}"},
      {PolicyKind::static_dgx1_volta, ask(all, 2, set_of({0, 1})), ErrorKind::impossible,
       "static-dgx1-volta has no group of 2 with {0,1} on this machine"}};
  Chooser chooser = testing::dgx1_volta().chooser();
  for (const auto& [policy, question, kind, message] : cases) {
    const auto answer = chooser.choose(policy, question);
    ASSERT_FALSE(answer) << message;
    EXPECT_EQ(answer.error().kind, kind) << message;
    EXPECT_EQ(answer.error().message, message);
    EXPECT_FALSE(message.find("group") == std::string::npos && policy == PolicyKind::packed &&
                 chooser.best_alternative(question, {}).has_value());
  }
}

TEST(Placement, MatricesAreChecked) {
  const auto message = [](const std::vector<std::int32_t>& scores, int devices) {
    const auto chooser = Chooser::make(scores, devices);
    return chooser ? "made" : chooser.error().message;
  };
  EXPECT_EQ(message({}, 0), "made");
  EXPECT_EQ(message({-5}, 1), "made") << "the diagonal is not read";
  EXPECT_EQ(message({0, 1'000'000, 1'000'000, 0}, 2), "made");
  EXPECT_EQ(message({0, -1, -1, 0}, 2), "GPU0-GPU1: score -1, expected 0 to 1000000");
  EXPECT_EQ(message({0, 1'000'001, 1'000'001, 0}, 2),
            "GPU0-GPU1: score 1000001, expected 0 to 1000000");
  EXPECT_EQ(message({0, 1, 1}, 2), "3 scores, 2 devices have 4");
  EXPECT_EQ(message({}, -1), "-1 devices, at most 64 can be placed");
  EXPECT_EQ(message({}, 65), "65 devices, at most 64 can be placed");
}

// The greatest scores there can be do not run over in the tables.
TEST(Placement, GreatestScoresKeepTheirValue) {
  const Machine machine = testing::machine("greatest", 16, [](int, int) { return 1'000'000; });
  Chooser chooser = machine.chooser();
  for (int objective = 0; objective < kObjectives; ++objective) {
    const auto kind = static_cast<Objective>(objective);
    const Value all = chooser.value(first(16), kind);
    EXPECT_EQ(all.second, 120'000'000);
    EXPECT_EQ(all.first, kind == Objective::sum ? 120'000'000 : 1'000'000);
    const auto answer = chooser.choose(PolicyKind::best_effort, {first(16), 0, 5, kind});
    EXPECT_EQ(answer->partition_score, kind == Objective::sum ? 30'000'000 : 3'000'000);
  }
}

class Fixed final : public Policy {
 public:
  explicit Fixed(DeviceSet set) : set_(set) {}
  DeviceSet choose(std::span<const std::int32_t> scores, int devices, const Question&) override {
    seen = scores[0] == 0 && scores.size() == static_cast<std::size_t>(devices * devices);
    return set_;
  }
  bool seen = false;

 private:
  DeviceSet set_;
};

TEST(Placement, ThePolicyOfTheCallersOwnIsChecked) {
  Chooser chooser = testing::dgx1_volta().chooser();
  const Question question = ask(set_of({0, 3, 4, 7}), 2, set_of({4}));
  Fixed good(set_of({3, 4}));
  const auto answer = chooser.choose(good, question);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(good.seen);
  EXPECT_EQ(answer->devices, set_of({3, 4}));
  EXPECT_EQ(answer->value.first, 10);
  const auto complaint = [&](DeviceSet set) {
    Fixed bad(set);
    const auto refused = chooser.choose(bad, question);
    EXPECT_EQ(kind_of(refused), ErrorKind::invalid);
    return refused ? "" : refused.error().message;
  };
  EXPECT_EQ(complaint(set_of({1, 4})), "the policy chose {1,4}: {1} not available");
  EXPECT_EQ(complaint(set_of({3, 4, 7})), "the policy chose {3,4,7}: 3 devices, 2 requested");
  EXPECT_EQ(complaint(set_of({3, 7})), "the policy chose {3,7}: without the required {4}");
  EXPECT_EQ(complaint(0), "the policy chose {}: 0 devices, 2 requested");
  EXPECT_EQ(complaint(set_of({4, 63})), "the policy chose {4,63}: {63} not available");
}

TEST(Placement, APolicyThatThrowsIsAnError) {
  struct Thrower final : Policy {
    DeviceSet choose(std::span<const std::int32_t>, int, const Question&) override {
      throw std::runtime_error("no idea");
    }
  } thrower;
  const auto answer = testing::dgx1_volta().chooser().choose(thrower, ask(first(8), 2));
  EXPECT_EQ(kind_of(answer), ErrorKind::invalid);
  EXPECT_EQ(answer.error().message, "the policy threw: no idea");
}

TEST(Placement, BestAndAlternative) {
  Chooser chooser = testing::dgx1_volta().chooser();
  const auto pair = chooser.best(first(8), 2, Objective::sum);
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->value.first, 250);
  EXPECT_FALSE(chooser.best(set_of({1}), 2, Objective::sum));
  EXPECT_FALSE(chooser.best(set_of({1}), 0, Objective::sum));
  EXPECT_FALSE(chooser.best(set_of({40}), 1, Objective::sum));
  const auto whole = chooser.choose(PolicyKind::packed, ask(first(8), 8));
  EXPECT_FALSE(chooser.best_alternative(ask(first(8), 8), *whole));
  const auto four = chooser.choose(PolicyKind::packed, ask(first(8), 4));
  const auto other = chooser.best_alternative(ask(first(8), 4), *four);
  ASSERT_TRUE(other);
  EXPECT_NE(other->devices, four->devices);
  EXPECT_EQ(other->devices, first(8) ^ four->devices);
}

TEST(Placement, NamesAreThoseOfTheCommandLine) {
  EXPECT_EQ(kPolicyNames.all().size(), kPolicies);
  EXPECT_EQ(kObjectiveNames.all().size(), kObjectives);
  EXPECT_EQ(name(PolicyKind::best_effort), "best-effort");
  EXPECT_EQ(kPolicyNames.value("bestEffort"), std::nullopt);
}

}  // namespace
}  // namespace berth::placement
