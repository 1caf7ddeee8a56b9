#include "berth/fleet/measurements/streamed_tokens.h"

#include <gtest/gtest.h>

namespace berth::fleet {
namespace {

/// Requests of 61 tokens whose chunks come at these times again and again.
std::vector<RequestTimes> requests_with(const std::vector<float>& gaps, double tokens_per_gap) {
  std::vector<RequestTimes> requests(40);
  for (auto& request : requests) {
    while (static_cast<double>(request.gaps_ms.size()) * tokens_per_gap < 60)
      request.gaps_ms.push_back(gaps[request.gaps_ms.size() % gaps.size()]);
    request.out_tokens = 61;
  }
  return requests;
}

TEST(StreamedTokens, GapsOfIterationsAreKept) {
  auto requests = requests_with({9, 9, 9, 40}, 1);  // every fourth iteration has a prompt
  EXPECT_EQ(correct_gaps("f", requests), std::nullopt);
  EXPECT_EQ(requests[0].gaps_ms.size(), 60U);
}

TEST(StreamedTokens, ChunksOfSeveralTokensBecomeTimesPerToken) {
  auto requests = requests_with({9}, 3);
  const auto note = correct_gaps("f", requests);
  ASSERT_TRUE(note);
  EXPECT_TRUE(note->contains("a chunk has 3 tokens on average")) << *note;
  EXPECT_TRUE(requests[0].gaps_ms.empty());
  EXPECT_NEAR(requests[0].itl_ms, 3, 1e-6);
  EXPECT_NEAR(requests[0].end_ms(), 180, 1e-3);
}

TEST(StreamedTokens, BurstsBecomeTimesPerToken) {
  auto requests = requests_with({0.02F, 0.02F, 0.02F, 36}, 1);
  const auto note = correct_gaps("f", requests);
  ASSERT_TRUE(note);
  EXPECT_TRUE(note->contains("75 % of the times between them are below 5 % of their mean"))
      << *note;
  EXPECT_NEAR(requests[0].itl_ms, 9.015, 1e-3);
}

TEST(StreamedTokens, AFewRequestsWithOddCountsChangeNothing) {
  auto requests = requests_with({9}, 1);
  requests[0].out_tokens = 55;  // counted again with another tokenizer
  requests[1].gaps_ms.pop_back();
  EXPECT_EQ(correct_gaps("f", requests), std::nullopt);
  std::vector<RequestTimes> none(3);
  EXPECT_EQ(correct_gaps("f", none), std::nullopt);
}

TEST(StreamedTokens, SummaryWithLongerChunksThanTokensTakesTheTokens) {
  const auto spoken = token_time("f", {.mean_itl_ms = 9, .median_itl_ms = 9, .mean_tpot_ms = 3});
  EXPECT_EQ(spoken.ms, 3);
  EXPECT_TRUE(spoken.note->contains("a chunk has several tokens")) << *spoken.note;
  // A small difference counts only where the engine says that it speculates.
  EXPECT_EQ(token_time("f", {.mean_itl_ms = 9, .mean_tpot_ms = 8}).ms, 9);
  EXPECT_EQ(token_time("f", {.mean_itl_ms = 9, .mean_tpot_ms = 8, .tokens_per_step = 1.2}).ms, 8);
  EXPECT_NEAR(token_time("f", {.mean_itl_ms = 9, .tokens_per_step = 3}).ms, 3, 1e-9);
}

TEST(StreamedTokens, MedianFarBelowTheMeanIsNoted) {
  const auto time = token_time("f", {.mean_itl_ms = 9, .median_itl_ms = 0.02, .mean_tpot_ms = 9});
  EXPECT_EQ(time.ms, 9);
  EXPECT_TRUE(time.note->contains("far below the mean")) << *time.note;
  EXPECT_EQ(token_time("f", {.mean_itl_ms = 9, .median_itl_ms = 8}).note, std::nullopt);
}

}  // namespace
}  // namespace berth::fleet
