// Above kExactDevices: every answer is a good one with a bound that no set exceeds.
#include <gtest/gtest.h>

#include "berth/placement/anytime.h"
#include "berth/placement/ring.h"
#include "berth/testing/placement.h"

namespace berth::placement {
namespace {

using testing::Brute;
using testing::Machine;

void expect_well_formed(const Answer& answer, const Question& question) {
  ASSERT_EQ(size(answer.devices), question.count);
  ASSERT_EQ(answer.devices & ~question.available, 0U);
  ASSERT_EQ(question.required & ~answer.devices, 0U);
  ASSERT_GE(answer.bound, answer.value.first);
  ASSERT_GE(answer.partition_bound.value_or(0), answer.partition_score.value_or(0));
}

TEST(PlacementAnytime, BoundIsNeverBelowTheBestOfSeventeenToTwenty) {
  Rng rng(21);
  int exact = 0, asked = 0, best_found = 0;
  for (int i = 0; i < 120; ++i) {
    const int devices = 17 + static_cast<int>(rng.below(4));
    const Machine machine = testing::random_machine(rng, devices);
    // Few iterations at times, so that some proofs are cut short.
    Chooser chooser = *Chooser::make(machine.scores, devices, i % 3 == 0 ? 200 : 200'000);
    Brute brute(machine);
    for (int objective = 0; objective < kObjectives; ++objective) {
      Question question{first(devices), 0, 1 + static_cast<int>(rng.below(5)),
                        static_cast<Objective>(objective)};
      if (rng.below(2) == 0) question.required = testing::random_subset(rng, question.available, 1);
      Value best{-1, -1};
      Brute::each_set(question, [&](DeviceSet set) {
        best = std::max(best, brute.value(set, question.objective));
      });
      const auto answer = chooser.choose(PolicyKind::packed, question);
      ASSERT_TRUE(answer);
      expect_well_formed(*answer, question);
      ASSERT_EQ(answer->value, brute.value(answer->devices, question.objective));
      ASSERT_GE(answer->bound, best.first) << machine.name << " " << i;
      if (answer->exact) {
        ASSERT_EQ(answer->value, best) << machine.name << " " << i;
        ASSERT_EQ(answer->bound, answer->value.first);
      }
      ++asked;
      exact += answer->exact;
      best_found += answer->value == best;
      const auto partition = chooser.choose(PolicyKind::best_effort, question);
      ASSERT_TRUE(partition);
      expect_well_formed(*partition, question);
      ASSERT_GE(partition->bound, best.first) << machine.name << " " << i;
    }
  }
  EXPECT_GE(exact, asked * 2 / 3);
  EXPECT_LT(exact, asked) << "no proof was ever cut short: give fewer iterations";
  EXPECT_GE(best_found, asked * 98 / 100);
}

// By all partitions of seventeen devices into pairs and a blank: 34,459,425 are too many, a
// programme over subsets is not.
TEST(PlacementAnytime, PartitionBoundIsNeverBelowTheBestPartition) {
  Rng rng(22);
  int best_found = 0, asked = 0;
  for (int i = 0; i < 4; ++i) {
    const Machine machine = testing::random_machine(rng, 17);
    Chooser chooser = machine.chooser();
    Brute brute(machine);
    for (const int count : {2, 9}) {
      const Question question{first(17), i % 2 == 0 ? 0 : DeviceSet{8}, count,
                              static_cast<Objective>(i % 2)};
      const auto answer = chooser.choose(PolicyKind::best_effort, question);
      ASSERT_TRUE(answer);
      expect_well_formed(*answer, question);
      const std::int64_t best = brute.best_partition(question).total.first;
      ASSERT_LE(*answer->partition_score, best);
      ASSERT_GE(*answer->partition_bound, best);
      ASSERT_GE(*answer->partition_score, best * 9 / 10);
      if (answer->exact) {
        ASSERT_EQ(*answer->partition_score, best);
      }
      ++asked;
      best_found += *answer->partition_score == best;
    }
  }
  EXPECT_GE(best_found, asked / 2);
}

TEST(PlacementAnytime, SixtyFourDevicesInIslandsAreProvenAtOnce) {
  Chooser chooser = testing::islands(64, 8).chooser();
  for (int objective = 0; objective < kObjectives; ++objective) {
    const auto kind = static_cast<Objective>(objective);
    const auto answer =
        chooser.choose(PolicyKind::packed, {~DeviceSet{0}, DeviceSet{1} << 43, 8, kind});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->devices, DeviceSet{0xff} << 40);
    EXPECT_TRUE(answer->exact);
    EXPECT_EQ(answer->bound, answer->value.first);
    const auto parts = chooser.choose(PolicyKind::best_effort, {~DeviceSet{0}, 0, 8, kind});
    EXPECT_EQ(parts->devices, 0xffU);
    EXPECT_EQ(parts->partition_score, kind == Objective::sum ? 8 * 28 * 300 : 8 * 300);
    EXPECT_TRUE(parts->exact);
  }
}

// Seven partitions a card, two of the first card taken: a single one goes there.
TEST(PlacementAnytime, OneOfManyPartitionsGoesToTheCardThatIsBrokenAlready) {
  Chooser chooser = testing::islands(56, 7).chooser();
  const Question question{first(56) & ~DeviceSet{0b11 << 21}, 0, 1, Objective::sum};
  EXPECT_EQ(chooser.choose(PolicyKind::packed, question)->devices, DeviceSet{1} << 23);
}

TEST(PlacementAnytime, FewAvailableOfALargeMachineAreExact) {
  Rng rng(23);
  for (int i = 0; i < 20; ++i) {
    const Machine machine = testing::random_machine(rng, 40);
    Chooser chooser = machine.chooser();
    Question question{testing::random_subset(rng, first(40), 9), 0,
                      1 + static_cast<int>(rng.below(9)),
                      static_cast<Objective>(rng.below(kObjectives))};
    question.required = testing::random_subset(rng, question.available, 1);
    std::vector<int> members = testing::list_of(question.available);
    Machine small("its available ones", 9);
    for (int a = 0; a < 9; ++a)
      for (int b = 0; b < 9; ++b)
        if (a != b)
          small.join(a, b,
                     machine.at(members[static_cast<std::size_t>(a)],
                                members[static_cast<std::size_t>(b)]));
    Question inner = question;
    inner.available = first(9);
    inner.required = one(static_cast<int>(
        std::ranges::find(members, lowest_index(question.required)) - members.begin()));
    Brute brute(small);
    const auto outside = [&](DeviceSet set) {
      DeviceSet devices = 0;
      for (const int device : testing::list_of(set))
        devices |= one(members[static_cast<std::size_t>(device)]);
      return devices;
    };
    const auto packed = chooser.choose(PolicyKind::packed, question);
    EXPECT_EQ(packed->devices, outside(brute.packed(inner)));
    EXPECT_TRUE(packed->exact);
    const auto parts = chooser.choose(PolicyKind::best_effort, question);
    EXPECT_EQ(parts->devices, outside(brute.all_partitions(inner).devices));
    const auto other = chooser.best_alternative(question, *packed);
    EXPECT_EQ(other ? other->devices : 0, outside(brute.packed(inner, brute.packed(inner))));
  }
}

TEST(PlacementAnytime, TheSameQuestionHasTheSameAnswer) {
  Rng rng(24);
  const Machine machine = testing::random_machine(rng, 33);
  for (int i = 0; i < 12; ++i) {
    const Question question = testing::random_question(rng, 33);
    Chooser one_chooser = machine.chooser(), other = machine.chooser();
    static_cast<void>(other.choose(PolicyKind::packed, {first(20), 0, 3, Objective::sum}));
    for (const PolicyKind policy : {PolicyKind::packed, PolicyKind::best_effort})
      EXPECT_EQ(one_chooser.choose(policy, question)->devices,
                other.choose(policy, question)->devices);
  }
}

TEST(PlacementAnytime, OneIterationStillAnswers) {
  Rng rng(25);
  for (int i = 0; i < 20; ++i) {
    const Machine machine = testing::random_machine(rng, 24);
    Chooser chooser = *Chooser::make(machine.scores, 24, 1);
    const Question question = testing::random_question(rng, 24);
    const auto answer = chooser.choose(PolicyKind::packed, question);
    ASSERT_TRUE(answer);
    expect_well_formed(*answer, question);
    const auto other = chooser.best_alternative(question, *answer);
    EXPECT_EQ(other.has_value(), size(question.required) < question.count &&
                                     question.count < size(question.available));
    if (other) {
      EXPECT_NE(other->devices, answer->devices);
    }
    expect_well_formed(*chooser.choose(PolicyKind::best_effort, question), question);
  }
  EXPECT_FALSE(Chooser::make(testing::islands(24, 8).scores, 24, 0));
}

TEST(PlacementAnytime, QuickRingsExistAndAreOftenTheBest) {
  Rng rng(26);
  int best = 0;
  constexpr int kMachines = 60;
  for (int i = 0; i < kMachines; ++i) {
    const Machine machine = testing::random_machine(rng, 13);
    const Scores scores = *Scores::make(machine.scores, 13);
    const std::int32_t exact = ring_of(scores, first(13)), quick = quick_ring_of(scores, first(13));
    EXPECT_LE(quick, exact);
    best += quick == exact;
  }
  EXPECT_GE(best, kMachines * 9 / 10);
  const Scores ring =
      *Scores::make(testing::machine("a ring of 40", 40,
                                     [](int a, int b) { return b - a == 1 || b - a == 39 ? 9 : 1; })
                        .scores,
                    40);
  EXPECT_EQ(quick_ring_of(ring, first(40)), 9);
}

}  // namespace
}  // namespace berth::placement
