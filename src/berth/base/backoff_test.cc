#include "berth/base/backoff.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

using std::chrono::seconds;

TEST(Backoff, DoublesUpToTheMostAndIsSpreadByHalf) {
  constexpr Backoff kBackoff{seconds(1), seconds(10)};
  constexpr Duration kNone(0);
  for (const auto& [failures, full] : {std::pair<std::int64_t, Duration>{1, seconds(1)},
                                       {2, seconds(2)},
                                       {4, seconds(8)},
                                       {5, seconds(10)},
                                       {INT64_MAX, seconds(10)}}) {
    EXPECT_GT(kBackoff.pause(failures, 0), full / 2 - full / 1000) << failures;
    EXPECT_LE(kBackoff.pause(failures, 0), full / 2) << failures;
    EXPECT_GT(kBackoff.pause(failures, UINT64_MAX), full * 3 / 2 - full / 500) << failures;
    EXPECT_LT(kBackoff.pause(failures, UINT64_MAX), full * 3 / 2) << failures;
  }
  EXPECT_EQ((Backoff{kNone, seconds(1)}.pause(3, 7)), kNone);
}

}  // namespace
}  // namespace berth
