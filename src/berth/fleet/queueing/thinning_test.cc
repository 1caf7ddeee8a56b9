#include "berth/fleet/queueing/thinning.h"

#include <gtest/gtest.h>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

TEST(ReplicaSearch, FindsTheFewestThatDoWhateverTheLoad) {
  Rng rng(1);
  int looks = 0, most_looks = 0;
  for (int round = 0; round < 20'000; ++round) {
    const double cv = rng.below(5) == 0 ? 1 : rng.below(2) == 0 ? rng.uniform() : 8 * rng.uniform();
    const double load = std::exp2(9 * rng.uniform()), weight = rng.uniform();
    const double least = 1 + static_cast<double>(rng.below(4));
    const double bearable = rng.below(2) == 0 ? 1 + 5 * rng.uniform() : HUGE_VAL;
    const auto needed = [&](double n) {
      const double seen = thinned({.target = {}, .arrival_cv = cv}, 1 / n).arrival_cv;
      return seen > bearable ? HUGE_VAL : std::ceil(load * (1 + weight * seen * seen));
    };
    double fewest = least;
    while (needed(fewest) > fewest) ++fewest;
    ReplicaSearch search(cv, least, 1 + static_cast<double>(rng.below(600)));
    int own = 0;
    for (; !search.is_found(); ++own) {
      ASSERT_LT(own, 100);
      search.look(needed(search.replicas()));
    }
    ASSERT_EQ(search.replicas(), fewest) << "cv " << cv << ", load " << load;
    looks += own, most_looks = std::max(most_looks, own);
  }
  EXPECT_LT(looks, 4 * 20'000);
  EXPECT_LE(most_looks, 30);
}

TEST(ReplicaSearch, EndsWhereNothingIsEnoughOrAnswersWaver) {
  for (const double cv : {0.0, 0.7, 1.0, 3.0, 20.0}) {
    ReplicaSearch never(cv, 2, 5);
    while (!never.is_found()) never.look(HUGE_VAL);
    Rng rng(7);
    for (int i = 0; i < 1000; ++i) {
      ReplicaSearch wavering(cv, 1, 3);
      for (int looks = 0; !wavering.is_found(); ++looks) {
        ASSERT_LT(looks, 10'000);
        wavering.look(static_cast<double>(1 + rng.below(500)));
      }
    }
  }
}

TEST(ReplicaSearch, PoissonArrivalsTakeOneLook) {
  ReplicaSearch search(1, 1, 1);
  search.look(17);
  EXPECT_TRUE(search.is_found());
  EXPECT_EQ(search.replicas(), 17);
}

}  // namespace
}  // namespace berth::fleet
