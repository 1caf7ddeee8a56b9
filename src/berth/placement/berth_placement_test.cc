#include "berth/placement/berth_placement.h"

#include <gtest/gtest.h>

#include <array>

#include "berth/testing/placement.h"

namespace berth::placement {
namespace {

/// A machine behind the C interface, as a program in C holds it.
struct Handle {
  berth_placement* machine = nullptr;
  std::array<char, 200> message{};

  explicit Handle(const testing::Machine& made) {
    EXPECT_EQ(berth_placement_create(made.scores.data(), made.devices, &machine, message.data(),
                                     message.size()),
              BERTH_PLACEMENT_OK);
  }
  ~Handle() { berth_placement_destroy(machine); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  int choose(std::int32_t policy, const berth_placement_question& question,
             berth_placement_answer& answer) {
    return berth_placement_choose(machine, policy, &question, &answer, message.data(),
                                  message.size());
  }
};

TEST(PlacementInC, CodesOfPoliciesAndObjectivesAreThoseOfTheFace) {
  EXPECT_EQ(berth_placement_version(), 1);
  EXPECT_EQ(static_cast<int>(PolicyKind::packed), BERTH_PLACEMENT_PACKED);
  EXPECT_EQ(static_cast<int>(PolicyKind::best_effort), BERTH_PLACEMENT_BEST_EFFORT);
  EXPECT_EQ(static_cast<int>(PolicyKind::simple), BERTH_PLACEMENT_SIMPLE);
  EXPECT_EQ(static_cast<int>(PolicyKind::static_dgx1_pascal), BERTH_PLACEMENT_STATIC_DGX1_PASCAL);
  EXPECT_EQ(static_cast<int>(PolicyKind::static_dgx1_volta), BERTH_PLACEMENT_STATIC_DGX1_VOLTA);
  EXPECT_EQ(static_cast<int>(PolicyKind::static_dgx2), BERTH_PLACEMENT_STATIC_DGX2);
  EXPECT_EQ(static_cast<int>(Objective::sum), BERTH_PLACEMENT_SUM);
  EXPECT_EQ(static_cast<int>(Objective::min), BERTH_PLACEMENT_MIN);
  EXPECT_EQ(static_cast<int>(Objective::ring), BERTH_PLACEMENT_RING);
}

TEST(PlacementInC, AnswersAsTheFaceDoes) {
  const testing::Machine machine = testing::dgx1_volta();
  Handle handle(machine);
  Chooser chooser = machine.chooser();
  Rng rng(41);
  for (int i = 0; i < 500; ++i) {
    const Question question = testing::random_question(rng, 8);
    const berth_placement_question asked{question.available, question.required, question.count,
                                         static_cast<std::int32_t>(question.objective)};
    const auto policy = static_cast<std::int32_t>(rng.below(kPolicies));
    berth_placement_answer answer{};
    const int code = handle.choose(policy, asked, answer);
    const auto expected = chooser.choose(static_cast<PolicyKind>(policy), question);
    ASSERT_EQ(code == BERTH_PLACEMENT_OK, expected.has_value());
    if (!expected) {
      EXPECT_EQ(handle.message.data(), expected.error().message);
      continue;
    }
    EXPECT_EQ(answer.devices, expected->devices);
    EXPECT_EQ(answer.value, expected->value.first);
    EXPECT_EQ(answer.sum, expected->value.second);
    EXPECT_EQ(answer.partition_score, expected->partition_score.value_or(-1));
    EXPECT_EQ(answer.bound, expected->bound);
    EXPECT_EQ(answer.exact, 1);
  }
}

TEST(PlacementInC, ErrorsHaveCodesAndWordsThatFit) {
  Handle handle(testing::dgx1_volta());
  berth_placement_answer answer{7, 7, 7, 7, 7, 7, 7};
  EXPECT_EQ(handle.choose(BERTH_PLACEMENT_PACKED, {3, 0, 3, 0}, answer), BERTH_PLACEMENT_BUSY);
  EXPECT_STREQ(handle.message.data(), "3 devices requested, 2 available: {0,1}");
  EXPECT_EQ(handle.choose(BERTH_PLACEMENT_PACKED, {255, 0, 9, 0}, answer),
            BERTH_PLACEMENT_IMPOSSIBLE);
  EXPECT_EQ(handle.choose(BERTH_PLACEMENT_PACKED, {255, 0, 0, 0}, answer), BERTH_PLACEMENT_INVALID);
  EXPECT_EQ(handle.choose(6, {255, 0, 1, 0}, answer), BERTH_PLACEMENT_INVALID);
  EXPECT_STREQ(handle.message.data(), "no such policy: 6");
  EXPECT_EQ(handle.choose(-1, {255, 0, 1, 0}, answer), BERTH_PLACEMENT_INVALID);
  EXPECT_EQ(handle.choose(0, {255, 0, 1, 3}, answer), BERTH_PLACEMENT_INVALID);
  EXPECT_STREQ(handle.message.data(), "no such objective: 3");
  EXPECT_EQ(answer.devices, 7U) << "an error leaves the answer as it was";
  const berth_placement_question question{3, 0, 3, 0};
  std::array<char, 8> small{};
  EXPECT_EQ(
      berth_placement_choose(handle.machine, 0, &question, &answer, small.data(), small.size()),
      BERTH_PLACEMENT_BUSY);
  EXPECT_STREQ(small.data(), "3 devic");
  EXPECT_EQ(berth_placement_choose(handle.machine, 0, &question, &answer, nullptr, 0),
            BERTH_PLACEMENT_BUSY);
  EXPECT_EQ(berth_placement_choose(nullptr, 0, &question, &answer, nullptr, 0),
            BERTH_PLACEMENT_INVALID);
  berth_placement* none = nullptr;
  const std::array<std::int32_t, 4> one_sided{0, 1, 2, 0};
  EXPECT_EQ(berth_placement_create(one_sided.data(), 2, &none, handle.message.data(),
                                   handle.message.size()),
            BERTH_PLACEMENT_INVALID);
  EXPECT_STREQ(handle.message.data(), "GPU0-GPU1: 1 from one side, 2 from the other");
  EXPECT_EQ(berth_placement_create(one_sided.data(), 65, &none, nullptr, 0),
            BERTH_PLACEMENT_INVALID);
  EXPECT_EQ(berth_placement_create(one_sided.data(), -1, &none, nullptr, 0),
            BERTH_PLACEMENT_INVALID);
  EXPECT_EQ(none, nullptr);
  berth_placement_destroy(nullptr);
}

std::uint64_t what_user_says(const std::int32_t* scores, std::int32_t devices,
                             const berth_placement_question* question, void* user) {
  EXPECT_EQ(scores[1], 150);
  EXPECT_EQ(devices, 8);
  EXPECT_EQ(question->count, 2);
  return *static_cast<std::uint64_t*>(user);
}

TEST(PlacementInC, APolicyByCallbackIsChecked) {
  Handle handle(testing::dgx1_volta());
  const berth_placement_question question{255, 1, 2, BERTH_PLACEMENT_MIN};
  berth_placement_answer answer{};
  std::uint64_t says = 0b1001;
  const auto choose = [&] {
    return berth_placement_choose_by(handle.machine, what_user_says, &says, &question, &answer,
                                     handle.message.data(), handle.message.size());
  };
  EXPECT_EQ(choose(), BERTH_PLACEMENT_OK);
  EXPECT_EQ(answer.devices, 0b1001U);
  EXPECT_EQ(answer.value, 230);
  says = 0b1010;
  EXPECT_EQ(choose(), BERTH_PLACEMENT_INVALID);
  EXPECT_STREQ(handle.message.data(), "the policy chose {1,3}: without the required {0}");
  EXPECT_EQ(
      berth_placement_choose_by(handle.machine, nullptr, nullptr, &question, &answer, nullptr, 0),
      BERTH_PLACEMENT_INVALID);
}

TEST(PlacementInC, Alternative) {
  Handle handle(testing::dgx1_volta());
  berth_placement_answer answer{};
  const auto other_than = [&](std::uint64_t devices, const berth_placement_question& question) {
    return berth_placement_alternative(handle.machine, &question, devices, &answer,
                                       handle.message.data(), handle.message.size());
  };
  EXPECT_EQ(other_than(0x0f, {255, 0, 4, 0}), BERTH_PLACEMENT_OK);
  EXPECT_EQ(answer.devices, 0xf0U);
  EXPECT_EQ(other_than(0x0f, {0x0f, 0, 4, 0}), BERTH_PLACEMENT_BUSY);
  EXPECT_EQ(other_than(0x0f, {0x0f, 0, 0, 0}), BERTH_PLACEMENT_INVALID);
}

TEST(PlacementInC, Allocator) {
  const testing::Machine machine = testing::dgx1_volta();
  berth_allocator* allocator = nullptr;
  std::array<char, 200> message{};
  ASSERT_EQ(
      berth_allocator_create(machine.scores.data(), 8, &allocator, message.data(), message.size()),
      BERTH_PLACEMENT_OK);
  berth_placement_answer answer{};
  EXPECT_EQ(berth_allocator_allocate(allocator, BERTH_PLACEMENT_STATIC_DGX1_VOLTA, 2, 0, 0, &answer,
                                     nullptr, 0),
            BERTH_PLACEMENT_OK);
  EXPECT_EQ(berth_allocator_available(allocator), 0xffU ^ 0b1001U);
  EXPECT_EQ(berth_allocator_allocate(allocator, BERTH_PLACEMENT_PACKED, 1, 1, 0, &answer,
                                     message.data(), message.size()),
            BERTH_PLACEMENT_BUSY);
  EXPECT_STREQ(message.data(), "required {0} already in use");
  EXPECT_EQ(berth_allocator_allocate_these(allocator, 0b110, nullptr, 0), BERTH_PLACEMENT_OK);
  EXPECT_EQ(berth_allocator_allocate_these(allocator, 0b110, nullptr, 0), BERTH_PLACEMENT_BUSY);
  EXPECT_EQ(berth_allocator_free(allocator, 0b1111, nullptr, 0), BERTH_PLACEMENT_OK);
  EXPECT_EQ(berth_allocator_free(allocator, 1, nullptr, 0), BERTH_PLACEMENT_STALE);
  EXPECT_EQ(berth_allocator_available(allocator), 0xffU);
  EXPECT_EQ(berth_allocator_available(nullptr), 0U);
  EXPECT_EQ(berth_allocator_free(nullptr, 1, nullptr, 0), BERTH_PLACEMENT_INVALID);
  berth_allocator_destroy(allocator);
  berth_allocator_destroy(nullptr);
}

}  // namespace
}  // namespace berth::placement
