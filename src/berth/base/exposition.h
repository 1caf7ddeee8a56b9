// Metrics in the text format that Prometheus scrapes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {

inline constexpr const char* kExpositionType = "text/plain; version=0.0.4; charset=utf-8";

/// The text between the quotes of a label's value.
std::string escaped_label(std::string_view text);

/// One metric after another, each with its lines together: begin(), then add() for each series.
class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  /// `type`: "gauge", "counter" or "histogram".
  void begin(std::string_view name, std::string_view type, std::string_view help);
  void add(const Labels& labels, double value);
  /// The buckets, sum and count of a histogram. `bounds` rise; one without end follows them.
  void add(const Labels& labels, std::span<const double> bounds, std::span<const double> values);
  std::string take() { return std::move(text_); }

 private:
  void line(std::string_view suffix, const Labels& labels, double value);
  std::string name_, text_;
};

}  // namespace berth
