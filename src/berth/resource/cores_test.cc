#include "berth/resource/cores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "berth/base/rng.h"

namespace berth {
namespace {

using Shares = std::vector<CoreShare>;

std::int64_t sum(const Shares& shares) {
  return std::accumulate(shares.begin(), shares.end(), std::int64_t{0},
                         [](std::int64_t total, const auto& share) { return total + share.milli; });
}

/// `per_node` whole cores on each of `nodes` nodes, numbered as most machines do: node after node.
Shares machine(int nodes, int per_node) {
  Shares cores;
  for (int core = 0; core < nodes * per_node; ++core)
    cores.push_back({core, core / per_node, 1000});
  return cores;
}

std::set<int> nodes_of(const Shares& shares) {
  std::set<int> nodes;
  for (const auto& share : shares) nodes.insert(share.node);
  return nodes;
}

TEST(Cores, NothingForNothingAndForTooMuch) {
  EXPECT_TRUE(choose_cores(machine(1, 4), 0).empty());
  EXPECT_TRUE(choose_cores(machine(1, 4), 4001).empty());
  EXPECT_TRUE(choose_cores({}, 1).empty());
  EXPECT_EQ(choose_cores(machine(1, 4), 4000), machine(1, 4));
}

TEST(Cores, WholeOnesBeforePieces) {
  const Shares free{{0, 0, 500}, {1, 0, 1000}, {2, 0, 500}, {3, 0, 1000}};
  EXPECT_EQ(choose_cores(free, 2000), (Shares{{1, 0, 1000}, {3, 0, 1000}}));
  EXPECT_EQ(choose_cores(free, 1000), (Shares{{1, 0, 1000}}));
  EXPECT_EQ(choose_cores(free, 3000), free);
}

TEST(Cores, AFractionGoesOntoTheFullestCoreThatHasIt) {
  const Shares free{{0, 0, 1000}, {1, 0, 600}, {2, 0, 300}, {3, 1, 400}};
  EXPECT_EQ(choose_cores(free, 350), (Shares{{3, 1, 350}}));
  EXPECT_EQ(choose_cores(free, 300), (Shares{{2, 0, 300}}));
  EXPECT_EQ(choose_cores(free, 350, 0), (Shares{{1, 0, 350}}));
  EXPECT_EQ(choose_cores(free, 700), (Shares{{0, 0, 700}}));
  EXPECT_EQ(choose_cores(free, 1200), (Shares{{0, 0, 1000}, {2, 0, 200}}));
}

TEST(Cores, OneNodeWhileOneHasEnough) {
  Shares free = machine(2, 4);
  free[1].milli = 0;  // node 0 has three left: the tighter fit
  EXPECT_EQ(nodes_of(choose_cores(free, 3000)), std::set{0});
  EXPECT_EQ(nodes_of(choose_cores(free, 4000)), std::set{1});
  EXPECT_EQ(nodes_of(choose_cores(free, 2000, 1)), std::set{1});
  EXPECT_EQ(nodes_of(choose_cores(free, 4000, 0)), std::set{1});
  EXPECT_EQ(choose_cores(free, 5000, 0),
            (Shares{{0, 0, 1000}, {2, 0, 1000}, {3, 0, 1000}, {4, 1, 1000}, {5, 1, 1000}}));
}

TEST(Cores, PiecesOfOneNodeBeforePiecesOfTwo) {
  const Shares free{{0, 0, 400}, {1, 1, 300}, {2, 1, 300}, {3, 0, 100}};
  EXPECT_EQ(choose_cores(free, 600), (Shares{{1, 1, 300}, {2, 1, 300}}));
  EXPECT_EQ(choose_cores(free, 450), (Shares{{0, 0, 400}, {3, 0, 50}}));
  EXPECT_EQ(sum(choose_cores(free, 1000)), 1000);
}

/// Whether `from` can give the wish as whole cores and at most one broken one, tried in every way.
bool clean_by_force(const Shares& from, std::int64_t milli) {
  for (unsigned mask = 0; mask < 1U << from.size(); ++mask) {
    std::int64_t whole = 0;
    bool all_whole = true;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if ((mask >> i & 1U) == 0) continue;
      all_whole = all_whole && from[i].milli == 1000;
      ++whole;
    }
    if (!all_whole || whole != milli / 1000) continue;
    if (milli % 1000 == 0) return true;
    for (std::size_t i = 0; i < from.size(); ++i)
      if ((mask >> i & 1U) == 0 && from[i].milli >= milli % 1000) return true;
  }
  return false;
}

bool is_clean(const Shares& taken, const Shares& free, std::int64_t milli) {
  std::int64_t whole = 0;
  for (const auto& share : taken) {
    const auto had = std::ranges::find(free, share.core, &CoreShare::core)->milli;
    if (share.milli == 1000 && had == 1000) ++whole;
  }
  return whole == milli / 1000 && static_cast<std::int64_t>(taken.size()) == (milli + 999) / 1000;
}

Shares only(const Shares& free, int node) {
  Shares part;
  std::ranges::copy_if(free, std::back_inserter(part),
                       [&](const auto& share) { return share.node == node; });
  return part;
}

void check_sound(const Shares& free, const Shares& taken, std::int64_t milli) {
  ASSERT_EQ(sum(taken), sum(free) >= milli ? milli : 0);
  ASSERT_TRUE(std::ranges::is_sorted(taken, std::ranges::less_equal{}, &CoreShare::core));
  for (const auto& share : taken) {
    const auto had = std::ranges::find(free, share.core, &CoreShare::core);
    ASSERT_NE(had, free.end());
    ASSERT_EQ(had->node, share.node);
    ASSERT_GT(share.milli, 0);
    ASSERT_LE(share.milli, had->milli);
  }
}

/// How much the fullest core that has the fraction has free; 0 where none has.
int fullest_that_has(const Shares& free, std::int64_t milli) {
  int least = 0;
  for (const auto& share : free)
    if (share.milli >= milli && (least == 0 || share.milli < least)) least = share.milli;
  return least;
}

void check_preferences(const Shares& free, const Shares& taken, std::int64_t milli, int near) {
  const bool near_clean = clean_by_force(only(free, near), milli);
  const bool one_clean =
      clean_by_force(only(free, 0), milli) || clean_by_force(only(free, 1), milli);
  const bool one_has_it = sum(only(free, 0)) >= milli || sum(only(free, 1)) >= milli;
  if (near_clean) {
    ASSERT_EQ(nodes_of(taken), std::set{near});
  }
  const int fullest = fullest_that_has(near_clean ? only(free, near) : free, milli);
  if (milli < 1000 && fullest > 0) {
    const auto core = std::ranges::find(free, taken.front().core, &CoreShare::core);
    ASSERT_EQ(core->milli, fullest);
  }
  ASSERT_EQ(is_clean(taken, free, milli), clean_by_force(free, milli));
  if (one_clean || (one_has_it && !clean_by_force(free, milli))) {
    ASSERT_EQ(nodes_of(taken).size(), 1U);
  }
}

TEST(Cores, AgreesWithBruteForceOnEverySmallMachine) {
  constexpr std::array<int, 4> kFree{0, 250, 600, 1000};
  for (int state = 0; state < 4 * 4 * 4 * 4 * 4 * 32; ++state) {
    Shares free;
    for (int core = 0, rest = state / 32; core < 5; ++core, rest /= 4)
      free.push_back({core, state >> core & 1, kFree[static_cast<std::size_t>(rest % 4)]});
    for (const std::int64_t milli : {200, 600, 1000, 1250, 2000, 2600, 3000}) {
      const int near = (state / 7) % 3 - 1;
      const Shares taken = choose_cores(free, milli, near);
      SCOPED_TRACE(testing::Message() << "state " << state << " milli " << milli);
      ASSERT_NO_FATAL_FAILURE(check_sound(free, taken, milli));
      if (taken.empty()) continue;
      ASSERT_NO_FATAL_FAILURE(check_preferences(free, taken, milli, near));
    }
  }
}

TEST(Cores, RandomLargeMachinesAreSoundAndDeterministic) {
  Rng rng(1);
  for (int round = 0; round < 5000; ++round) {
    Shares free = machine(1 + static_cast<int>(rng.below(4)), 1 + static_cast<int>(rng.below(48)));
    for (auto& share : free) {
      if (rng.below(2) == 0) share.milli = static_cast<int>(rng.below(1001));
      if (rng.below(8) == 0) share.node = static_cast<int>(rng.below(4));
    }
    const auto milli =
        static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(sum(free)) + 2));
    const int near = static_cast<int>(rng.below(5)) - 1;
    const Shares taken = choose_cores(free, milli, near);
    SCOPED_TRACE(round);
    ASSERT_NO_FATAL_FAILURE(check_sound(free, taken, milli));
    ASSERT_EQ(taken, choose_cores(free, milli, near));
  }
}

}  // namespace
}  // namespace berth
