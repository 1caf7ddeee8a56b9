#include "berth/fleet/simulate/traffic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "berth/base/rng.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fleet/measurements/table_lines.h"
#include "berth/fleet/queueing/queue.h"

namespace berth::fleet {
namespace {

constexpr double kMostCv = 100;

Status check(std::string_view field, const Lengths& lengths) {
  if (lengths.kind == Lengths::Kind::histogram && !lengths.histogram)
    return fail(ErrorKind::invalid, "{}: there is no histogram", field);
  if (!(lengths.mean >= 0) || lengths.mean > kMostTokens)
    return fail(ErrorKind::invalid, "{}: expected a mean of 0 to {} tokens, got {}", field,
                kMostTokens, lengths.mean);
  if (!(lengths.cv >= 0) || lengths.cv > kMostCv)
    return fail(ErrorKind::invalid, "{}: expected a cv of 0 to {}, got {}", field, kMostCv,
                lengths.cv);
  return {};
}

/// Uniform in (0, 1], so that its logarithm is finite.
double above_zero(Rng& rng) {
  return 1 - rng.uniform();
}

/// Box and Muller's; of its two numbers one is used, so that each draw takes the same two.
double normal(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(above_zero(rng)));
  return radius * std::cos(2 * std::numbers::pi * rng.uniform());
}

/// Gamma distributed with the mean 1 (Marsaglia and Tsang, 2000; shapes below 1 by their note on
/// u^(1/shape)).
double gamma_gap(Rng& rng, double shape) {
  const double boosted = shape < 1 ? shape + 1 : shape;
  const double d = boosted - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(rng);
    const double cube = std::pow(1 + c * x, 3);
    if (cube <= 0 || std::log(above_zero(rng)) >= x * x / 2 + d * (1 - cube + std::log(cube)))
      continue;
    const double part = shape < 1 ? std::pow(above_zero(rng), 1 / shape) : 1;
    return d * cube * part / shape;
  }
}

class LengthSampler {
 public:
  explicit LengthSampler(const Lengths& lengths) : kind_(lengths.kind), mean_(lengths.mean) {
    if (kind_ == Lengths::Kind::histogram) {
      double sum = 0;
      lengths.histogram.each(mean_, [&](double tokens, double probability) {
        tokens_.push_back(std::clamp(tokens, std::min(1.0, mean_), kMostTokens));
        ends_.push_back(sum += probability);
      });
      return;
    }
    const bool is_constant = mean_ <= 1 || (kind_ == Lengths::Kind::lognormal && lengths.cv == 0);
    if (is_constant) kind_ = Lengths::Kind::fixed;
    if (kind_ == Lengths::Kind::geometric) log_of_more_ = std::log1p(-1 / mean_);
    if (kind_ == Lengths::Kind::lognormal) {
      const double variance = std::log1p(lengths.cv * lengths.cv);
      sigma_ = std::sqrt(variance);
      mu_ = std::log(mean_) - variance / 2;
    }
  }

  std::int32_t draw(Rng& rng) const {
    switch (kind_) {
      case Lengths::Kind::fixed: return whole(mean_, rng.uniform());
      case Lengths::Kind::geometric:
        return tokens(1 + std::floor(std::log(above_zero(rng)) / log_of_more_));
      case Lengths::Kind::lognormal:
        return tokens(std::round(std::exp(mu_ + sigma_ * normal(rng))));
      case Lengths::Kind::histogram: break;
    }
    const double at = rng.uniform() * ends_.back();
    const auto end = std::ranges::upper_bound(ends_, at);
    const auto bin = std::min(static_cast<std::size_t>(end - ends_.begin()), tokens_.size() - 1);
    const double begin = bin == 0 ? 0 : ends_[bin - 1];
    return whole(tokens_[bin], (at - begin) / (ends_[bin] - begin));
  }

 private:
  /// One of the whole numbers beside a length, by a number that is uniform in [0, 1).
  static std::int32_t whole(double length, double uniform) {
    const double below = std::floor(length);
    return static_cast<std::int32_t>(below) + (uniform < length - below ? 1 : 0);
  }
  static std::int32_t tokens(double number) {
    return static_cast<std::int32_t>(std::clamp(number, 1.0, kMostTokens));
  }

  Lengths::Kind kind_;
  double mean_;
  double log_of_more_ = 0;     // geometric: of the probability of one more token
  double mu_ = 0, sigma_ = 0;  // lognormal
  std::vector<double> ends_;   // histogram: probabilities up to and with each bin
  std::vector<double> tokens_;
};

constexpr std::array<std::string_view, 3> kColumns{"seconds", "in_tokens", "out_tokens"};

/// Reads the lines of a trace, and says where in them something is wrong.
class TraceReader {
 public:
  TraceReader(std::string_view name, std::string_view text) : name_(name), lines_(name, text) {}

  Result<std::vector<Request>> read() {
    BERTH_ASSIGN(columns_,
                 lines_.read_head(kColumns, kColumns.size(), TableLines::Others::passed_over));
    std::vector<Request> requests;
    double first_s = 0;
    while (lines_.next()) {
      if (trim(lines_.line()).empty()) continue;
      std::array<double, 3> row{};
      BERTH_TRY(read_row(row));
      if (requests.empty()) first_s = row[0];
      const double arrival_ms = (row[0] - first_s) * 1000;
      if (arrival_ms < (requests.empty() ? 0 : requests.back().arrival))
        return lines_.wrong(columns_[0], "a time not before that of the line above",
                            lines_.fields()[columns_[0]]);
      if (requests.size() == kMostRequests)
        return fail(ErrorKind::invalid, "{}:{}: expected at most {} requests, got more", name_,
                    lines_.number(), kMostRequests);
      requests.push_back(
          {arrival_ms, static_cast<std::int32_t>(row[1]), static_cast<std::int32_t>(row[2])});
    }
    if (requests.empty()) return fail(ErrorKind::invalid, "{}: expected requests, got none", name_);
    return requests;
  }

 private:
  Status read_row(std::array<double, 3>& row) const {
    BERTH_TRY(lines_.expect_all_fields());
    for (std::size_t c = 0; c < kColumns.size(); ++c) {
      const auto field = lines_.fields()[columns_[c]];
      const auto number = parse_number(trim(field));
      if (!number)
        return lines_.wrong(columns_[c], fmt::format("a number of {}", kColumns[c]), field);
      row[c] = *number;
      const bool is_time = c == 0;
      if (is_time && std::abs(*number) > kMostSeconds)
        return lines_.wrong(columns_[c], "a number of seconds", field);
      if (!is_time && (*number < 0 || *number > kMostTokens || *number != std::floor(*number)))
        return lines_.wrong(columns_[c], fmt::format("a whole number from 0 to {}", kMostTokens),
                            field);
    }
    return {};
  }

  static constexpr double kMostSeconds = 1e10;  // seconds since 1970 are times, too

  std::string_view name_;
  TableLines lines_;
  std::vector<std::size_t> columns_;  // where kColumns stand
};

}  // namespace

Status check(const Traffic& traffic) {
  BERTH_TRY(check("in_tokens", traffic.in));
  BERTH_TRY(check("out_tokens", traffic.out));
  if (!(traffic.arrival_cv >= 0) || traffic.arrival_cv > kMostCv)
    return fail(ErrorKind::invalid, "arrival_cv: expected 0 to {}, got {}", kMostCv,
                traffic.arrival_cv);
  return {};
}

std::uint64_t seed_of(std::uint64_t seed, Stream stream, std::uint64_t number) {
  return mix(mix(mix(seed) ^ static_cast<std::uint64_t>(stream)) ^ number);
}

std::vector<Request> draw_requests(const Traffic& traffic, std::size_t count, std::uint64_t seed) {
  BERTH_ASSERT(check(traffic) && count <= kMostRequests);
  Rng gaps(seed_of(seed, Stream::arrivals)), ins(seed_of(seed, Stream::in_tokens)),
      outs(seed_of(seed, Stream::out_tokens));
  const LengthSampler in(traffic.in), out(traffic.out);
  const double cv = traffic.arrival_cv;
  const double shape = cv > 0 ? 1 / (cv * cv) : 0;
  std::vector<Request> requests(count);
  double now = 0;
  for (auto& request : requests) {
    now += cv == 0 ? 1 : cv == 1 ? -std::log(above_zero(gaps)) : gamma_gap(gaps, shape);
    request = {now, in.draw(ins), out.draw(outs)};
  }
  return requests;
}

std::vector<std::vector<Request>> divide(std::vector<Request> requests,
                                         std::span<const double> parts, std::uint64_t seed) {
  std::vector<std::vector<Request>> of(parts.size());
  if (parts.size() == 1) {
    of[0] = std::move(requests);
    return of;
  }
  Rng rng(seed_of(seed, Stream::routing, 1));
  for (const Request& request : requests) {
    double left = rng.uniform();
    std::size_t i = 0;
    while (i + 1 < parts.size() && left >= parts[i]) left -= parts[i++];
    of[i].push_back(request);
  }
  return of;
}

Result<std::vector<Request>> read_trace(std::string_view name, std::string_view text) {
  return TraceReader(name, text).read();
}

}  // namespace berth::fleet
