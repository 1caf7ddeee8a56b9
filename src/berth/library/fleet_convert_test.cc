#include "berth/library/fleet_convert.h"

#include <gtest/gtest.h>

#include <limits>

namespace berth::library {
namespace {

/// Every field has a value of its own.
fleet::Allocation split() {
  fleet::Allocation part;
  part.accelerator = "H100";
  part.role = fleet::Role::prefill;
  part.replicas = 2;
  part.batch = 8;
  part.cost = 620;
  part.ttft_ms = 300;
  fleet::Allocation whole;
  whole.accelerator = "L4";
  whole.replicas = 5;
  whole.batch = 16;
  whole.cost = 785;
  whole.itl_ms = 31;
  whole.ttft_ms = 300;
  whole.utilisation = 0.7;
  whole.load = {.arrivals_per_min = 60,
                .in_tokens = 700,
                .out_tokens = 250,
                .in_cv = 1.5,
                .out_cv = 0.5,
                .arrival_cv = 2};
  whole.parts = {part, part};
  whole.parts[1].accelerator = "L4";
  whole.parts[1].role = fleet::Role::decode;
  return whole;
}

TEST(LibraryAllocations, ComeBackAsTheyWere) {
  fleet::Allocation original = split();
  for (auto& part : original.parts) part.load = original.load;
  const auto shown = allocation_of(original);
  EXPECT_EQ(shown.text, "2 × H100 prefill + 2 × L4 decode");
  EXPECT_EQ(shown.parts[0].role, "prefill");
  const auto back = allocation_of(shown, original);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, original);
}

TEST(LibraryAllocations, ThatAreWrongAreRefused) {
  const auto refused = [](auto change) {
    Fleet::Allocation allocation = allocation_of(split());
    change(allocation);
    const auto made = allocation_of(allocation, {});
    return made ? std::string("taken") : made.error().message;
  };
  EXPECT_EQ(refused([](auto& a) { a.replicas = -1; }),
            "-1 replicas with a batch of 16: expected at least 0");
  EXPECT_EQ(refused([](auto& a) { a.cost = std::numeric_limits<double>::quiet_NaN(); }),
            "cost: expected a number of at least 0, got nan");
  EXPECT_EQ(refused([](auto& a) { a.load.in_tokens = -2; }),
            "in_tokens: expected a number of at least 0, got -2");
  EXPECT_EQ(refused([](auto& a) { a.parts[1].role = "both"; }),
            "role: expected whole, prefill or decode, got 'both'");
}

TEST(LibraryOptions, AreThoseOfThePlannerAndNoOthers) {
  for (const int number : {0, 1, 2}) {
    Fleet::Options options;
    options.solver = static_cast<Fleet::Solver>(number);
    options.heterogeneous = number == 1;
    options.power_budget_w = 100 * number;
    const auto made = options_of(options);
    ASSERT_TRUE(made);
    EXPECT_EQ(static_cast<int>(made->solver), number);
    const auto back = options_of(*made);
    EXPECT_EQ(back.solver, options.solver);
    EXPECT_EQ(back.heterogeneous, options.heterogeneous);
    EXPECT_EQ(back.power_budget_w, options.power_budget_w);
  }
  Fleet::Options wrong;
  wrong.model = static_cast<Fleet::Model>(2);
  EXPECT_EQ(options_of(wrong).error(), (Error{ErrorKind::invalid, "no such model: 2"}));
}

}  // namespace
}  // namespace berth::library
