#include "berth/base/names.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace berth {
namespace {

enum class Side : std::uint8_t { left = 1, right, both };
constexpr auto kSideNames =
    names<Side>({{Side::left, "left"}, {Side::right, "right"}, {Side::both, "both"}});

TEST(Names, AValueHasItsNameAndANameItsValue) {
  static_assert(kSideNames.name(Side::right) == "right");
  static_assert(kSideNames.value("both") == Side::both);
  for (const auto name : kSideNames.all())
    EXPECT_EQ(kSideNames.name(*kSideNames.value(name)), name);
}

TEST(Names, WhatIsNoneOfTheTableHasNone) {
  EXPECT_EQ(kSideNames.name(static_cast<Side>(0)), "");
  EXPECT_EQ(kSideNames.name(static_cast<Side>(4)), "");
  for (const auto* name : {"", "Left", "lef", "leftt", "none"})
    EXPECT_FALSE(kSideNames.value(name)) << name;
}

TEST(Names, AreListedAsAMessageSaysThem) {
  EXPECT_EQ(listed(kSideNames), "left, right or both");
}

}  // namespace
}  // namespace berth
