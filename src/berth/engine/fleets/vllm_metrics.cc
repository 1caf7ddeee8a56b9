#include "berth/engine/fleets/vllm_metrics.h"

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/fleet/measurements/server_metrics.h"
#include "berth/remote/transfer/fetch_text.h"

namespace berth::engine {
namespace {

constexpr std::int64_t kLeastWindowS = 10, kMostWindowS = 86'400;

Result<std::int64_t> time_s(os::Env& env, std::string_view option, const std::string& text) {
  const auto in_seconds = [](Wall time) {
    return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  };
  if (const auto age = parse_age(text)) return in_seconds(env.wall() - *age);
  if (const auto time = parse_utc(text)) return in_seconds(*time);
  return fail(ErrorKind::usage,
              "{}: expected a time such as 2026-11-21T05:04:03Z, or an age such as 2h, got '{}'",
              option, clip(text));
}

Result<fleet::MetricWindows> windows_of(os::Env& env, const MetricsWanted& wanted) {
  if (wanted.from.empty()) return fail(ErrorKind::usage, "--prometheus: give --from, too");
  const std::string length = wanted.window.empty() ? "5m" : wanted.window;
  const auto window = parse_duration(length);
  fleet::MetricWindows windows;
  windows.window_s =
      window ? std::chrono::floor<std::chrono::seconds>(*window).count() : std::int64_t{0};
  if (windows.window_s < kLeastWindowS || windows.window_s > kMostWindowS)
    return fail(ErrorKind::usage, "--window: expected 10s to 1d, got '{}'", clip(length));
  BERTH_ASSIGN(windows.from_s, time_s(env, "--from", wanted.from));
  BERTH_ASSIGN(const std::int64_t to_s, time_s(env, "--to", wanted.to.empty() ? "0s" : wanted.to));
  const std::int64_t count = (to_s - windows.from_s) / windows.window_s;
  if (count < 1 || count > static_cast<std::int64_t>(fleet::kMostMetricWindows))
    return fail(ErrorKind::usage, "--from, --to: expected 1 to {} windows of {}, got {}",
                fleet::kMostMetricWindows, length, count);
  windows.count = static_cast<std::size_t>(count);
  return windows;
}

}  // namespace

Result<std::vector<fleet::Measured>> read_prometheus(os::Env& env, const MetricsWanted& wanted) {
  BERTH_ASSIGN(const auto windows, windows_of(env, wanted));
  std::string url = wanted.url;
  while (url.ends_with('/')) url.pop_back();
  const auto parsed = parse_url(url + "/");
  if (!parsed || parsed->scheme == "s3")
    return fail(ErrorKind::usage, "--prometheus: expected a URL such as http://host:9090, got '{}'",
                clip(shown(wanted.url)));
  BERTH_ASSIGN(const remote::Cloud* cloud, remote::load_cloud(env));
  const auto session = cloud->open_session();
  std::vector<std::string> answers;
  for (const auto& query : fleet::metric_queries(windows)) {
    BERTH_ASSIGN(auto answer, remote::fetch_text(env, *session, {.url = url + query}));
    // Prometheus tells its refusals in JSON, with the statuses 400, 422 and 503.
    if (answer.status / 100 != 2 && !trim(answer.body).starts_with('{'))
      return fail(ErrorKind::invalid, "{}: the server answers {}", shown(url), answer.status);
    answers.push_back(std::move(answer.body));
  }
  auto measured = fleet::read_metrics(windows, answers);
  if (!measured) return std::unexpected(within(shown(url), std::move(measured).error()));
  if (measured->empty())
    return fail(ErrorKind::not_found,
                "{}: no server of vLLM had requests then (vllm:request_generation_tokens)",
                shown(url));
  return measured;
}

}  // namespace berth::engine
