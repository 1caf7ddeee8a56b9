// Profiles and traces as windows of a day.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/fleet/day.h"

namespace berth::fleet {
namespace {

System two_servers() {
  System system;
  for (const char* name : {"s0", "s1"}) system.servers[name].current.load = Load{60, 0, 500, 200};
  return system;
}

TEST(Profile, ReadsRowsInAnyOrder) {
  const System system = two_servers();
  const auto profile = read_profile("p.csv",
                                    "arrivalRate, TIME,server,avgInTokens\r\n"
                                    "120,08:30,s1,\n"
                                    "30,00:00,s0,700\n\n"
                                    "60,30600,s0,800\n",
                                    system);
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->size(), 2U);
  EXPECT_EQ((*profile)[0].length_s, 30600);
  EXPECT_EQ((*profile)[1].length_s, 30600);
  EXPECT_EQ((*profile)[0].loads.at("s0").in_tokens, 700);
  EXPECT_EQ((*profile)[1].loads.at("s0").arrivals_per_min, 60);
  EXPECT_EQ((*profile)[1].loads.at("s1").in_tokens, 500);
  EXPECT_EQ((*profile)[1].loads.at("s1").out_tokens, 200);
  const auto day = plan_day(system, *profile, {});
  EXPECT_EQ(day->windows[0].loads.at("s1").arrivals_per_min, 60);  // the document's
  EXPECT_EQ(read_profile("p", "time,server,arrivalRate\n0,s0,1\n", system)->at(0).length_s, 3600);
}

TEST(Profile, TellsWhereItIsWrong) {
  const System system = two_servers();
  const auto message = [&](const std::string& rows) {
    const auto profile = read_profile("p.csv", "time,server,arrivalRate\n" + rows, system);
    return profile ? "" : profile.error().message;
  };
  EXPECT_EQ(message("0,s0,1\n"), "");
  EXPECT_EQ(message(""), "p.csv: wanted rows, found none");
  EXPECT_EQ(message("0,s0,1\n60,s0,-1\n"),
            "p.csv:3:7: wanted a number from 0 to 1000000000, found '-1'");
  EXPECT_EQ(message("08:61,s0,1\n"), "p.csv:2:1: wanted HH:MM or seconds, found '08:61'");
  EXPECT_EQ(message("0,s0\n"), "p.csv:2:3: wanted 3 columns, found '0,s0'");
  EXPECT_EQ(message("0,other,1\n"), "p.csv:2:3: wanted a server of the document, found 'other'");
  EXPECT_EQ(message("0,s0,1\n0,s0,2\n"),
            "p.csv:3:3: wanted each server once at a time, found 's0'");
  EXPECT_THAT(read_profile("p", "time,server\n", system).error().message,
              ::testing::HasSubstr("p:1: wanted the columns"));
  EXPECT_THAT(read_profile("p", "time,server,rate\n", system).error().message,
              ::testing::HasSubstr("p:1:13: wanted time"));
}

TEST(Profile, OfATraceCountsItsRequests) {
  std::vector<Request> trace;
  for (int i = 0; i <= 149; ++i)
    trace.push_back({1000.0 * i, i < 60 ? 100 : 200, i % 2 == 0 ? 5 : 15});
  const auto profile = profile_of(trace, 60, {{"a", 0.75}, {"b", 0.25}});
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->size(), 2U);
  EXPECT_EQ((*profile)[0].loads.at("a").arrivals_per_min, 45);
  EXPECT_EQ((*profile)[0].loads.at("a").in_tokens, 100);
  EXPECT_NEAR((*profile)[0].loads.at("a").in_cv, 0, 1e-9);
  EXPECT_NEAR((*profile)[0].loads.at("a").out_cv, 0.5, 1e-9);
  EXPECT_EQ((*profile)[0].loads.at("b").out_tokens, 10);
  EXPECT_EQ((*profile)[1].length_s, 89);
  EXPECT_NEAR((*profile)[1].loads.at("b").arrivals_per_min, 0.25 * 90 / (89 / 60.0), 1e-9);
  EXPECT_EQ((*profile)[1].loads.at("b").in_tokens, 200);
  EXPECT_FALSE(profile_of(trace, 0.01, {}));
  EXPECT_FALSE(profile_of(std::span(trace).first(1), 60, {}));
}

}  // namespace
}  // namespace berth::fleet
