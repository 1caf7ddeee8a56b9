#include "berth/run/local_place.h"

#include <gtest/gtest.h>

namespace berth::run {
namespace {

TEST(LocalPlace, OnlyNumberedTasksAreOfASeries) {
  EXPECT_EQ(series_of("digits-3/17"), "digits-3");
  EXPECT_EQ(series_of("count-2/count/0"), "count-2/count");
  EXPECT_EQ(series_of("count-2/split"), "");
  EXPECT_EQ(series_of("count-2/"), "");
  EXPECT_EQ(series_of("17"), "");
}

}  // namespace
}  // namespace berth::run
