#include "berth/api/vllm_metrics.h"

#include <cmath>
#include <utility>

#include "berth/base/exposition.h"
#include "berth/base/text.h"

namespace berth::api {
namespace {

constexpr double kMsPerS = 1000, kSPerMin = 60;

struct Figure {
  const char* name;
  std::optional<double> fleet::Live::* to;
  double scale;
  /// {0} stands for {selector}, {1} for {selector}[window], {2} for the window in seconds.
  const char* expression;
};

constexpr Figure kFigures[] = {
    {"served", &fleet::Live::served_per_min, kSPerMin,
     "sum(rate(vllm:request_success_total{1})) or 0 * sum(vllm:num_requests_running{0})"},
    {"arrivals", &fleet::Live::arrivals_per_min, kSPerMin,
     "(sum(rate(vllm:request_success_total{1})) or 0 * sum(vllm:num_requests_running{0}))"
     " + (sum(delta(vllm:num_requests_running{1})) + sum(delta(vllm:num_requests_waiting{1}))) / "
     "{2}"},
    {"in_tokens", &fleet::Live::in_tokens, 1,
     "sum(rate(vllm:request_prompt_tokens_sum{1})) / "
     "sum(rate(vllm:request_prompt_tokens_count{1}))"},
    {"out_tokens", &fleet::Live::out_tokens, 1,
     "sum(rate(vllm:request_generation_tokens_sum{1}))"
     " / sum(rate(vllm:request_generation_tokens_count{1}))"},
    {"ttft", &fleet::Live::ttft_ms, kMsPerS,
     "sum(rate(vllm:time_to_first_token_seconds_sum{1}))"
     " / sum(rate(vllm:time_to_first_token_seconds_count{1}))"},
    {"itl", &fleet::Live::itl_ms, kMsPerS,
     "sum(rate(vllm:inter_token_latency_seconds_sum{1}))"
     " / sum(rate(vllm:inter_token_latency_seconds_count{1}))"
     " or sum(rate(vllm:time_per_output_token_seconds_sum{1}))"
     " / sum(rate(vllm:time_per_output_token_seconds_count{1}))"},
    {"running", &fleet::Live::running, 1,
     "sum(avg_over_time(vllm:num_requests_running{1}) and vllm:num_requests_running{0})"},
    {"waiting", &fleet::Live::waiting, 1, "sum(vllm:num_requests_waiting{0})"},
    {"replicas", &fleet::Live::replicas, 1,
     "count(count by (instance) (vllm:num_requests_running{0}))"},
};

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
    text.replace(at, what.size(), by);
}

}  // namespace

std::string selector_of(const std::string& model) {
  return "model_name=\"" + escaped_label(model) + '"';
}

std::string live_query(const std::string& selector, double window_s) {
  const auto window_ms = std::llround(window_s * kMsPerS);
  const std::string chosen = "{" + selector + "}";
  std::string query;
  for (const Figure& figure : kFigures) {
    std::string expression = figure.expression;
    replace_all(expression, "{1}", "\x01");  // a selector may have such words in it
    replace_all(expression, "{2}", fmt::format("{}", window_s));
    replace_all(expression, "{0}", "\x02");
    replace_all(expression, "\x01", fmt::format("{}[{}ms]", chosen, window_ms));
    replace_all(expression, "\x02", chosen);
    query += fmt::format("{}label_replace({}, \"figure\", \"{}\", \"\", \"\")",
                         query.empty() ? "" : " or ", expression, figure.name);
  }
  return query;
}

fleet::Live live_of(std::span<const Sample> samples) {
  fleet::Live live;
  for (const Sample& sample : samples) {
    if (std::isnan(sample.value)) continue;
    for (const Figure& figure : kFigures)
      if (sample.figure == figure.name) live.*figure.to = sample.value * figure.scale;
  }
  // What is in work may fall by more than has ended, when a replica goes with what it had.
  if (live.arrivals_per_min && *live.arrivals_per_min < 0) live.arrivals_per_min = 0;
  return live;
}

}  // namespace berth::api
