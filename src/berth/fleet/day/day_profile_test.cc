// Profiles and traces as windows of a day.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "berth/base/rng.h"
#include "berth/fleet/day/day.h"

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
  EXPECT_EQ(message(""), "p.csv: expected rows, got none");
  EXPECT_EQ(message("0,s0,1\n60,s0,-1\n"),
            "p.csv:3:7: expected a number from 0 to 1000000000, got '-1'");
  EXPECT_EQ(message("08:61,s0,1\n"), "p.csv:2:1: expected HH:MM or seconds, got '08:61'");
  EXPECT_EQ(message("0,s0\n"), "p.csv:2:3: expected 3 columns, got '0,s0'");
  EXPECT_EQ(message("0,other,1\n"), "p.csv:2:3: expected a server of the document, got 'other'");
  EXPECT_EQ(message("0,s0,1\n0,s0,2\n"),
            "p.csv:3:3: expected each server once at a time, got 's0'");
  const auto of_head = [&](const std::string& head) {
    const auto profile = read_profile("p", head + "\n0,s0,1\n", system);
    return profile ? "" : profile.error().message;
  };
  EXPECT_EQ(of_head("\xEF\xBB\xBFtime,server,arrivalRate"), "") << "a byte order mark";
  EXPECT_EQ(of_head("time,server"), "p:1:1: expected a column arrivalRate, got 'time,server'");
  EXPECT_EQ(of_head("time,server,arrivalRate,TIME"),
            "p:1:25: expected each column once, got 'TIME'");
  EXPECT_EQ(of_head("time,server,rate"),
            "p:1:13: expected one of the columns time, server, arrivalRate, avgInTokens, "
            "avgOutTokens, got 'rate'");
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
  EXPECT_NEAR((*profile)[0].loads.at("a").arrival_cv, 0.5, 1e-9) << "regular, thinned by a quarter";
  EXPECT_NEAR((*profile)[1].loads.at("b").arrival_cv, std::sqrt(0.75), 1e-9);
  EXPECT_FALSE(profile_of(trace, 0.01, {}));
  EXPECT_FALSE(profile_of(std::span(trace).first(1), 60, {}));
}

TEST(Profile, OfATraceHasTheVariationOfItsGaps) {
  std::vector<Request> trace;
  // A minute of pairs 2 s apart, gaps of 0 and 2 s, then one in which too few come to tell.
  for (int i = 0; i < 60; ++i) trace.push_back({2000.0 * (i / 2), 100, 10});
  for (int i = 1; i <= 6; ++i) trace.push_back({60'000 + 10'000.0 * i, 100, 10});
  const auto profile = profile_of(trace, 60, {{"a", 1}});
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_NEAR(profile->at(0).loads.at("a").arrival_cv, 1, 0.02);
  double sum = 0, squares = 0;
  for (std::size_t i = 1; i < trace.size(); ++i) {
    const double gap = trace[i].arrival - trace[i - 1].arrival;
    sum += gap, squares += gap * gap;
  }
  const double mean = sum / 65;
  EXPECT_NEAR(profile->at(1).loads.at("a").arrival_cv, std::sqrt(squares / 65 - mean * mean) / mean,
              1e-9)
      << "that of the whole trace";
  // Half of all requests, drawn at random, of bursts: the drawing itself says what is left of them.
  Rng rng(3);
  std::vector<Request> half;
  const auto bursts = draw_requests({{}, {}, 3}, 400'000, 7);
  for (const Request& request : bursts)
    if (rng.below(2) == 0) half.push_back(request);
  const double length_s = 1e6;
  const auto all = profile_of(bursts, length_s, {{"a", 0.5}}),
             drawn = profile_of(half, length_s, {{"a", 1}});
  EXPECT_NEAR(all->at(0).loads.at("a").arrival_cv, drawn->at(0).loads.at("a").arrival_cv, 0.03);
  EXPECT_NEAR(all->at(0).loads.at("a").arrival_cv, std::sqrt(5), 0.03);
}

}  // namespace
}  // namespace berth::fleet
