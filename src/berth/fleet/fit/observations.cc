#include "berth/fleet/fit/observations.h"

#include <algorithm>
#include <cmath>

#include "berth/fleet/queueing/queue.h"

namespace berth::fleet {
namespace {

constexpr double kMostErrors = 0.01;           // of the requests of a point
constexpr std::int64_t kFewestRequests = 100;  // of a point
constexpr std::size_t kMostOfTimeline = 20'000;
constexpr double kFewestToCorrelate = 30,
                 kLeastLengthSpread = 0.2;  // requests, and of their lengths

/// A line through (x, y): how much y grows with x, and how far that can be trusted.
struct Line {
  double count = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  void add(double a, double b) { ++count, x += a, y += b, xx += a * a, yy += b * b, xy += a * b; }
  double variance_x() const { return std::max(0.0, xx / count - x * x / (count * count)); }
  /// How much `x` spreads about its mean.
  double spread() const { return count > 0 ? std::sqrt(variance_x()) / (x / count) : 0; }
  double slope() const { return (xy / count - x * y / (count * count)) / variance_x(); }
  double slope_error() const {
    const double variance_y = yy / count - y * y / (count * count);
    const double left = std::max(0.0, variance_y - slope() * slope() * variance_x());
    return std::sqrt(left / (variance_x() * std::max(1.0, count - 2)));
  }
  bool tells(double least_count, double least_spread) const {
    return count >= least_count && spread() > least_spread;
  }
};

constexpr double kSure = 3;  // standard errors

/// Marks points whose prompts of very different lengths have their first token equally soon: by far
/// less apart than at another point, or where there is none, by nothing that can be seen.
void mark_cached(const Measured& measured, double steepest, std::vector<PointUse>& use) {
  std::vector<Line> lines(use.size());
  for (std::size_t i = 0; i < use.size(); ++i) {
    for (const auto& request : measured.points[i].timeline)
      lines[i].add(request.in_tokens, request.ttft_ms);
    if (use[i].used && lines[i].tells(kFewestToCorrelate, kLeastLengthSpread))
      steepest = std::max(steepest, lines[i].slope() - kSure * lines[i].slope_error());
  }
  for (std::size_t i = 0; i < use.size(); ++i) {
    if (!use[i].used || !lines[i].tells(kFewestToCorrelate, kLeastLengthSpread)) continue;
    const double most = lines[i].slope() + kSure * lines[i].slope_error();
    use[i].cached =
        steepest > 0 ? most < steepest / 2 : lines[i].slope() < kSure * lines[i].slope_error();
  }
}

/// The same of points without requests, which have to differ in their lengths.
bool looks_cached(const Measured& measured, std::span<const PointUse> use) {
  Line line;
  for (std::size_t i = 0; i < use.size(); ++i)
    if (const auto& point = measured.points[i];
        use[i].used && !use[i].saturated && point.timeline.empty())
      line.add(point.in_tokens.mean, point.ttft_ms.mean);
  return line.tells(3, kLeastLengthSpread) && line.slope() <= 0;
}

/// Requests of a closed loop that all take as long start together again and again.
bool runs_in_step(const OperatingPoint& point) {
  const MeasuredFigures& out = point.out_tokens;
  const double variance = out.square - out.mean * out.mean;
  return point.timeline.empty() && point.max_concurrency.value_or(0) > 1 && out.square > 0 &&
         variance < 1e-6 * out.square;
}

/// The first token comes much later than it does under the least load: it waits for a place.
void mark_saturated(const Measured& measured, std::vector<PointUse>& use,
                    std::vector<std::string>& notes) {
  const OperatingPoint* least = nullptr;
  for (std::size_t i = 0; i < use.size(); ++i)
    if (const auto& point = measured.points[i];
        use[i].used && point.ttft_ms.mean > 0 &&
        (least == nullptr || point.ttft_ms.mean < least->ttft_ms.mean))
      least = &point;
  for (std::size_t i = 0; i < use.size(); ++i) {
    const auto& point = measured.points[i];
    if (!use[i].used || least == nullptr) continue;
    const double longer =
        std::max(1.0, point.in_tokens.mean / std::max(1.0, least->in_tokens.mean));
    if (point.ttft_ms.mean <= 3 * longer * least->ttft_ms.mean + 3 * point.itl_ms.mean) continue;
    use[i].saturated = true;
    notes.push_back(fmt::format(
        "{}: looks saturated: the first token takes {:.0f} ms, and {:.0f} ms at {:.3g} requests a "
        "second; its first tokens are left out",
        point.name, point.ttft_ms.mean, least->ttft_ms.mean, least->rate_per_s));
  }
}

/// Why a point is not used; "": it is.
std::string why_unused(const OperatingPoint& point, bool all) {
  const auto requests = point.requests;
  const std::int64_t errors = point.errors.value_or(0);
  if (requests == 0) return "no request was completed";
  if (point.in_tokens.mean + point.out_tokens.mean <= 0)
    return "it has no lengths of prompts and answers";
  if (point.ttft_ms.mean + point.itl_ms.mean <= 0)
    return "it has no times of tokens, as without streaming";
  if (all) return "";
  if (!requests)
    return errors == 0 ? "" : fmt::format("{} requests failed, of an unknown number", errors);
  const auto total = static_cast<double>(*requests + errors);
  if (static_cast<double>(errors) > kMostErrors * total)
    return fmt::format("{} of {:.0f} requests failed", errors, total);
  if (*requests < kFewestRequests)
    return fmt::format("it has {} requests, fewer than {}", *requests, kFewestRequests);
  return "";
}

/// One note for each fact that is needed to judge points and that some of them do not state.
void note_unknown(const Measured& measured, std::span<const PointUse> use,
                  std::vector<std::string>& notes) {
  struct Fact {
    std::optional<std::int64_t> OperatingPoint::* field;
    std::string_view words;
  };
  for (const auto& [field, words] :
       {Fact{&OperatingPoint::requests,
             "the number of completed requests is not known; assumed to be enough"},
        Fact{&OperatingPoint::errors,
             "the number of failed requests is not known; assumed to be 0"}}) {
    std::size_t unknown = 0, first = 0;
    for (std::size_t i = 0; i < use.size(); ++i)
      if (use[i].used && !(measured.points[i].*field) && unknown++ == 0) first = i;
    if (unknown == 0) continue;
    const std::string others = unknown > 1 ? fmt::format(" and {} more", unknown - 1) : "";
    notes.push_back(fmt::format("{}{}: {}", measured.points[first].name, others, words));
  }
}

}  // namespace

std::vector<PointUse> judge_points(const Measured& measured, bool all, double prompt_ms,
                                   std::vector<std::string>& notes) {
  std::vector<PointUse> use(measured.points.size());
  for (std::size_t i = 0; i < use.size(); ++i) {
    const auto& point = measured.points[i];
    const std::string why = why_unused(point, all);
    if (why.empty()) continue;
    use[i].used = false;
    notes.push_back(fmt::format("{}: not used: {}", point.name, why));
  }
  note_unknown(measured, use, notes);
  for (std::size_t i = 0; i < use.size(); ++i)
    if (use[i].used && runs_in_step(measured.points[i]))
      notes.push_back(
          fmt::format("{}: all its answers have the same length, so concurrent requests run in "
                      "step and their prompts arrive together; measure with different lengths",
                      measured.points[i].name));
  mark_saturated(measured, use, notes);
  constexpr std::string_view kCached =
      "the time to the first token does not depend on the prompt, as with a warm prefix cache";
  mark_cached(measured, prompt_ms, use);
  for (std::size_t i = 0; i < use.size(); ++i) {
    if (!use[i].cached) continue;
    notes.push_back(fmt::format("{}: {}{}", measured.points[i].name, kCached,
                                all ? "" : "; prompts are left out"));
    use[i].cached = !all;
  }
  if (looks_cached(measured, use)) notes.push_back(fmt::format("{} (over all points)", kCached));
  return use;
}

MeanLoad load_of(const OperatingPoint& point) {
  const auto square = [](const MeasuredFigures& figures) {
    return figures.square > 0 ? figures.square : figures.mean * figures.mean;
  };
  // While the last requests end none come any more: they came for so much less than the duration.
  const double response_s =
      (point.ttft_ms.mean + point.itl_ms.mean * std::max(0.0, point.out_tokens.mean - 1)) /
      kSecondMs;
  const bool ends = !point.max_concurrency && point.duration_s > 2 * response_s;
  const double came = ends ? point.duration_s / (point.duration_s - response_s) : 1;
  return {.rate_per_ms = came * point.rate_per_s / kSecondMs,
          .max_concurrency = point.max_concurrency.value_or(0),
          .in_tokens = point.in_tokens.mean,
          .in_square = square(point.in_tokens),
          .out_tokens = point.out_tokens.mean,
          .out_square = square(point.out_tokens),
          .itl_ms = point.itl_ms.mean};
}

MeanObservations mean_observations(const MeanLoad& load, const FitParameters& parameters) {
  const double n = load.in_tokens, m = load.out_tokens, lambda = load.rate_per_ms;
  const double tau = load.itl_ms;
  // A request sees the others: of a closed loop one fewer, of random arrivals as many as are there
  // on average.
  const double others = load.max_concurrency > 0 ? 1 - 1 / load.max_concurrency : 1;
  const double decoding = lambda * std::max(0.0, m - 1) * tau * others;
  const double context = n + (m > 0 ? load.out_square / (2 * m) : 0);
  const double chunks = std::max(1.0, std::ceil(n / kBatchTokens));
  const double own_context = n * (chunks + 1) / 2;
  const double arrivals = lambda * tau * others;  // in an iteration
  const double busy = 1 - std::exp(-arrivals * chunks);
  // Of the tokens of a number of prompts with this mean and variance.
  const auto square_of = [&](double count, double variance) {
    return count * (load.in_square - n * n) + (count * count + variance) * n * n;
  };
  MeanObservations mean;
  mean.itl = {.phase = Phase::itl,
              .bare_iterations = 1 - busy,
              .prefill_iterations = busy,
              .decoding = 1 + decoding,
              .prefill_tokens = arrivals * n,
              .prefill_square = square_of(arrivals, arrivals),
              .context_tokens = (1 + decoding) * context + arrivals * own_context,
              .ms = tau};
  // The residual of an iteration that is under way: half of it for random arrivals, longer where
  // iterations vary; all of it in a closed loop, where a request follows the end of another.
  const double prefill_ms = parameters.ms[Term::beta_prefill] + parameters.ms[Term::gamma];
  const double r = std::min(0.9, lambda * prefill_ms * n);
  const double variation =
      tau > 0 ? lambda * prefill_ms * prefill_ms * load.in_square / (tau * (1 - r * r)) : 0;
  const double longer = 1 + std::min(variation, 4.0);
  const bool closed = load.max_concurrency > 0;
  const double present = closed ? (load.max_concurrency > 1 ? 1 : 0) : 1 - std::exp(-decoding);
  const double wait = present * (closed ? 1 : longer / 2);
  const double joined = 1 + present * arrivals * longer;  // prompts in its own iteration
  mean.ttft = {.phase = Phase::ttft,
               .bare_iterations = wait * (1 - busy),
               .prefill_iterations = chunks + wait * busy,
               .decoding = decoding * (chunks + wait),
               .prefill_tokens = n * joined + wait * arrivals * n,
               .prefill_square =
                   square_of(joined, joined - 1) / chunks + wait * square_of(arrivals, arrivals),
               .context_tokens =
                   decoding * context * (chunks + wait) + own_context * (joined + wait * arrivals)};
  return mean;
}

MeanTimes mean_times(MeanLoad load, const FitParameters& parameters) {
  constexpr int kMostRounds = 200;
  constexpr double kSettled = 1e-9;
  load.itl_ms = parameters.ms[Term::alpha] + parameters.ms[Term::beta];
  MeanTimes times;
  for (int i = 0; i < kMostRounds; ++i) {
    if (load.max_concurrency > 0) {
      const double response_ms = times.ttft_ms + std::max(0.0, load.out_tokens - 1) * load.itl_ms;
      if (response_ms > 0) load.rate_per_ms = load.max_concurrency / response_ms;
    }
    const auto mean = mean_observations(load, parameters);
    const double itl_ms = predicted_ms(parameters, mean.itl);
    if (!(itl_ms < 1e7)) return {};
    times.ttft_ms = predicted_ms(parameters, mean.ttft);
    times.itl_ms = itl_ms;
    const double change = itl_ms - load.itl_ms;
    load.itl_ms += load.max_concurrency > 0 ? change / 2 : change;
    if (std::abs(change) < kSettled * itl_ms) return times;
  }
  return load.max_concurrency > 0 ? times : MeanTimes{};
}

std::vector<Observation> observations(const Measured& measured, std::span<const PointUse> use,
                                      const FitParameters& parameters) {
  std::vector<Observation> all;
  for (const auto& iteration : measured.iterations) {
    const bool prefill = iteration.prefill_tokens > 0;
    all.push_back({.phase = prefill ? Phase::prefill : Phase::decode,
                   .bare_iterations = prefill ? 0.0 : 1.0,
                   .prefill_iterations = prefill ? 1.0 : 0.0,
                   .decoding = iteration.decoding,
                   .prefill_tokens = iteration.prefill_tokens,
                   .prefill_square = iteration.prefill_tokens * iteration.prefill_tokens,
                   .context_tokens = iteration.context_tokens,
                   .ms = iteration.ms});
  }
  for (std::size_t i = 0; i < use.size(); ++i) {
    const auto& point = measured.points[i];
    if (!use[i].used) continue;
    std::vector<Observation> of_point;
    if (!point.timeline.empty()) {
      of_point = timeline_observations(point, kMostOfTimeline / use.size() + 100);
    } else {
      const auto mean = mean_observations(load_of(point), parameters);
      of_point = {mean.itl, mean.ttft};
      of_point[1].ms = point.ttft_ms.mean;
    }
    for (auto& each : of_point) {
      const bool first = each.phase == Phase::ttft;
      if (each.ms <= 0 || (first && use[i].saturated)) continue;
      if (use[i].cached && (first || each.prefill_tokens > 0)) continue;
      each.point = static_cast<std::uint32_t>(i);
      all.push_back(each);
    }
  }
  return all;
}

}  // namespace berth::fleet
