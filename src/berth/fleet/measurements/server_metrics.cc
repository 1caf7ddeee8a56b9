#include "berth/fleet/measurements/server_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "berth/base/json_place.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kMostMetricSeries = 10'000;  // of an answer
constexpr std::size_t kMostMetricPoints = 100'000;

enum class ServerFigure : std::uint8_t { requests, in_tokens, out_tokens, ttft_s, itl_s, running };
constexpr std::size_t kServerFigures = 6;
using ServerFigures = std::array<double, kServerFigures>;  // NaN: not told

/// By how much a counter of each server grew in a window.
std::string growth(std::string_view counter, std::int64_t window_s) {
  return fmt::format("sum by (model_name, instance, engine) (increase(vllm:{}[{}s]))", counter,
                     window_s);
}

/// The mean of what a histogram counted in a window.
std::string mean_in(std::string_view histogram, std::int64_t window_s) {
  return fmt::format("{} / {}", growth(fmt::format("{}_sum", histogram), window_s),
                     growth(fmt::format("{}_count", histogram), window_s));
}

std::array<std::string, kServerFigures> expressions(std::int64_t window_s) {
  return {growth("request_generation_tokens_count", window_s),
          mean_in("request_prompt_tokens", window_s),
          mean_in("request_generation_tokens", window_s),
          mean_in("time_to_first_token_seconds", window_s),
          fmt::format("{} or {}", mean_in("inter_token_latency_seconds", window_s),
                      mean_in("time_per_output_token_seconds", window_s)),
          fmt::format("sum by (model_name, instance, engine) "
                      "(avg_over_time(vllm:num_requests_running[{}s]))",
                      window_s)};
}

struct ServerName {
  std::string model, instance, engine;
  auto operator<=>(const ServerName&) const = default;
};
using ServerWindows = std::map<ServerName, std::map<std::int64_t, ServerFigures>>;

Result<std::string> label_of(const JsonPlace& series, std::string_view label) {
  const auto at = series.find(fmt::format("metric.{}", label));
  return at ? at->text() : std::string();
}

/// A number as Prometheus writes it; NaN where it is none: "NaN", "+Inf".
double sample_of(const std::string& text) {
  const auto number = parse_number(text);
  return number ? *number : NAN;
}

Status read_answer(const MetricWindows& windows, const std::string& answer, std::size_t figure,
                   ServerWindows& servers) {
  BERTH_ASSIGN(const JsonPlace document, JsonPlace::parse(answer));
  if (const auto error = document.find("error")) {
    BERTH_ASSIGN(const std::string words, error->text());
    return fail(ErrorKind::invalid, "it says: {}", clip(words, 300));
  }
  BERTH_ASSIGN(const JsonPlace result, document.get("data.result"));
  BERTH_ASSIGN(const auto all, result.items(kMostMetricSeries));
  ServerFigures none;
  none.fill(NAN);
  for (const JsonPlace& series : all) {
    ServerName name;
    BERTH_ASSIGN(name.model, label_of(series, "model_name"));
    BERTH_ASSIGN(name.instance, label_of(series, "instance"));
    BERTH_ASSIGN(name.engine, label_of(series, "engine"));
    BERTH_ASSIGN(const JsonPlace values, series.get("values"));
    BERTH_ASSIGN(const auto samples, values.items(kMostMetricWindows));
    for (const JsonPlace& sample : samples) {
      BERTH_ASSIGN(const auto pair, sample.items(2));
      if (pair.size() != 2) return sample.error("expected a time and a value");
      BERTH_ASSIGN(const double end_s, pair[0].number());
      BERTH_ASSIGN(const std::string value, pair[1].text());
      const double past =
          (end_s - static_cast<double>(windows.from_s)) / static_cast<double>(windows.window_s);
      if (!(past > 0.5 && past < static_cast<double>(windows.count) + 0.5))
        return pair[0].error("expected a time that was asked for");
      servers[name].try_emplace(std::llround(past) - 1, none).first->second.at(figure) =
          sample_of(value);
    }
  }
  return {};
}

/// The point; nullopt: something of it is not told, as in a window without requests.
std::optional<OperatingPoint> point_of(const ServerFigures& figures, double window_s) {
  const auto of = [&](ServerFigure figure) { return figures[static_cast<std::size_t>(figure)]; };
  constexpr double kMostFigure = 1e9;
  for (const ServerFigure figure :
       {ServerFigure::requests, ServerFigure::in_tokens, ServerFigure::out_tokens,
        ServerFigure::ttft_s, ServerFigure::itl_s})
    if (!(of(figure) > 0 && of(figure) < kMostFigure)) return std::nullopt;
  OperatingPoint point;
  point.rate_per_s = of(ServerFigure::requests) / window_s;
  point.requests = std::llround(of(ServerFigure::requests));
  if (of(ServerFigure::running) > 0) point.concurrency = of(ServerFigure::running);
  point.in_tokens.mean = of(ServerFigure::in_tokens);
  point.out_tokens.mean = of(ServerFigure::out_tokens);
  point.ttft_ms.mean = kSecondMs * of(ServerFigure::ttft_s);
  point.itl_ms.mean = kSecondMs * of(ServerFigure::itl_s);
  return point;
}

}  // namespace

std::vector<std::string> metric_queries(const MetricWindows& windows) {
  const auto last = static_cast<std::int64_t>(windows.count) * windows.window_s;
  std::vector<std::string> queries;
  for (const auto& expression : expressions(windows.window_s))
    queries.push_back(fmt::format("/api/v1/query_range?query={}&start={}&end={}&step={}",
                                  percent_encoded(expression), windows.from_s + windows.window_s,
                                  windows.from_s + last, windows.window_s));
  return queries;
}

Result<std::vector<Measured>> read_metrics(const MetricWindows& windows,
                                           std::span<const std::string> answers) {
  ServerWindows servers;
  for (std::size_t i = 0; i < answers.size(); ++i)
    BERTH_TRY(read_answer(windows, answers[i], i, servers));
  std::vector<Measured> all;
  std::size_t points = 0;
  for (const auto& [name, told] : servers) {
    for (const auto& [window, figures] : told) {
      auto point = point_of(figures, static_cast<double>(windows.window_s));
      if (!point) continue;
      if (++points > kMostMetricPoints)
        return fail(ErrorKind::invalid, "more than {} windows of servers", kMostMetricPoints);
      const Wall from(std::chrono::seconds(windows.from_s + window * windows.window_s));
      point->name = fmt::format("{}{}{} {:.16}Z", name.instance, name.engine.empty() ? "" : "/",
                                name.engine, format_utc(from));
      if (all.empty() || all.back().model != name.model) all.push_back({name.model, {}, 0, {}, {}});
      all.back().points.push_back(*std::move(point));
    }
  }
  return all;
}

}  // namespace berth::fleet
