#include "berth/run/drive/brief_tasks.h"

#include <gtest/gtest.h>

namespace berth::run {
namespace {

using std::chrono::milliseconds;

/// `count` of them one after the other, each of so long.
void end(BriefTasks& brief, const char* name, int count, Duration took) {
  static std::int64_t token = 0;
  for (int i = 0; i < count; ++i) {
    const Token mine{++token};
    brief.began(mine, name, Mono{});
    brief.ended(mine, Mono{} + took);
  }
}

TEST(BriefTasks, EnoughInARowTeachWhatASeriesTakes) {
  BriefTasks brief;
  end(brief, "a/1", 7, milliseconds(10));
  EXPECT_EQ(brief.typical("a/9"), Duration(0));
  end(brief, "a/1", 1, milliseconds(10));
  EXPECT_EQ(brief.typical("a/9"), Duration(milliseconds(10)));
  EXPECT_EQ(brief.typical("b/9"), Duration(0));
  EXPECT_TRUE(brief.are_any());
  end(brief, "a/1", 40, milliseconds(2));
  EXPECT_LT(brief.typical("a/9"), Duration(milliseconds(3)));
}

TEST(BriefTasks, OneThatIsLongEndsIt) {
  BriefTasks brief;
  end(brief, "a/1", 8, milliseconds(1));
  end(brief, "a/1", 1, milliseconds(60));
  EXPECT_EQ(brief.typical("a/9"), Duration(0));
  EXPECT_FALSE(brief.are_any());
  end(brief, "a/1", 8, milliseconds(1));
  EXPECT_EQ(brief.typical("a/9"), Duration(milliseconds(1)));
  brief.began({1000}, "a/4", Mono{});
  EXPECT_FALSE(brief.overdue({1000}, Mono{} + milliseconds(49)));
  EXPECT_TRUE(brief.overdue({1000}, Mono{} + milliseconds(50)));
  EXPECT_FALSE(brief.overdue({1001}, Mono{} + milliseconds(50))) << "it has not begun";
}

TEST(BriefTasks, WhatHasNoNumberIsNoSeries) {
  BriefTasks brief;
  end(brief, "a/train", 20, milliseconds(1));
  EXPECT_EQ(brief.typical("a/train"), Duration(0));
  EXPECT_EQ(series_of("count-2/count/4"), "count-2/count");
  EXPECT_EQ(series_of("digits-3/"), "");
}

}  // namespace
}  // namespace berth::run
