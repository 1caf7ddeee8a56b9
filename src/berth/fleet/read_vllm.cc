// Results of vLLM's benchmark_serving.py and `vllm bench serve`: one flat object a rate. What its
// arrays hold is in seconds, all else in ms. Source: files of April 2025 and of vLLM 0.25.1.
#include <algorithm>
#include <cmath>
#include <queue>
#include <random>

#include "berth/fleet/benchmark_formats.h"

namespace berth::fleet {
namespace {

Result<double> milliseconds(const JsonPlace& at) {
  return number_within(at, 0, kMostMs);
}

Result<std::vector<double>> list_of(const JsonPlace& document, std::string_view key,
                                    std::size_t wanted) {
  BERTH_ASSIGN(const JsonPlace at, document.get(key));
  BERTH_ASSIGN(auto numbers, at.numbers(kMostPointRequests));
  if (wanted > 0 && numbers.size() != wanted)
    return at.error(
        fmt::format("wanted {} elements, as input_lens has, found {}", wanted, numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!(numbers[i] >= 0 && numbers[i] <= kMostMs))
      return at.error(fmt::format("element {}: wanted a number from 0 to {}, found {}", i, kMostMs,
                                  numbers[i]));
  return numbers;
}

/// Requests that failed have no output, and are left out.
Result<std::vector<RequestTimes>> requests_of(const JsonPlace& document) {
  BERTH_ASSIGN(const auto in, list_of(document, "input_lens", 0));
  BERTH_ASSIGN(const auto out, list_of(document, "output_lens", in.size()));
  BERTH_ASSIGN(const auto ttfts, list_of(document, "ttfts", in.size()));
  BERTH_ASSIGN(const JsonPlace itls, document.get("itls"));
  BERTH_ASSIGN(const auto lists, itls.items(kMostPointRequests));
  if (lists.size() != in.size())
    return itls.error(fmt::format("wanted {} lists, as input_lens has elements, found {}",
                                  in.size(), lists.size()));
  std::vector<double> starts(in.size(), -1);
  if (document.find("start_times")) {
    BERTH_ASSIGN(starts, list_of(document, "start_times", in.size()));
  }
  std::vector<RequestTimes> requests;
  std::size_t gaps = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    BERTH_ASSIGN(const auto seconds, lists[i].numbers(kMostRows));
    gaps += seconds.size();
    if (gaps > kMostRows) return itls.error(fmt::format("more than {} numbers", kMostRows));
    if (ttfts[i] <= 0 || out[i] < 1) continue;
    RequestTimes request{.start_ms = kSecondMs * starts[i],
                         .in_tokens = in[i],
                         .out_tokens = out[i],
                         .ttft_ms = kSecondMs * ttfts[i],
                         .itl_ms = 0,
                         .gaps_ms = {}};
    for (const double s : seconds) {
      if (!(s >= 0 && s <= kMostMs)) return lists[i].error("wanted times from 0 on");
      request.itl_ms += kSecondMs * s / static_cast<double>(seconds.size());
      request.gaps_ms.push_back(static_cast<float>(kSecondMs * s));
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

double last_end_ms(const std::vector<RequestTimes>& requests) {
  double last = 0;
  for (const auto& request : requests) last = std::max(last, request.end_ms());
  return last;
}

/// The pauses that numpy's legacy generator, seeded with 0 as the tool's default is, draws from
/// gamma(1, 1/rate): −ln(1 − u)/rate, u of 53 bits of two numbers of the Mersenne twister.
void start_as_poisson(std::vector<RequestTimes>& requests, double rate_per_s) {
  std::mt19937 generator(0);
  double at_ms = 0;
  for (auto& request : requests) {
    request.start_ms = at_ms;
    const auto high = static_cast<double>(generator() >> 5);
    const auto low = static_cast<double>(generator() >> 6);
    at_ms -= kSecondMs * std::log1p(-(high * 67108864 + low) / 9007199254740992) / rate_per_s;
  }
}

/// The next request starts when one of `max_concurrency` ends.
void start_as_closed_loop(std::vector<RequestTimes>& requests, double max_concurrency) {
  std::priority_queue<double, std::vector<double>, std::greater<>> ends;
  for (auto& request : requests) {
    request.start_ms = 0;
    if (static_cast<double>(ends.size()) >= max_concurrency) {
      request.start_ms = ends.top();
      ends.pop();
    }
    ends.push(request.end_ms());
  }
}

/// Older files lack the starts. What the tool does by default is tried, and believed where the
/// last request then ends when the run did.
bool find_starts(std::vector<RequestTimes>& requests, const OperatingPoint& point,
                 double burstiness) {
  if (requests.empty() || !point.offered_per_s) return false;
  if (!std::isfinite(*point.offered_per_s))
    start_as_closed_loop(requests, point.max_concurrency.value_or(HUGE_VAL));
  else if (burstiness == 1 && !point.max_concurrency)
    start_as_poisson(requests, *point.offered_per_s);
  else
    return false;
  const double left_ms = kSecondMs * point.duration_s - last_end_ms(requests);
  const double allowed_ms = std::max(500.0, 0.005 * kSecondMs * point.duration_s);
  return std::abs(left_ms) <= allowed_ms;
}

Status read_details(const JsonPlace& document, OperatingPoint& point, bool& guessed) {
  BERTH_ASSIGN(auto requests, requests_of(document));
  summarize(point, requests);
  const bool told = document.find("start_times").has_value();
  BERTH_ASSIGN(const double burstiness, document.number_or("burstiness", 1));
  // A request that failed took its place in the order of the starts.
  const bool whole = point.errors == 0;
  if (told) {
    double first = HUGE_VAL;
    for (const auto& request : requests) first = std::min(first, request.start_ms);
    for (auto& request : requests) request.start_ms -= first;
    std::ranges::stable_sort(requests, {}, &RequestTimes::start_ms);
  } else if (!whole || !find_starts(requests, point, burstiness)) {
    return {};
  }
  guessed = !told;
  point.timeline = std::move(requests);
  return {};
}

Status read_summary(const JsonPlace& document, OperatingPoint& point) {
  struct Mean {
    std::string_view name;
    MeasuredFigures* to;
  };
  for (const auto& [name, to] : {Mean{"ttft", &point.ttft_ms}, Mean{"itl", &point.itl_ms}}) {
    BERTH_ASSIGN(const JsonPlace mean, document.get(fmt::format("mean_{}_ms", name)));
    BERTH_ASSIGN(to->mean, milliseconds(mean));
    BERTH_ASSIGN(to->p95, document.number_or(fmt::format("p95_{}_ms", name), 0));
    BERTH_ASSIGN(to->p99, document.number_or(fmt::format("p99_{}_ms", name), 0));
  }
  const auto requests = static_cast<double>(point.requests);
  if (requests == 0) return {};
  BERTH_ASSIGN(const double in, document.number("total_input_tokens"));
  BERTH_ASSIGN(const double out, document.number("total_output_tokens"));
  point.in_tokens.mean = std::clamp(in / requests, 0.0, kMostMs);
  point.out_tokens.mean = std::clamp(out / requests, 0.0, kMostMs);
  point.rate_per_s = requests / point.duration_s;
  const double present_ms =
      point.ttft_ms.mean + point.itl_ms.mean * std::max(0.0, point.out_tokens.mean - 1);
  point.concurrency = point.rate_per_s * present_ms / kSecondMs;
  return {};
}

}  // namespace

bool is_vllm(const JsonPlace& document) {
  return document.find("model_id") && document.find("completed") && document.find("duration");
}

Result<BenchmarkFile> read_vllm(const std::string& name, const JsonPlace& document) {
  Measured measured;
  BERTH_ASSIGN(const JsonPlace model, document.get("model_id"));
  BERTH_ASSIGN(measured.model, model.text());
  OperatingPoint point;
  point.name = name;
  BERTH_ASSIGN(const JsonPlace duration, document.get("duration"));
  BERTH_ASSIGN(point.duration_s, number_within(duration, 1e-3, kMostMs));
  BERTH_ASSIGN(const JsonPlace completed, document.get("completed"));
  BERTH_ASSIGN(const double count, number_within(completed, 0, kMostPointRequests));
  BERTH_ASSIGN(const double prompts, document.number_or("num_prompts", count));
  BERTH_ASSIGN(const double failed, document.number_or("failed", prompts - count));
  point.requests = static_cast<std::int64_t>(count);
  point.errors = static_cast<std::int64_t>(std::clamp<double>(failed, 0, kMostPointRequests));
  if (const auto rate = document.find("request_rate")) {
    point.offered_per_s = HUGE_VAL;
    if (!rate->is_text()) {
      BERTH_ASSIGN(point.offered_per_s, number_within(*rate, 1e-6, kMostMs));
    }
  }
  if (const auto at = document.find("max_concurrency")) {
    BERTH_ASSIGN(point.max_concurrency, number_within(*at, 1, kMostPointRequests));
  }
  BenchmarkFile file{.tool = "vLLM", .detail = Detail::summary, .measured = {}, .notes = {}};
  bool guessed = false;
  if (document.find("itls") && document.find("input_lens")) {
    file.detail = Detail::requests;
    BERTH_TRY(read_details(document, point, guessed));
  } else {
    BERTH_TRY(read_summary(document, point));
  }
  if (guessed)
    file.notes.push_back(fmt::format(
        "{}: has no start_times; the starts are those that the tool draws by default, which fit "
        "the run's duration",
        name));
  measured.points.push_back(std::move(point));
  file.measured.push_back(std::move(measured));
  return file;
}

}  // namespace berth::fleet
