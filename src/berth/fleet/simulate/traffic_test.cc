#include "berth/fleet/simulate/traffic.h"

#include <gtest/gtest.h>

#include <cmath>

namespace berth::fleet {
namespace {

struct Moments {
  double mean = 0, cv = 0;
};

template <class Value>
Moments moments_of(const std::vector<Request>& requests, Value value) {
  double sum = 0, squares = 0;
  for (const auto& request : requests) {
    const double v = value(request);
    sum += v, squares += v * v;
  }
  const auto n = static_cast<double>(requests.size());
  const double mean = sum / n;
  return {mean, std::sqrt(std::max(0.0, squares / n - mean * mean)) / mean};
}

Moments in_tokens(const Lengths& lengths) {
  const auto requests = draw_requests({lengths, {}, 1}, 200'000, 9);
  return moments_of(requests, [](const Request& r) { return r.in_tokens; });
}

Moments gaps(double cv) {
  auto requests = draw_requests({{}, {}, cv}, 400'000, 9);
  for (std::size_t i = requests.size() - 1; i > 0; --i)
    requests[i].arrival -= requests[i - 1].arrival;
  return moments_of(requests, [](const Request& r) { return r.arrival; });
}

TEST(Traffic, LengthsHaveTheirMoments) {
  const auto expect = [](const Lengths& lengths, double mean, double cv) {
    const auto found = in_tokens(lengths);
    EXPECT_NEAR(found.mean, mean, 0.02 * mean);
    EXPECT_NEAR(found.cv, cv, 0.05 * cv);
  };
  expect({Lengths::Kind::fixed, 512, 0, {}}, 512, 0);
  expect({Lengths::Kind::fixed, 2.25, 0, {}}, 2.25, std::sqrt(0.25 * 0.75) / 2.25);
  expect({Lengths::Kind::geometric, 40, 0, {}}, 40, std::sqrt(1 - 1.0 / 40));
  expect({Lengths::Kind::lognormal, 900, 1.2, {}}, 900, 1.2);
  expect({Lengths::Kind::lognormal, 900, 0, {}}, 900, 0);
  const auto histogram = *LengthHistogram::of({{10, 3}, {20, 1}});
  for (const double mean : {12.5, 25.0, 20.3})
    expect({Lengths::Kind::histogram, mean, 0, histogram}, mean, std::sqrt(75.0 / 4) / 12.5);
}

TEST(Traffic, AHistogramOfOneLengthIsThatLength) {
  for (const double mean : {1.0, 300.0, 2.25, 511.6, 0.4, 0.0}) {
    const Lengths one{Lengths::Kind::histogram, mean, 0, *LengthHistogram::of({{300, 7}})};
    const Lengths fixed{Lengths::Kind::fixed, mean, 0, {}};
    EXPECT_EQ(draw_requests({one, fixed, 1}, 10'000, 4), draw_requests({fixed, one, 1}, 10'000, 4));
    EXPECT_EQ(draw_requests({one, one, 1}, 10'000, 4), draw_requests({fixed, fixed, 1}, 10'000, 4));
  }
}

TEST(Traffic, AStretchedHistogramHasNoRequestWithoutTokens) {
  const Lengths few{Lengths::Kind::histogram, 2, 0, *LengthHistogram::of({{1, 9}, {1000, 1}})};
  const Lengths many{Lengths::Kind::histogram, 9e6, 0, few.histogram};
  for (const auto& request : draw_requests({few, many, 1}, 10'000, 1)) {
    ASSERT_GE(request.in_tokens, 1);
    ASSERT_LE(request.out_tokens, 10'000'000);
  }
}

TEST(Traffic, NobodyHasNoTokensUnlessTheMeanSaysSo) {
  for (const auto kind : {Lengths::Kind::geometric, Lengths::Kind::lognormal})
    for (const auto& request : draw_requests({{kind, 1.3, 3, {}}, {}, 1}, 10'000, 1)) {
      ASSERT_GE(request.in_tokens, 1);
      ASSERT_EQ(request.out_tokens, 0);
    }
}

TEST(Traffic, GapsHaveTheirMoments) {
  for (const double cv : {0.0, 0.5, 1.0, 2.5}) {
    const auto found = gaps(cv);
    EXPECT_NEAR(found.mean, 1, 0.02) << cv;
    EXPECT_NEAR(found.cv, cv, 0.03 * cv) << cv;
  }
}

TEST(Traffic, SeedsHaveNothingInCommonAndStreamsAreApart) {
  const Traffic traffic{
      {Lengths::Kind::geometric, 1000, 0, {}}, {Lengths::Kind::geometric, 1000, 0, {}}, 1};
  const auto of = [&](std::uint64_t seed) { return draw_requests(traffic, 2000, seed); };
  const auto a = of(1);
  EXPECT_EQ(a, of(1));
  for (std::uint64_t seed = 2; seed < 5; ++seed) {
    const auto b = of(seed);
    for (std::size_t shift = 0; shift < 4; ++shift) {
      std::size_t same = 0;
      for (std::size_t i = 4; i < a.size(); ++i)
        same += a[i - shift].in_tokens == b[i].in_tokens ||
                a[i].in_tokens == b[i - shift].in_tokens || a[i].in_tokens == b[i].out_tokens ||
                a[i].out_tokens == b[i].in_tokens;
      EXPECT_LT(same, 20U) << "stream " << seed << " is shifted by " << shift;
    }
  }
  std::size_t same = 0;
  for (const auto& request : a) same += request.in_tokens == request.out_tokens;
  EXPECT_LT(same, 10U);
}

TEST(Traffic, OneDistributionChangesNoOtherStream) {
  Traffic traffic{{Lengths::Kind::geometric, 700, 0, {}}, {Lengths::Kind::geometric, 90, 0, {}}, 1};
  const auto before = draw_requests(traffic, 1000, 4);
  traffic.in = {Lengths::Kind::lognormal, 80, 2, {}};
  const auto after = draw_requests(traffic, 1000, 4);
  for (std::size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(before[i].arrival, after[i].arrival);
    ASSERT_EQ(before[i].out_tokens, after[i].out_tokens);
  }
}

std::string refusal(const Traffic& traffic) {
  const auto status = check(traffic);
  return status ? "none" : status.error().message;
}

TEST(Traffic, RefusesWhatIsNoDistribution) {
  EXPECT_EQ(refusal({}), "none");
  EXPECT_EQ(refusal({{Lengths::Kind::fixed, -1, 0, {}}, {}, 1}),
            "in_tokens: expected a mean of 0 to 10000000 tokens, got -1");
  EXPECT_EQ(refusal({{}, {Lengths::Kind::lognormal, 5, NAN, {}}, 1}),
            "out_tokens: expected a cv of 0 to 100, got nan");
  EXPECT_EQ(refusal({{Lengths::Kind::histogram, 0, 0, {}}, {}, 1}),
            "in_tokens: there is no histogram");
  EXPECT_EQ(refusal({{}, {}, INFINITY}), "arrival_cv: expected 0 to 100, got inf");
}

TEST(Trace, ColumnsStandInAnyOrder) {
  const auto requests = read_trace(
      "t.csv", "out_tokens,hour, In_Tokens ,seconds\r\n44,1,374,10.5\r\n\r\n109,1,396,12.000\n");
  ASSERT_TRUE(requests) << requests.error().message;
  EXPECT_EQ(*requests, (std::vector<Request>{{0, 374, 44}, {1500, 396, 109}}));
}

std::string trace_refusal(std::string_view text) {
  const auto requests = read_trace("t.csv", text);
  return requests ? "none" : requests.error().message;
}

TEST(Trace, ErrorsNameLineAndColumn) {
  const std::string head = "seconds,in_tokens,out_tokens\n";
  EXPECT_EQ(trace_refusal(head + "0,1,2\n"), "none");
  EXPECT_EQ(trace_refusal(""), "t.csv:1:1: expected a column seconds, got ''");
  EXPECT_EQ(trace_refusal("seconds,in_tokens\n0,1\n"),
            "t.csv:1:1: expected a column out_tokens, got 'seconds,in_tokens'");
  EXPECT_EQ(trace_refusal("seconds,in_tokens,out_tokens,Seconds\n0,1,2,3\n"),
            "t.csv:1:30: expected each column once, got 'Seconds'");
  EXPECT_EQ(trace_refusal("\xEF\xBB\xBF" + head + "0,1,2\n"), "none") << "a byte order mark";
  EXPECT_EQ(trace_refusal(head), "t.csv: expected requests, got none");
  EXPECT_EQ(trace_refusal(head + "0,1,2\n3,4x,5\n"),
            "t.csv:3:3: expected a number of in_tokens, got '4x'");
  EXPECT_EQ(trace_refusal(head + "0,1,2.5\n"),
            "t.csv:2:5: expected a whole number from 0 to 10000000, got '2.5'");
  EXPECT_EQ(trace_refusal(head + "0,-1,2\n"),
            "t.csv:2:3: expected a whole number from 0 to 10000000, got '-1'");
  EXPECT_EQ(trace_refusal(head + "5,1,2\n4,1,2\n"),
            "t.csv:3:1: expected a time not before that of the line above, got '4'");
  EXPECT_EQ(trace_refusal(head + "1e99,1,2\n"),
            "t.csv:2:1: expected a number of seconds, got '1e99'");
  EXPECT_EQ(trace_refusal(head + "0,1\n"), "t.csv:2:3: expected 3 columns, got '0,1'");
  EXPECT_EQ(trace_refusal(head + "0,1,2,3\n"), "t.csv:2:5: expected 3 columns, got '0,1,2,3'");
}

}  // namespace
}  // namespace berth::fleet
