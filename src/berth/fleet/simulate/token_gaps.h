// The times between tokens of a simulation: one for each token, and yet a few records for each
// request, because iterations that only decode differ by the same step from one to the next.
// Quantiles are those of all the single times, to nine digits.
//
// A value; functions that are const may be called on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace berth::fleet {

class TokenGaps {
 public:
  /// `count` iterations that took first_ms, first_ms + step_ms, …, each of which gave `tokens`
  /// requests a token. first_ms > 0, step_ms >= 0, count >= 1, tokens >= 1.
  void add(double first_ms, double step_ms, std::int64_t count, std::int64_t tokens) {
    runs_.push_back({first_ms, step_ms, count, tokens});
    tokens_ += count * tokens;
    const auto n = static_cast<double>(count);
    sum_ms_ += static_cast<double>(tokens) * n * (first_ms + step_ms * (n - 1) / 2);
  }
  void add(const TokenGaps& others);
  /// Room for so many calls of add(): growing step by step costs half as much again.
  void reserve(std::size_t records) { runs_.reserve(records); }

  std::int64_t tokens() const { return tokens_; }
  /// 0 without tokens.
  double mean_ms() const { return tokens_ > 0 ? sum_ms_ / static_cast<double>(tokens_) : 0; }
  /// For each part p in 0..1 the least time that at least p of the tokens do not exceed; 0 without
  /// tokens. Cost: about 10 ns a record, and 3 to 15 for each further part.
  std::vector<double> quantiles_ms(std::span<const double> parts) const;

 private:
  struct Run {
    double first_ms, step_ms;
    std::int64_t count, tokens;
    double at(std::int64_t i) const { return first_ms + step_ms * static_cast<double>(i); }
  };
  class Histogram;
  std::vector<Run> runs_;
  std::int64_t tokens_ = 0;
  double sum_ms_ = 0;
};

}  // namespace berth::fleet
